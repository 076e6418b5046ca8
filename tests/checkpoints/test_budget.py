"""What a reading command pays: few imports, and little time however much is stored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store

READ = """
import sys, time
start = time.process_time()
from pathlib import Path
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import SystemClock
with Store.open(Path(sys.argv[1]), SystemClock(), Redactor(), read_only=True) as store:
    assert len(store.runs.list()) == 50
    assert len(store.events.read("inv-00001")) == 2_000
heavy = {"pydantic", "asyncio", "langgraph", "langchain_core", "aiosqlite", "httpx", "click", "rich", "urllib.request", "psycopg"}
print(time.process_time() - start, *sorted(heavy & set(sys.modules)))
"""
FRAMEWORK = "import opsleuth.checkpoints.{} ; import sys; assert not {{'langgraph', 'asyncio', 'pydantic', 'psycopg'}} & set(sys.modules)"


def python(code: str, *arguments: str) -> str:
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True, env=path
    ).stdout


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_ten_thousand_runs_and_two_thousand_steps(store: Store, path: Path) -> None:
    with store.transaction():
        for number in range(10_000):
            store.runs.create(RunRow(id=f"inv-{number:05d}", question="checkout 5xx"))
        for number in range(2_000):
            data = {
                "id": f"r/t{number}c1",
                "tool": "metrics_query",
                "args": {"q": "rate(x)"},
                "headline": "412 pts",
            }
            store.events.append("inv-00001", "step.completed", data, turn=number)
    seconds, *heavy = python(READ, str(path)).split()
    assert heavy == []
    assert float(seconds) < 1.0  # ten times what it takes: about 0.07 s


def test_no_module_but_the_saver_loads_the_framework() -> None:
    room = Path(__file__).parents[2] / "checkpoints"
    files = [p.relative_to(room).with_suffix("") for p in room.rglob("*.py")]
    names = [
        ".".join(p.parts)
        for p in files
        if p.stem not in ("__init__", "saver", "saving") and p.parts[0] != "postgres"
    ]
    assert len(names) > 15
    python("\n".join(FRAMEWORK.format(name) for name in names))
