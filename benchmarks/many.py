"""Many runs at once on PostgreSQL: throughput beside a single run, what a run costs, how fast the API answers meanwhile.

First `--alone` runs one after the other: their median is a single run's time. A model server in this process thinks for a while before each decision, a tool looks for a while; workers and the API
are processes of their own. Prints one JSON document. The database must be one that may be filled.

Run: python benchmarks/many.py postgresql://… [--runs 200 --workers 4 --slots 2 --turns 3 --think 0.2 --look 0]
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn
from usage import Cores, Usage, family_seconds, postmaster, seconds

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.configuration.service_settings import parse_service_settings
from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models.server.chat_replies import Entry, Request
from opsleuth.models.server.model_server import ModelServer
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.api_context import ApiContext
from opsleuth.service.app import build_app
from opsleuth.service.commands.worker import run_until_signal
from opsleuth.service.intake import RequestIntake
from opsleuth.service.intake_lanes import IntakeLanes
from opsleuth.service.queue import create_queue_tables
from opsleuth.service.store_pool import StorePool
from opsleuth.service.worker import RunWorker
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import FINISHED_STATUSES
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(
    ["many", "opsleuth.graph.lifecycle.session", "opsleuth.models.planner_factory"]
)
_QUESTION = re.compile(r"(?:alone|run) \d+ of this measurement")
TABLE = {"requests_per_minute": 1e9}
_DATABASE = (
    "SELECT xact_commit, pg_database_size(datname) FROM pg_stat_database WHERE datname = current_database()"
)
_OVER = "SELECT count(*) FROM opsleuth.runs WHERE id = ANY(%s) AND status = ANY(%s)"
_TOLD = """
SELECT stop_reason, attempt, extract(epoch FROM updated::timestamptz - began::timestamptz),
       extract(epoch FROM updated::timestamptz - created::timestamptz)
FROM opsleuth.runs JOIN (
    SELECT run, min(ts) AS began FROM opsleuth.events WHERE type = 'run.started' GROUP BY run
) AS started ON run = id WHERE id = ANY(%s)
"""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


class Look(Arguments):
    thing: int


class _Later:
    """A writer whose first word comes after a while."""

    def __init__(self, writer: asyncio.StreamWriter, seconds: float) -> None:
        self._writer, self._seconds, self._said = writer, seconds, bytearray()

    def write(self, data: bytes) -> None:
        self._said += data

    async def drain(self) -> None:
        await asyncio.sleep(self._seconds)
        self._writer.write(bytes(self._said))
        await self._writer.drain()


class Thinking(ModelServer):
    """A model server that takes its time before every answer; it looks once a turn, and concludes in the last."""

    def __init__(self, turns: int, think: float) -> None:
        super().__init__(self._decided)
        self._turns, self._think = turns, think
        self._asked: Counter[str] = Counter()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        return await super()._exchange(reader, _Later(writer, self._think))  # type: ignore[arg-type]

    def _decided(self, request: Request) -> Entry:
        """Which turn it is follows from how often the run's question was heard."""
        found = _QUESTION.search("\n".join(str(m.get("content") or "") for m in request["messages"]))
        run = found[0] if found else ""
        self._asked[run] += 1
        if self._asked[run] < self._turns:
            call = {"tool": "look", "arguments": {"thing": self._asked[run]}, "why": "to see it"}
            return {"decision": {"reason": "look", "calls": [call]}}
        claims = [{"id": "C1", "text": "It is 7.", "evidence": ["E1"]}]
        conclusion = {"verdict": "answered", "answer": "It is 7.", "claims": claims}
        return {"decision": {"reason": "enough", "conclusion": conclusion}}


def parts(look: float) -> AttemptParts:
    async def run(arguments: Look, _: ToolContext) -> ToolResult:
        await asyncio.sleep(look)
        rows = [{"n": n, "value": 7} for n in range(50)]
        return ToolResult(
            record={"thing": arguments.thing, "value": 7, "rows": rows}, headline="it is 7", source="made up"
        )

    spec = ToolSpec(name="look", purpose="Look.", not_for="-", arguments=Look, example={"thing": 1}, run=run)
    return AttemptParts(sources=lambda _: OpenedSources(RunSources()), specs=(spec,), effects=lambda _: ())


def work(url: str, folder: str, slots: int, look: float) -> None:
    """A worker's process."""
    worker = RunWorker(
        PostgresServer(url, Path(folder)),
        parse_service_settings(TABLE, "here"),
        SystemClock(),
        slots,
        parts(look),
    )
    asyncio.run(run_until_signal(worker))


def answer(url: str, folder: str, model: Mapping[str, Any], port: int) -> None:
    """The API's process."""
    clock, server = SystemClock(), PostgresServer(url, Path(folder))
    settings = RunSettings(planner="model", model=model)
    intake = RequestIntake(settings, lambda store, taken: store.jobs.put_all(taken), clock)
    context = ApiContext(
        StorePool(lambda: Store.open(server, clock, Redactor())),
        IntakeLanes(StorePool(lambda: Store.open(server, clock, Redactor()), size=2)),
        intake,
        parse_service_settings(TABLE, "here"),
        clock,
    )
    uvicorn.run(build_app(context), port=port, log_config=None)


@contextmanager
def processes(*made: Any) -> Any:
    for process in made:
        process.start()
    try:
        yield
    finally:
        for process in made:
            process.terminate()
        for process in made:
            process.join(30)


