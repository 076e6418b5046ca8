"""CPU seconds of the commands that read, over 10,000 runs and a run of 2,000 steps: python benchmarks/reading.py."""

import os
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import Status, StopReason, Verdict

RUNS, STEPS, TRIES = 10_000, 2_000, 5
LONG = "inv-20261129-0000"
COMMANDS = (
    ["--help"],
    ["version"],
    ["list"],
    ["list", "--limit", str(RUNS)],
    ["show", LONG],
    ["show", LONG, "--full"],
    ["log", LONG],
    ["log", LONG, "--json"],
    ["report", LONG],
    ["evidence", LONG],
)


def fill(path: Path) -> None:
    """Store the runs, the long one with its trace and a small report."""
    clock = FakeClock(datetime(2026, 11, 29, 14, 5, tzinfo=UTC))
    with Store.open(path, clock, Redactor()) as store, store.transaction():
        for number in range(RUNS):
            clock.advance(1)
            store.runs.create(
                RunRow(
                    id=f"inv-20261129-{number:04d}",
                    question=f"the orders API is slow, case {number}",
                    status=Status.COMPLETED,
                    stop_reason=StopReason.CONCLUDED,
                    verdict=Verdict.CAUSE_FOUND,
                    turn=9,
                    node="verify",
                )
            )
        for step in range(STEPS):
            called = {"tool": "metrics_query", "args": {"service": "orders"}, "evidence": f"E{step}", "ms": 8}
            store.events.append(LONG, "tool.completed", called, turn=step // 4 + 1, node="act")
            store.events.append(
                LONG, "step.completed", {"changed": ["pending"]}, turn=step // 4 + 1, node="act"
            )
        store.reports.put(LONG, {"run": LONG, "verdict": "cause_found", "answer": "A release lost an index."})


def cpu(command: list[str], path: Path) -> float:
    """The least CPU time of a few tries, in seconds."""
    best = float("inf")
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "opsleuth", "--db", str(path), *command],
            stdout=subprocess.DEVNULL,
            env=os.environ | {"NO_COLOR": "1"},
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    """Print one line for each command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "opsleuth.db"
        fill(path)
        for command in COMMANDS:
            print(f"{cpu(command, path):.3f} s  opsleuth {' '.join(command)}")


if __name__ == "__main__":
    main()
