"""opsleuth beside a bare `langchain.agents.create_agent` with AsyncSqliteSaver, on the same scripted conversation.

    python benchmarks/against_agent.py [ROUNDS] [CALLS]

Needs `langchain` beside opsleuth. Both get the same model server without think time, the same tool (one call a turn,
an answer of about 300 tokens) and a database file of their own; they take turns, ROUNDS times. Printed are medians:
CPU until the first request leaves (imports included, the whole command line for opsleuth), wall time and CPU of CALLS
tool calls, milliseconds a turn for the first and the last ten, size of the database, peak memory, size of the first
request, bytes sent in sum for the first 50 calls and for all.
"""

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

WORDS = "".join(f"{i * 7919 % 9973:04d} " for i in range(210))
SENT: list[tuple[float, float, int]] = []
"""CPU seconds, wall seconds and bytes of each request, as it leaves."""


def main(rounds: int, calls: int) -> None:
    found: dict[str, list[dict[str, float]]] = {"opsleuth": [], "agent": []}
    starts: dict[str, list[float]] = {"opsleuth": [], "agent": []}
    for _ in range(rounds):
        for kind, runs in found.items():
            runs.append(_child(kind, calls))
            starts[kind].append(_child(f"{kind}-start", 0)["cpu"])
    print(f"{'':<34}{'opsleuth':>12}{'agent':>12}{'ratio':>8}")
    _line("CPU to the first request, s", {k: statistics.median(v) for k, v in starts.items()})
    for name in found["agent"][0]:
        _line(name, {k: statistics.median(run[name] for run in v) for k, v in found.items()})


def _line(name: str, of: Mapping[str, float]) -> None:
    print(f"{name:<34}{of['opsleuth']:>12,.2f}{of['agent']:>12,.2f}{of['opsleuth'] / of['agent']:>8.2f}")


def _child(kind: str, calls: int) -> dict[str, float]:
    from opsleuth.models.server.model_server import ModelServer

    with tempfile.TemporaryDirectory() as folder, ModelServer(_scripted(calls)) as server:
        done = subprocess.run(
            [sys.executable, __file__, kind, server.base_url, folder, str(calls)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        if not kind.endswith("-start"):
            figures |= _bytes(server.sizes)
        return figures


def _bytes(sizes: list[int]) -> dict[str, float]:
    return {
        "first request, kB": sizes[0] / 1e3,
        "sent for 50 calls, kB": sum(sizes[:50]) / 1e3,
        "sent for all calls, kB": sum(sizes) / 1e3,
    }


def _scripted(calls: int) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """One call a turn, each for another thing, then the end: a conclusion for one, words for the other."""
    asked = 0

    def model(request: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal asked
        asked += 1
        if asked <= calls:
            thing = {"thing": f"thing-{asked}", "why": "to see it"}
            return {"calls": [{"name": "look", "arguments": thing}]}
        names = [tool["function"]["name"] for tool in request.get("tools", ())]
        if "conclude" not in names:
            return {"text": "All was looked at."}
        end = {"verdict": "inconclusive", "answer": "All was looked at.", "claims": []}
        return {"calls": [{"name": "conclude", "arguments": end}]}

    return model


def _watch() -> None:
    """Note every request of the client library that both use."""
    import httpx2

    send = httpx2.AsyncClient.send

    async def noted(self: Any, request: Any, **more: Any) -> Any:
        SENT.append((time.process_time(), time.monotonic(), len(request.content)))
        return await send(self, request, **more)

    httpx2.AsyncClient.send = noted  # type: ignore[method-assign]


def _figures(began: float, folder: Path, calls: int) -> dict[str, float]:
    if len(SENT) != calls + 1:
        raise SystemExit(f"{len(SENT)} requests were sent, {calls + 1} were expected")
    at = [wall for _, wall, _ in SENT]
    steps = [b - a for a, b in pairwise(at)]
    return {
        "wall of all calls, s": time.monotonic() - began,
        "CPU of all calls, s": SENT[-1][0] - SENT[0][0],
        "first ten turns, ms each": 1e3 * sum(steps[:10]) / 10,
        "last ten turns, ms each": 1e3 * sum(steps[-10:]) / 10,
        "database, kB": sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e3,
        "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def opsleuth(url: str, folder: Path, calls: int) -> dict[str, float]:
    from datetime import UTC, datetime

    from opsleuth.checkpoints.store import Store
    from opsleuth.configuration.model_settings import ModelSettings
    from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings, StartRequest
    from opsleuth.graph.lifecycle.session import Runner
    from opsleuth.graph.lifecycle.wiring import AttemptParts
    from opsleuth.redaction.redactor import Redactor
    from opsleuth.state.base import to_json
    from opsleuth.state.clock import SystemClock
    from opsleuth.tools.sources.source_protocols import RunSources
    from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

    class Look(Arguments):
        thing: str

    async def look(arguments: Look, _: ToolContext) -> ToolResult:
        return ToolResult(
            record={"thing": arguments.thing, "text": WORDS}, headline=f"{arguments.thing} was seen"
        )

    tool = ToolSpec(
        name="look", purpose="Look at a thing.", not_for="", arguments=Look, example={"thing": "a"}, run=look
    )
    model = ModelSettings(model="m", base_url=url, reviewer="none")
    request = StartRequest(
        run="inv-20240501-test",
        question="why",
        since=datetime(2024, 5, 1, 14, tzinfo=UTC),
        until=datetime(2024, 5, 1, 15, tzinfo=UTC),
        limits={"turns": 1_000, "tokens": 10**9},
        settings=RunSettings(planner="model", model=to_json(model)),
    )
    parts = AttemptParts(sources=lambda _: OpenedSources(RunSources()), specs=[tool])
    with Store.open(folder / "x.db", SystemClock(), Redactor()) as store:
        began = time.monotonic()
        asyncio.run(Runner(store, parts=parts).start(request))
    return _figures(began, folder, calls)


def agent(url: str, folder: Path, calls: int) -> dict[str, float]:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    @tool
    async def look(thing: str, why: str) -> str:
        """Look at a thing."""
        del why
        return json.dumps({"thing": thing, "text": WORDS})

    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "x.db")) as saver:
            made = create_agent(
                ChatOpenAI(model="m", base_url=url, api_key="none"), [look], checkpointer=saver
            )
            config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 10_000}
            await made.ainvoke({"messages": [{"role": "user", "content": "why"}]}, config, durability="sync")

    began = time.monotonic()
    asyncio.run(run())
    return _figures(began, folder, calls)


def opsleuth_start(url: str, folder: Path) -> None:
    """The whole command line, up to its first request."""
    import contextlib
    import os

    os.environ |= {"OPSLEUTH_BASE_URL": url, "OPSLEUTH_MODEL": "m", "OPSLEUTH_REVIEWER": "none"}
    os.environ |= {name: str(folder) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    from opsleuth.cli import main as command

    with (
        Path(os.devnull).open("w") as unread,
        contextlib.redirect_stdout(unread),
        contextlib.suppress(SystemExit),
    ):
        command(["-q", "demo"])


def child(kind: str, url: str, folder: Path, calls: int) -> None:
    began = time.process_time()
    _watch()
    own = time.process_time() - began  # the client library itself is charged to neither
    if kind == "opsleuth-start":
        opsleuth_start(url, folder)
    elif kind == "agent-start":
        agent(url, folder, 0)
    else:
        print(json.dumps((opsleuth if kind == "opsleuth" else agent)(url, folder, calls)))
        return
    print(json.dumps({"cpu": SENT[0][0] - own}))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        child(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main(*(int(a) for a in [*sys.argv[1:], "5", "100"][:2]))