def figures(url: str) -> tuple[int, int]:
    """Transactions, those that only read included, and bytes of the database so far."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(_DATABASE).fetchone()
    return (row[0], row[1]) if row else (0, 0)


async def post(client: httpx.AsyncClient, question: str) -> tuple[str, float]:
    began = time.perf_counter()
    reply = await client.post("/api/tasks", json={"question": question, "limits": {"tokens": 10_000_000}})
    reply.raise_for_status()
    return str(reply.json()["task_id"]), time.perf_counter() - began


async def over(url: str, runs: Sequence[str]) -> None:
    """Wait until these runs have ended; one short question for all, so that asking costs next to nothing."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while True:
            found = await (
                await connection.execute(_OVER, (list(runs), sorted(FINISHED_STATUSES)))
            ).fetchone()
            if found and found[0] == len(runs):
                return
            await asyncio.sleep(0.02 if len(runs) == 1 else 0.2)


async def measure(given: argparse.Namespace, client: httpx.AsyncClient) -> dict[str, Any]:
    alone = []
    for number in range(given.alone):
        began = time.perf_counter()
        run, _ = await post(client, f"alone {number} of this measurement")
        await over(given.url, [run])
        alone.append(time.perf_counter() - began)
    before, usage, most = figures(given.url), Usage(given.roles), [0]
    with psycopg.connect(given.url, autocommit=True) as connection:
        cores = Cores(lambda: most.append(_one(connection, _CONNECTIONS) - 1))
        cores.start()
        began, runs, took = time.perf_counter(), [], []
        for number in range(given.runs):
            run, answered = await post(client, f"run {number} of this measurement")
            runs.append(run)
            took.append(answered)
            await asyncio.sleep(given.pause)
        await over(given.url, runs)
        took_all, used, busy = time.perf_counter() - began, usage.since(), cores.stop()
    await asyncio.sleep(1.5)  # the server tells its figures once a second
    after, slots, single = figures(given.url), given.workers * given.slots, statistics.median(alone)
    return {
        "runs": given.runs,
        "slots": slots,
        "seconds of a single run, median": round(single, 3),
        "seconds of all": round(took_all, 2),
        "throughput, runs a second": round(given.runs / took_all, 3),
        "of what the slots could do": round(given.runs / took_all / (slots / single), 3),
        "milliseconds of POST: median, 95 %": _spread(took, 1000),
        **busy,
        "processor milliseconds a run": {role: round(1000 * s / given.runs) for role, s in used.items()},
        "transactions a run, those that only read included": round((after[0] - before[0]) / given.runs, 1),
        "kilobytes a run": round((after[1] - before[1]) / given.runs / 1000, 1),
        "most connections": max(most),
        **told(given.url, runs),
        "load of the machine": os.getloadavg()[0],
    }


def told(url: str, runs: Sequence[str]) -> dict[str, Any]:
    """What the database tells of the runs: how they ended, and how long each took from POST on and from its start on."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(_TOLD, (list(runs),)).fetchall()
    return {
        "concluded": sum(reason == "concluded" for reason, *_ in rows),
        "attempts": sum(attempts for _, attempts, *_ in rows),
        "seconds of a run, from its start: median, 95 %": _spread([float(row[2]) for row in rows], 1),
        "seconds of a run, from POST: median, 95 %": _spread([float(row[3]) for row in rows], 1),
    }


def _spread(values: Sequence[float], scale: float) -> list[float]:
    ordered = sorted(values)
    return [
        round(scale * q, 1 if scale > 1 else 2)
        for q in (statistics.median(ordered), ordered[int(0.95 * len(ordered))])
    ]


def _one(connection: psycopg.Connection[Any], sql: str) -> int:
    row = connection.execute(sql).fetchone()
    return int(row[0]) if row else 0


async def run(given: argparse.Namespace, token: str, port: int) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        while True:
            try:
                await client.get("/healthz")
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        return await measure(given, client)


def roles(url: str, workers: Sequence[int], api: int) -> dict[str, Callable[[], float]]:
    """Who uses processors here, and how to tell how much."""
    found: dict[str, Callable[[], float]] = {
        "workers": lambda: seconds(workers),
        "API": lambda: seconds([api]),
        "this process: load and the model's server": time.process_time,
    }
    server = postmaster(url)
    return found | ({"PostgreSQL": lambda: family_seconds(server)} if server else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("url")
    for name, default in (
        ("runs", 200),
        ("workers", 4),
        ("slots", 2),
        ("turns", 3),
        ("port", 8431),
        ("alone", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, pause in (("think", 0.2), ("look", 0.0), ("pause", 0.02)):
        parser.add_argument(f"--{name}", type=float, default=pause)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="many-") as folder, Thinking(given.turns, given.think) as model:
        server = PostgresServer(given.url, Path(folder))
        create_queue_tables(server)
        settings = ModelSettings.model_validate(
            {"model": "scripted", "base_url": model.base_url, "reviewer": "none"}
        )
        workers = [
            FORKING.Process(target=work, args=(given.url, folder, given.slots, given.look))
            for _ in range(given.workers)
        ]
        api = FORKING.Process(target=answer, args=(given.url, folder, to_json(settings), given.port))
        with Store.open(server, SystemClock(), Redactor()) as store, processes(api, *workers):
            given.roles = roles(given.url, [worker.pid for worker in workers], api.pid)
            token = store.tokens.create("benchmark", "bench", ["run"])[1]
            json.dump(asyncio.run(run(given, token, given.port)), sys.stdout, indent=1)
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
