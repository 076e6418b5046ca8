"""Many runs with approved changes while workers are killed, PostgreSQL is restarted and connections are cut.

Prints what was done to them and what became of them. As a program: `service_chaos.py --runs 100 --seed 1`.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psycopg
import servers
from loop_rig import concludes
from service_rig import Api, serving
from worker_rig import Place, started

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import StoreError
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import FINISHED_STATUSES

WORKERS, CONCURRENCY = 4, 4
SCRIPT = (
    {"reason": "look", "calls": [{"tool": "look", "arguments": {"thing": "a", "seconds": 0.2}}]},
    {"reason": "mend", "calls": [{"tool": "restart", "arguments": {"thing": "a", "seconds": 0.2}}]},
    {"reason": "look", "calls": [{"tool": "look", "arguments": {"thing": "b", "seconds": 0.2}}]},
    concludes("It is 7.", "E1"),
)
_CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


class Chaos:
    """One experiment: the world, its workers, and what is done to them."""

    def __init__(self, folder: Path, postgres: servers.Postgres, seed: int, every: float) -> None:
        self.world, self.postgres, self.every = Place(folder), postgres, every
        self.server = PostgresServer(postgres.database(), folder)
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.workers: list[ForkServerProcess] = []
        self.over = asyncio.Event()

    async def run(self, runs: int) -> Mapping[str, Any]:
        """Start the runs, disturb until all have ended; the counts."""
        create_queue_tables(self.server)
        self.world.write(*SCRIPT)
        async with serving(
            self.server, enqueue=lambda store, taken: store.jobs.put_all(taken), requests_per_minute=1e9
        ) as api:
            started_at = time.monotonic()
            ids = [await api.start(f"run {n}") for n in range(runs)]
            token = api.token("view", "approve")
            self.workers = [self._worker() for _ in range(WORKERS)]
            disturbing = [
                asyncio.create_task(work)
                for work in (self._kill(), self._restart(), self._cut(), self._approve(api, token))
            ]
            try:
                await self._ended(ids, disturbing)
            finally:
                self.over.set()
                for task in disturbing:
                    task.cancel()
                await asyncio.gather(*disturbing, return_exceptions=True)
                self._stop()
        return self._result(ids, time.monotonic() - started_at)

    def _worker(self) -> ForkServerProcess:
        return started(self.world.folder, self.server, CONCURRENCY, most_strikes=20)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)

    async def _kill(self) -> None:
        while not self.over.is_set():
            await self._pause(self.every)
            place = self.random.randrange(WORKERS)
            self.workers[place].kill()
            self.workers[place].join()
            self.workers[place] = self._worker()
            self.counts["workers killed"] += 1

    async def _restart(self) -> None:
        for _ in range(2):
            await self._pause(7 * self.every)
            await asyncio.to_thread(self.postgres.stop)
            await asyncio.to_thread(self.postgres.start)
            self.counts["PostgreSQL restarted"] += 1

    async def _cut(self) -> None:
        name = self.server.url.rpartition("/")[2]
        while not self.over.is_set():
            await self._pause(2.5 * self.every)
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.postgres.dsn) as connection:
                row = connection.execute(_CUT, (name,)).fetchone()
                self.counts["connections cut"] += row[0] if row else 0

    async def _approve(self, api: Api, token: str) -> None:
        """A person who approves every change, and who looks what became of one that nobody saw."""
        while not self.over.is_set():
            answer = await api("GET", "/api/approvals?limit=500", token)
            for asked in answer.json().get("approvals", []):
                await self._answer(api, token, asked)
            await self._pause(0.3)

    async def _answer(self, api: Api, token: str, asked: Mapping[str, Any]) -> None:
        path = f"/api/tasks/{asked['task_id']}/approvals/{asked['id']}"
        body: dict[str, Any] = {"digest": asked["digest"]}
        if asked["about"] == "call":
            answer = await api("POST", f"{path}/approve", token, json=body)
        else:
            happened = f"{asked['task_id']} a" in self.world.lines("done")
            body |= {"outcome": "happened" if happened else "absent", "reason": "I looked"}
            answer = await api("POST", f"{path}/resolve", token, json=body)
        self.counts[f"answers on a {asked['about']}: {answer.status_code}"] += 1

    async def _ended(self, ids: list[str], disturbing: list["asyncio.Task[None]"]) -> None:
        while True:
            for task in disturbing:
                if task.done() and task.exception():
                    task.result()
            with contextlib.suppress(StoreError), Store.open(self.server, SystemClock(), Redactor()) as store:
                if all(store.runs.find(run).status in FINISHED_STATUSES for run in ids):
                    return
            await self._pause(1.0)

    def _stop(self) -> None:
        for process in self.workers:
            process.kill()
            process.join()

    def _result(self, ids: list[str], seconds: float) -> Mapping[str, Any]:
        with Store.open(self.server, SystemClock(), Redactor()) as store:
            rows = [store.runs.find(run) for run in ids]
            effects = [effect for run in ids for effect in store.effects.list(run)]
            broken = [run for run in ids if store.events.verify(run).broken_at is not None]
            silent = [run for run in ids if store.reports.get(run) is None]
        done = self.world.lines("done")
        return {
            "runs": len(ids),
            "seconds": round(seconds, 1),
            **dict(sorted(self.counts.items())),
            "ended": dict(Counter(f"{row.status}: {row.stop_reason}" for row in rows)),
            "attempts": sum(row.attempt for row in rows),
            "changes made": len(done),
            "changes made twice": len(self.world.more_than_once()),
            "changes in the ledger": dict(Counter(effect.status for effect in effects)),
            "happened and not known to have": sorted(
                set(done) - {f"{e.run} a" for e in effects if e.happened}
            ),
            "ended without a report": silent,
            "broken traces": broken,
        }


def experiment(runs: int, seed: int, every: float) -> Mapping[str, Any]:
    """The whole experiment with servers of its own."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as name, servers.postgres() as postgres:
        return asyncio.run(Chaos(Path(name), postgres, seed, every).run(runs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills")
    given = parser.parse_args()
    result = experiment(given.runs, given.seed, given.every)
    print(json.dumps(result, indent=2))
    wrong = (
        "changes made twice",
        "happened and not known to have",
        "ended without a report",
        "broken traces",
    )
    return int(any(result[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
