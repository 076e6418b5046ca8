"""The built-in incident in a system that runs: a control plane of its own process, and what it has recorded so far."""

import json
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc
from opsleuth.scenarios.orders_incident import PROFILE, QUESTION, STEP
from opsleuth.scenarios.plane.state import RELEASE_AGE

LIFETIME = 3600
"""Seconds for which the control plane stays, so that the run can be approved and resumed meanwhile."""
HISTORY = 5400.0
FILES = {
    "metrics": "metrics.csv",
    "logs": "logs.jsonl",
    "statements": "statements.jsonl",
    "changes": "changes.jsonl",
    "topology": "topology.csv",
}


class RunningDemo(NamedTuple):
    """Where the control plane listens, and the folder of what it had recorded when it was asked."""

    url: str
    case: Path


def start_demo_plane(folder: Path) -> RunningDemo:
    """Start a control plane with its state below `folder` (made), and write down its last hour and a half."""
    folder.mkdir(parents=True, exist_ok=True)
    port = _start_process(folder / "plane.jsonl")
    now = time.time()
    case = CaseFolderWriter(_build_incident(now))
    for signal, file in FILES.items():
        for row in _read_signal_rows(port, signal, now):
            case.add(file, **row)
    return RunningDemo(f"http://127.0.0.1:{port}", case.write(folder / "case"))


def _start_process(state: Path) -> int:
    """A process in a session of its own: it outlives this one, as a real system does."""
    command = [sys.executable, "-m", "opsleuth.scenarios.control_plane", "--state", str(state)]
    process = subprocess.Popen(  # our own module
        [*command, "--lifetime", str(LIFETIME)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    if process.stdout is None or not (line := process.stdout.readline()):
        raise OSError("the control plane of the demo did not start")
    process.stdout.close()
    process.returncode = 0  # it is left running on purpose
    return int(line)


def _read_signal_rows(port: int, signal: str, now: float) -> list[dict[str, Any]]:
    query = f"from={quote(format_utc(now - HISTORY))}&to={quote(format_utc(now))}&step={STEP}"
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", f"/{signal}?{query}")
        rows: list[dict[str, Any]] = json.loads(connection.getresponse().read())["rows"]
    finally:
        connection.close()
    return rows


def _build_incident(now: float) -> dict[str, Any]:
    onset = now - RELEASE_AGE + 160.0
    return {
        "id": "orders-slow-live",
        "question": QUESTION,
        "application": "Web shop with a control plane",
        "alert": {
            "text": "OrdersApiLatencyHigh: latency_p95 of orders-api above 1500 ms for 10 minutes.",
            "service": "orders-api",
            "metric": "latency_p95",
            "severity": "critical",
            "fired_at": format_utc(onset + 660),
        },
        "alert_start_utc": format_utc(onset + 60),
        "window": {"start": format_utc(now - HISTORY), "end": format_utc(now), "step_seconds": STEP},
        "services": list(PROFILE),
    }
