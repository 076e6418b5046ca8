"""What a reading command pays: few imports, and little time however much is stored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from growth import cpu_seconds

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store

READ = """
import sys
from pathlib import Path
from opsleuth.redaction.redactor import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import SystemClock
with Store.open(Path(sys.argv[1]), SystemClock(), Redactor(), read_only=True) as store:
    assert len(store.runs.list()) == 1
    assert store.events.read("inv-00000")
heavy = {"pydantic", "asyncio", "langgraph", "langchain_core", "aiosqlite", "httpx", "click", "rich", "urllib.request", "psycopg"}
print(*sorted(heavy & set(sys.modules)))
"""
FRAMEWORK = "import opsleuth.checkpoints.{} ; import sys; assert not {{'langgraph', 'asyncio', 'pydantic', 'psycopg'}} & set(sys.modules)"


def python(code: str, *arguments: str) -> str:
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True, env=path
    ).stdout


def fill(store: Store, runs: range, steps: range) -> None:
    with store.transaction():
        for number in runs:
            store.runs.create(RunRow(id=f"inv-{number:05d}", question="checkout 5xx"))
        for number in steps:
            data = {
                "id": f"r/t{number}c1",
                "tool": "metrics_query",
                "args": {"q": "rate(x)"},
                "headline": "412 pts",
            }
            store.events.append("inv-00000", "step.completed", data, turn=number)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_reading_loads_our_tables_alone(store: Store, path: Path) -> None:
    fill(store, range(1), range(1))
    assert python(READ, str(path)).split() == []


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_list_takes_as_long_among_ten_times_the_runs(store: Store) -> None:
    fill(store, range(1_000), range(0))
    few = cpu_seconds(store.runs.list, repeats=10)
    fill(store, range(1_000, 10_000), range(0))
    many = cpu_seconds(store.runs.list, repeats=10)
    assert len(store.runs.list()) == 50
    assert many < 3 * few


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_the_events_of_a_run_are_read_in_linear_time(store: Store) -> None:
    fill(store, range(1), range(200))
    few = cpu_seconds(lambda: store.events.read("inv-00000"))
    fill(store, range(0), range(200, 2_000))
    many = cpu_seconds(lambda: store.events.read("inv-00000"))
    assert len(store.events.read("inv-00000")) == 2_000
    assert many < 30 * few  # ten times the events


def test_no_module_but_the_saver_loads_the_framework() -> None:
    room = Path(__file__).parents[2] / "checkpoints"
    files = [p.relative_to(room).with_suffix("") for p in room.rglob("*.py")]
    names = [
        ".".join(p.parts)
        for p in files
        if p.stem not in ("__init__", "saver", "checkpoint_saver") and p.parts[0] != "postgres"
    ]
    assert len(names) > 15
    python("\n".join(FRAMEWORK.format(name) for name in names))
