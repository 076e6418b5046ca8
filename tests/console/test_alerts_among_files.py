"""An alert beside metrics and rows of the case format decides the window; short tables never do."""

import csv
import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opsleuth.console.commands.run import request_for_input
from opsleuth.console.input_sources import RecognizedInput, read_input_paths
from opsleuth.console.run_attempt import RunRequest

START = datetime(2026, 6, 6, 6, 0, tzinfo=UTC)
FIRED = START + timedelta(minutes=33)
MILLISECONDS = int(FIRED.timestamp() * 1000)

ALERTS: dict[str, dict[str, Any]] = {
    "alertmanager": {
        "version": "4",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "Slow", "service": "payments"},
                "annotations": {"summary": "p95 of payments is high"},
                "startsAt": FIRED.isoformat(),
            }
        ],
    },
    "datadog": {
        "title": "[Triggered on {host:pay-2}] p95 of payments is high",
        "body": "avg(last_5m):latency_p95_ms > 800",
        "alert_transition": "Triggered",
        "alert_metric": "latency_p95_ms",
        "date": str(MILLISECONDS),
        "tags": "host:pay-2,service:payments,env:prod",
    },
    "pagerduty": {
        "event": {
            "event_type": "incident.triggered",
            "occurred_at": FIRED.isoformat(),
            "data": {
                "title": "payments is slow",
                "service": {"summary": "payments"},
                "created_at": FIRED.isoformat(),
            },
        }
    },
    "unknown": {
        "title": "payments is slow",
        "message": "latency_p95_ms above 800",
        "severity": "major",
        "service": "payments",
        "timestamp": FIRED.isoformat(),
    },
    "check": {
        "host": "pay-2",
        "service": "payments",
        "state": "CRITICAL",
        "output": "latency_p95_ms 1500",
        "timestamp": FIRED.isoformat(),
    },
}


def write_metrics(folder: Path) -> None:
    chance, out = random.Random(7), io.StringIO()
    rows = csv.writer(out)
    rows.writerow(("timestamp", "service", "metric", "value", "unit"))
    for place in range(120):
        time = START + timedelta(seconds=30 * place)
        rows.writerow(
            (
                time.isoformat(),
                "payments",
                "latency_p95_ms",
                chance.gauss(120 if place < 60 else 1500, 6),
                "ms",
            )
        )
    (folder / "metrics.csv").write_text(out.getvalue())


def write_change(folder: Path, name: str, service: str = "search") -> None:
    change = {
        "timestamp": (START + timedelta(minutes=28)).isoformat(),
        "service": service,
        "kind": "deploy",
        "summary": f"{service} 5.1.0",
    }
    (folder / name).write_text(json.dumps(change) + "\n")


def read(folder: Path) -> RecognizedInput:
    scratch = folder.parent / "scratch"
    return read_input_paths([str(folder)], scratch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "incident"
    found.mkdir()
    write_metrics(found)
    return found


@pytest.mark.parametrize("system", list(ALERTS))
@pytest.mark.parametrize("indent", [None, 1])
def test_alert_of_any_system_is_the_alert_of_the_run(folder: Path, system: str, indent: int | None) -> None:
    (folder / "alert.json").write_text(json.dumps(ALERTS[system], indent=indent))
    write_change(folder, "changes.jsonl")
    found = read(folder)
    asked = request_for_input(RunRequest(None), found, UTC)
    assert asked.alert is not None
    assert asked.alert["service"] == "payments"
    assert datetime.fromisoformat(asked.alert["fired_at"]) == FIRED
    assert asked.since is None, "the alert chooses the window"


@pytest.mark.parametrize("name", ["changes.jsonl", "deploys-of-june.jsonl"])
def test_rows_of_changes_are_no_log_and_no_window(folder: Path, name: str) -> None:
    write_change(folder, name)
    found = read(folder)
    assert {kind.path.name: (kind.holds, kind.lines) for kind in found.kinds} == {
        "metrics.csv": ("metrics", 1),
        name: ("records", 1),
    }
    assert found.sources["record"]["kind"] == "recordfiles"
    assert found.window is not None
    assert found.window[0] == START


def test_few_log_lines_do_not_narrow_the_window_of_the_metrics(folder: Path) -> None:
    line = f"{(START + timedelta(minutes=40)).isoformat()} INFO ready\n"
    (folder / "payments.log").write_text(line)
    window = read(folder).window
    assert window is not None
    assert window[1] - window[0] > timedelta(minutes=59)


@pytest.mark.parametrize(
    "line",
    [
        {"severity": "ERROR", "message": "charge failed", "name": "tills", "timestamp": FIRED.isoformat()},
        {"level": "error", "msg": "charge failed", "time": FIRED.isoformat()},
        {"title": "charge failed", "severity": "high", "message": "x", "timestamp": FIRED.isoformat()},
    ],
)
def test_lines_of_a_log_are_no_alert(folder: Path, line: dict[str, str]) -> None:
    (folder / "tills.jsonl").write_text((json.dumps(line) + "\n") * 12)
    assert read(folder).alert is None


def test_calls_between_services_are_read(folder: Path) -> None:
    (folder / "calls.csv").write_text("caller,callee\nweb,payments\npayments,payments-db\n")
    [kind] = [kind for kind in read(folder).kinds if kind.holds == "records"]
    assert kind.services == ("payments", "payments-db", "web")
