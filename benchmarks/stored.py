"""What looking costs, by how many runs are stored: the sweep of an idle worker, a page of runs, figures, questions.

Run: PYTHONPATH=src:tests/support python benchmarks/stored.py [--runs 300 300000 3000000]

A real PostgreSQL on this machine; the runs have ended, but for 20 that wait for a person and 20 that are queued. Milliseconds of the
whole call in a process that does nothing else: the least, the median and the 95th percentile of 100; and those of the server's
processors, by which to judge on a machine that has other work.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psycopg
import servers
from generated_runs import generate_ended_runs
from usage import family_seconds, postmaster

from opsleuth.checkpoints.approvals import ApprovalRequest
from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import Status

OPEN_RUNS = 20
REPEATS = 100


def add_open_runs(store: Store) -> None:
    """Runs that are not over: some wait for a person, others are in line."""
    for number in range(2 * OPEN_RUNS):
        status = Status.WAITING if number % 2 else Status.QUEUED
        run = store.runs.create(
            RunRow(id=f"inv-20261130-open{number:03}", question="q", project="shop", status=status)
        )
        taken = IntakeRow(run=run.id, team="shop", severity=2, sender="s", request=None, digest="d")
        store.intake.put(taken)
        if status is Status.WAITING:
            store.approvals.request(
                run.id, ApprovalRequest(about="call", subject=run.id, digest="d" * 64, document={})
            )
        else:
            store.jobs.put(taken)


def list_looks(store: Store) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is measured, by name."""
    yield "sweep", store.jobs.put_lost
    yield "page of runs", lambda: store.runs.list(project="shop", limit=50)
    yield "page of waiting runs", lambda: store.runs.list(project="shop", status=Status.WAITING, limit=50)
    yield "page of failed runs", lambda: store.runs.list(project="shop", status=Status.FAILED, limit=50)
    yield "page behind", lambda: store.runs.list(project="shop", limit=50, before="inv-20261101-g000000150")
    yield "search", lambda: store.runs.search("service 77", "shop")
    yield "counts", lambda: store.runs.counts("shop")
    yield "questions", lambda: store.approvals.pending("shop", 100)
    yield "jobs by state", store.jobs.counts


def measure_look(look: Callable[[], object], used: Callable[[], float]) -> str:
    took, before = [], used()
    for _ in range(REPEATS):
        began = time.perf_counter()
        look()
        took.append(1_000 * (time.perf_counter() - began))
    took.sort()
    server = 1_000 * (used() - before) / REPEATS
    return f"{took[0]:.2f}, {statistics.median(took):.2f} and {took[int(0.95 * (REPEATS - 1))]:.2f} ms; {server:.1f} ms"


def measure_over(postgres: servers.Postgres, folder: str, runs: int) -> Mapping[str, str]:
    server = PostgresServer(postgres.database(), Path(folder))
    create_queue_tables(server)
    generate_ended_runs(server.url, runs, with_alerts=False)
    with Store.open(server, SystemClock(), Redactor()) as store:
        add_open_runs(store)
        while store.runs.merge_counts():
            pass
        vacuum_tables(server.url)
        parent = postmaster(server.url) or 0
        return {name: measure_look(look, lambda: family_seconds(parent)) for name, look in list_looks(store)}


def vacuum_tables(url: str) -> None:
    """What the server does by itself within minutes; here everything was stored at once."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[300, 300_000, 3_000_000])
    counts = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder, servers.postgres() as postgres:
        found = [measure_over(postgres, folder, count) for count in counts]
    print(
        "| least, median and 95 %; processor of the server |"
        + "".join(f" {count} stored |" for count in counts)
    )
    print("| --- |" + " --- |" * len(counts))
    for name in found[0]:
        print(f"| {name} |" + "".join(f" {one[name]} |" for one in found))


if __name__ == "__main__":
    main()
