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
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn

from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.graph.prepare import Opened, Settings
from opsleuth.graph.wiring import Parts
from opsleuth.models.server.replies import Entry, Request
from opsleuth.models.server.serve import ModelServer
from opsleuth.models.settings import ModelSettings
from opsleuth.service.app import build
from opsleuth.service.intake import Desk
from opsleuth.service.office import Office
from opsleuth.service.queue import make_queue
from opsleuth.service.settings import service_of
from opsleuth.service.stores import Stores
from opsleuth.service.worker import Worker
from opsleuth.service.working import until_signal
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.outcome import FINISHED
from opsleuth.tools.sources.base import Sources
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["many", "opsleuth.graph.session", "opsleuth.models.assemble"])
_QUESTION = re.compile(r"(?:alone|run) \d+ of this measurement")
TABLE = {"requests_per_minute": 1e9}
_DATABASE = (
    "SELECT xact_commit, pg_database_size(datname) FROM pg_stat_database WHERE datname = current_database()"
)
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


def parts(look: float) -> Parts:
    async def run(arguments: Look, _: ToolContext) -> ToolResult:
        await asyncio.sleep(look)
        rows = [{"n": n, "value": 7} for n in range(50)]
        return ToolResult(
            record={"thing": arguments.thing, "value": 7, "rows": rows}, headline="it is 7", source="made up"
        )

    spec = ToolSpec(name="look", purpose="Look.", not_for="-", arguments=Look, example={"thing": 1}, run=run)
    return Parts(sources=lambda _: Opened(Sources()), specs=(spec,), effects=lambda _: ())


def work(url: str, folder: str, slots: int, look: float) -> None:
    """A worker's process."""
    worker = Worker(Server(url, Path(folder)), service_of(TABLE, "here"), SystemClock(), slots, parts(look))
    asyncio.run(until_signal(worker))


def answer(url: str, folder: str, model: Mapping[str, Any], port: int) -> None:
    """The API's process."""
    clock, server = SystemClock(), Server(url, Path(folder))
    settings = Settings(planner="model", model=model)
    desk = Desk(settings, lambda store, taken: store.jobs.put(taken), clock)
    office = Office(
        Stores(lambda: Store.open(server, clock, Redactor())), desk, service_of(TABLE, "here"), clock
    )
    uvicorn.run(build(office), port=port, log_config=None)


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


class Watch(threading.Thread):
    """The busiest core, and connections, while something goes on."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url, self._over = url, threading.Event()
        self.busiest: list[float] = []
        self.connections = 0

    def run(self) -> None:
        before = cores()
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._over.wait(1.0):
                now = cores()
                self.busiest.append(max(busy(a, b) for a, b in zip(before, now, strict=True)))
                before = now
                row = connection.execute(_CONNECTIONS).fetchone()
                self.connections = max(self.connections, row[0] - 1 if row else 0)

    def stop(self) -> None:
        self._over.set()
        self.join()


def cores() -> list[tuple[int, int]]:
    """Idle and total ticks of each core."""
    lines = [
        line.split()
        for line in Path("/proc/stat").read_text("ascii").splitlines()
        if re.match(r"cpu\d", line)
    ]
    return [(int(line[4]) + int(line[5]), sum(map(int, line[1:9]))) for line in lines]


def busy(before: tuple[int, int], after: tuple[int, int]) -> float:
    total = after[1] - before[1]
    return 1 - (after[0] - before[0]) / total if total else 0.0


def cpu(processes: Sequence[int]) -> float:
    """Processor seconds that these processes have used."""
    ticks = 0
    for pid in processes:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


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


async def all_over(store: Store, runs: list[str]) -> None:
    left = set(runs)
    while left:
        left -= {run for run in left if store.runs.find(run).status in FINISHED}
        await asyncio.sleep(0.05)


async def measure(given: argparse.Namespace, client: httpx.AsyncClient, store: Store) -> dict[str, Any]:
    alone = []
    for number in range(given.alone):
        began = time.perf_counter()
        run, _ = await post(client, f"alone {number} of this measurement")
        await all_over(store, [run])
        alone.append(time.perf_counter() - began)
    single = statistics.median(alone)
    before, used, watch = figures(given.url), cpu(given.pids), Watch(given.url)
    watch.start()
    began, runs, took = time.perf_counter(), [], []
    for number in range(given.runs):
        run, seconds = await post(client, f"run {number} of this measurement")
        runs.append(run)
        took.append(seconds)
        await asyncio.sleep(given.pause)
    await all_over(store, runs)
    seconds = time.perf_counter() - began
    watch.stop()
    used = cpu(given.pids) - used
    return {"worker CPU seconds a run": round(used / given.runs, 3)} | result(
        given, single, seconds, took, before, watch, store, runs
    )


def result(
    given: argparse.Namespace, single: float, seconds: float, took: list[float], before: tuple[int, int],
    watch: Watch, store: Store, runs: list[str],
) -> dict[str, Any]:  # fmt: skip
    time.sleep(1.5)  # the server tells its figures once a second
    after, slots = figures(given.url), given.workers * given.slots
    possible = slots / single
    return {
        "runs": given.runs,
        "slots": slots,
        "seconds of a single run, median": round(single, 3),
        "seconds of all": round(seconds, 2),
        "throughput, runs a second": round(given.runs / seconds, 3),
        "of what the slots could do": round(given.runs / seconds / possible, 3),
        "busiest core, median and most": [round(statistics.median(watch.busiest), 3), round(max(watch.busiest), 3)],
        "POST milliseconds, median and 95 %": [round(1000 * q, 1) for q in (statistics.median(took), sorted(took)[int(0.95 * len(took))])],
        "transactions a run": round((after[0] - before[0]) / given.runs, 1),
        "kilobytes a run": round((after[1] - before[1]) / given.runs / 1000, 1),
        "most connections": watch.connections,
        "concluded": sum(store.runs.find(run).stop_reason == "concluded" for run in runs),
        "load of the machine": os.getloadavg()[0],
    }  # fmt: skip


async def run(given: argparse.Namespace, token: str, port: int, store: Store) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        while True:
            try:
                await client.get("/healthz")
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        return await measure(given, client, store)


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
    for name, seconds in (("think", 0.2), ("look", 0.0), ("pause", 0.02)):
        parser.add_argument(f"--{name}", type=float, default=seconds)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="many-") as folder, Thinking(given.turns, given.think) as model:
        server = Server(given.url, Path(folder))
        make_queue(server)
        settings = ModelSettings.model_validate(
            {"model": "scripted", "base_url": model.base_url, "reviewer": "none"}
        )
        workers = [
            FORKING.Process(target=work, args=(given.url, folder, given.slots, given.look))
            for _ in range(given.workers)
        ]
        api = FORKING.Process(target=answer, args=(given.url, folder, to_json(settings), given.port))
        with Store.open(server, SystemClock(), Redactor()) as store, processes(api, *workers):
            given.pids = [worker.pid for worker in workers]
            token = store.tokens.create("benchmark", "bench", ["run"])[1]
            json.dump(asyncio.run(run(given, token, given.port, store)), sys.stdout, indent=1)
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
