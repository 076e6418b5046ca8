"""What a run costs where it is kept, in a file and on a PostgreSQL server of this machine: a run of 8 turns.

Prints commits, bytes of the database and of its log of writes, connections, and seconds, per run. A server counts
every transaction as a commit, also one that only reads.
Run with the folder of the tests' support on the path: PYTHONPATH=tests/support python benchmarks/places.py [RUNS]
"""

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import servers
from steps import LOOK, Counted

from opsleuth.checkpoints.database_urls import Place, PostgresServer
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

TURNS = 8
Figures = dict[str, float]
Count = Callable[[], Figures]


def investigate(place: Place, runs: int) -> None:
    """So many runs, one after the other, through one store."""
    with Store.open(place, SystemClock(), Redactor()) as store:
        for number in range(runs):
            script = [
                Decision(
                    reason="look",
                    calls=(CallRequest(tool="look", arguments={"thing": f"{number}-{turn}"}),),
                )
                for turn in range(TURNS)
            ]
            planner = ScriptedPlanner(script)
            parts = AttemptParts(
                sources=lambda _: OpenedSources(RunSources()), planner=lambda _, p=planner: p, specs=(LOOK,)
            )  # type: ignore[misc]
            request = StartRequest(
                run=f"inv-20261129-{number:04d}",
                question="what is the matter",
                since=datetime(2026, 11, 29, 13, tzinfo=UTC),
                until=datetime(2026, 11, 29, 14, tzinfo=UTC),
                limits={"turns": TURNS},
            )
            asyncio.run(Runner(store, parts=parts).start(request))


def measured(place: Place, runs: int, count: Count) -> Figures:
    """The figures per run; a first run, which makes the tables, does not count."""
    Store.open(place, SystemClock(), Redactor()).close()
    before, start = count(), time.perf_counter()
    investigate(place, runs)
    seconds, after = time.perf_counter() - start, count()
    return {name: (after[name] - before[name]) / runs for name in after} | {"seconds": seconds / runs}


def in_file(path: Path) -> Count:
    return lambda: {"commits": Counted.commits, "bytes kept": path.stat().st_size}


def on_server(url: str) -> Count:
    def count() -> Figures:
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
            row: Any = connection.execute(
                "SELECT xact_commit, pg_database_size(datname), pg_current_wal_lsn() - '0/0'::pg_lsn "
                "FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
        return {"commits": float(row[0]), "bytes kept": float(row[1]), "bytes of log": float(row[2])}

    return count


def main(runs: int) -> None:
    sqlite3.connect = lambda *a, **k: CONNECT(*a, **k, factory=Counted)  # type: ignore[assignment,misc]
    with tempfile.TemporaryDirectory() as folder, servers.postgres() as server:
        path, url = Path(folder) / "runs.db", server.database()
        found = {
            "SQLite": measured(path, runs, in_file(path)) | {"connections": 2},
            "PostgreSQL": measured(PostgresServer(url, Path(folder)), runs, on_server(url))
            | {"connections": 1},
        }
    for name, figures in found.items():
        print(f"{name:<12}", *(f"{value:>12,.1f} {what}" for what, value in figures.items()))


CONNECT = sqlite3.connect

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
