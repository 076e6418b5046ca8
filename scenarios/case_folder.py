"""A case folder in the making: rows by file, written in one fixed form so that equal input gives equal bytes."""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CSV_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "metrics.csv": ("timestamp", "service", "metric", "value", "unit"),
    "metrics_baseline.csv": ("timestamp", "service", "metric", "value", "unit"),
    "log_patterns.csv": ("window", "service", "level", "pattern", "count", "traces_in_window"),
    "span_stats.csv": (
        "window",
        "service",
        "operation",
        "count",
        "traces_in_window",
        "duration_ms_p50",
        "self_ms_p50",
        "self_ms_mean",
        "children_mean",
    ),
    "edge_latency.csv": ("window", "caller", "callee", "count", "network_gap_ms_p50"),
    "topology.csv": ("caller", "callee"),
}
TIME_FIELDS = ("timestamp", "captured_at", "start", "window")


def format_utc(moment: float) -> str:
    """Seconds since the epoch as RFC 3339 in UTC; milliseconds only where there are some."""
    when = datetime.fromtimestamp(round(moment, 3), UTC)
    return when.isoformat(timespec="milliseconds" if when.microsecond else "seconds").replace("+00:00", "Z")


def parse_epoch(text: str) -> float:
    """An RFC 3339 time with its zone as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def format_minute(moment: float) -> str:
    """The name of the one-minute window that begins at `moment`, as the aggregate tables write it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%MZ")


def round_figure(value: float) -> float | int:
    """A measured value with six significant digits, whole numbers without a point."""
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


class CaseFolderWriter:
    """Rows of one case by file name. `incident` is the document of `incident.json` without `signals`."""

    def __init__(self, incident: Mapping[str, Any]) -> None:
        self.incident = dict(incident)
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self.texts: dict[str, str] = {}

    def add(self, file: str, **row: object) -> None:
        """Append one row; values of None are left out of JSON rows and empty in CSV."""
        self.tables.setdefault(file, []).append(row)

    def write(self, folder: Path, *, compress: Sequence[str] = ()) -> Path:
        """Write all files below `folder` (made if absent), those named in `compress` as `.gz`; return `folder`.

        Rows are ordered by time; rows of the same time keep the order in which they were added.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for file, rows in sorted(self.tables.items()):
            text = _format_table(file, sorted(rows, key=_time_sort_key))
            _write_case_file(folder, file, text, compressed=file in compress)
        for file, text in sorted(self.texts.items()):
            _write_case_file(folder, file, text, compressed=False)
        signals = sorted({Path(file).stem.removesuffix("_baseline") for file in self.tables})
        document = json.dumps({**self.incident, "signals": signals}, indent=1, ensure_ascii=False)
        _write_case_file(folder, "incident.json", document + "\n", compressed=False)
        return folder


def _time_sort_key(row: Mapping[str, Any]) -> str:
    moment = str(next((row[name] for name in TIME_FIELDS if name in row), ""))
    # "baseline" names no time and comes first; "21Z" would sort behind "21.5Z".
    return "" if moment == "baseline" else moment.removesuffix("Z")


def _format_table(file: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if file in CSV_COLUMNS:
        return _format_csv(file, rows)
    lines = ({name: value for name, value in row.items() if value is not None} for row in rows)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _format_csv(file: str, rows: Sequence[Mapping[str, Any]]) -> str:
    extra = ["instance"] if any(row.get("instance") for row in rows) else []
    out = io.StringIO()
    columns = [*CSV_COLUMNS[file], *extra]
    table = csv.DictWriter(out, columns, restval="", extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()


def _write_case_file(folder: Path, file: str, text: str, *, compressed: bool) -> None:
    target = folder / (file + ".gz" if compressed else file)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    # No time and no name in the gzip header: equal rows, equal bytes.
    target.write_bytes(gzip.compress(data, mtime=0) if compressed else data)
