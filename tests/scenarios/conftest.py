"""Reads a case folder back and holds it against the published format."""

import csv
import gzip
import io
import json
import os
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import opsleuth

Tables = dict[str, list[dict[str, Any]]]

REQUIRED = {
    "metrics": {"timestamp", "service", "metric", "value", "unit"},
    "logs": {"timestamp", "service", "message"},
    "traces": {"trace_id", "span_id", "service", "operation", "start", "duration_ms"},
    "span_stats": {
        "window",
        "service",
        "operation",
        "count",
        "traces_in_window",
        "duration_ms_p50",
        "self_ms_p50",
    },
    "edge_latency": {"window", "caller", "callee", "count", "network_gap_ms_p50"},
    "topology": {"caller", "callee"},
    "changes": {"timestamp", "service", "kind", "summary"},
    "events": {"timestamp", "source", "object", "type", "reason", "message"},
    "objects": {"captured_at", "kind", "name", "status"},
    "statements": {"captured_at", "database", "statement", "mean_ms", "total_ms"},
}
OPTIONAL = {
    "metrics": {"instance"},
    "logs": {"pod", "level", "trace_id"},
    "traces": {"parent_id", "status"},
    "span_stats": {"self_ms_mean", "children_mean"},
    "changes": {"version", "author", "diff"},
    "events": {"first_timestamp", "count"},
    "objects": {"namespace", "spec"},
    "statements": {"calls", "calls_per_sec", "load", "load_unit", "waits", "rows"},
}
CHANGES = {"deploy", "config", "scale", "flag", "migration", "rollback"}


def read_tables(folder: Path) -> Tables:
    """All tables of a case by file name without `.gz`."""
    tables: Tables = {}
    for path in sorted(folder.glob("*.*")):
        if path.name == "incident.json":
            continue
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text, name = data.decode(), path.name.removesuffix(".gz")
        if name.endswith(".csv"):
            tables[name] = list(csv.DictReader(io.StringIO(text)))
        else:
            tables[name] = [json.loads(line) for line in text.splitlines()]
    return tables


def _time(text: str) -> datetime:
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text)


def _check_rows(file: str, rows: list[dict[str, Any]]) -> None:
    kind = file.split(".", maxsplit=1)[0].removesuffix("_baseline")
    required, allowed = REQUIRED[kind], REQUIRED[kind] | OPTIONAL.get(kind, set())
    assert rows, file
    for row in rows:
        assert required <= row.keys() <= allowed, (file, row)
        assert all(row[name] not in ("", None) for name in required), (file, row)
    column = next((c for c in ("timestamp", "captured_at", "start") if c in required), None)
    if column:
        times = [_time(row[column]) for row in rows]
        assert all(a <= b for a, b in pairwise(times)), f"{file}: times out of order"


def _check(folder: Path) -> Tables:
    incident = json.loads((folder / "incident.json").read_text())
    window = incident["window"]
    assert _time(window["start"]) < _time(incident["alert_start_utc"]) < _time(incident["alert"]["fired_at"])
    assert _time(incident["alert"]["fired_at"]) < _time(window["end"])
    tables = read_tables(folder)
    for file, rows in tables.items():
        _check_rows(file, rows)
    assert {row["kind"] for row in tables.get("changes.jsonl", [])} <= CHANGES
    for file in ("metrics.csv", "logs.jsonl"):
        assert all(
            _time(window["start"]) <= _time(row["timestamp"]) <= _time(window["end"]) for row in tables[file]
        )
    return tables


@pytest.fixture(scope="session")
def importable() -> dict[str, str]:
    """The environment in which a process of its own finds the package, installed or not."""
    return {**os.environ, "PYTHONPATH": str(Path(opsleuth.__file__).parents[1])}


@pytest.fixture(scope="session")
def check_case() -> Callable[[Path], Tables]:
    """Asserts that a folder holds to the case format, and returns its tables."""
    return _check
