"""What a step costs and whether that grows: 1,000 node steps with results of about 2 kB.

Prints the size of the database, the commits per node step, and the median time of the first and the last
hundred steps. Run: python benchmarks/steps.py [TURNS]
"""

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import OpenedSources, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models.scripted_planner import ScriptedPlanner
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.calls import CallRequest
from opsleuth.state.clock import SystemClock
from opsleuth.state.decision import Decision
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

NODES_PER_TURN = 3
"""plan, act, observe"""


class Look(Arguments):
    thing: str


async def look(arguments: Look, _: ToolContext) -> ToolResult:
    rows = [{"n": n, "value": hash((arguments.thing, n)) % 100_000} for n in range(70)]
    return ToolResult(
        record={"thing": arguments.thing, "rows": rows}, headline=arguments.thing, source="made up"
    )


LOOK = ToolSpec(name="look", purpose="Look.", not_for="-", arguments=Look, example={"thing": "a"}, run=look)


class Counted(sqlite3.Connection):
    """A connection that counts commits."""

    commits = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.set_trace_callback(self._seen)

    @classmethod
    def _seen(cls, statement: str) -> None:
        cls.commits += statement.startswith("COMMIT")


def counted(*arguments: Any, **named: Any) -> sqlite3.Connection:
    return CONNECT(*arguments, **named, factory=Counted)


CONNECT = sqlite3.connect


def main(turns: int) -> None:
    sqlite3.connect = counted  # type: ignore[assignment]
    script = [
        Decision(reason="look", calls=(CallRequest(tool="look", arguments={"thing": f"thing number {n}"}),))
        for n in range(turns)
    ]
    times: list[float] = []

    def hear(event: Mapping[str, Any]) -> None:
        if event["type"] == "step.completed":
            times.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.db"
        clock = SystemClock()
        store = Store.open(path, clock, Redactor())
        parts = AttemptParts(
            sources=lambda _: OpenedSources(RunSources()),
            planner=lambda _: ScriptedPlanner(script),
            specs=(LOOK,),
        )
        request = StartRequest(
            run="inv-20240501-test",
            question="what does a step cost",
            since=datetime(2024, 5, 1, 14, tzinfo=UTC),
            until=datetime(2024, 5, 1, 15, tzinfo=UTC),
            limits={"turns": turns, "seconds": 3600.0},
        )
        began = time.perf_counter()
        asyncio.run(Runner(store, hear, clock, parts).start(request))
        seconds = time.perf_counter() - began
        store.close()
        size = sum(f.stat().st_size for f in Path(folder).glob("steps.db*") if f.is_file())
    steps = [b - a for a, b in pairwise(times)]
    first, last = statistics.median(steps[:100]) * 1000, statistics.median(steps[-100:]) * 1000
    print(f"node steps               {len(times)}")
    print(f"database                 {size / 1e6:.1f} MB")
    print(f"commits per node step    {Counted.commits / len(times):.1f}")
    print(f"first 100 steps, median  {first:.2f} ms")
    print(f"last 100 steps, median   {last:.2f} ms  ({last / first:.2f} times the first)")
    print(f"all                      {seconds:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000 // NODES_PER_TURN)
