"""How long storms of alerts take, and what another team notices: a real PostgreSQL, a real server, real requests.

Run: PYTHONPATH=src:tests/support python benchmarks/storms.py [--alerts 50 500 1000] [--stored 0 300000] [--message 100]

Each alert is of another service, so that each becomes a run. Meanwhile another team lists its runs every 50 ms. On a machine with
other work the seconds say little: judge by the processor milliseconds of API and PostgreSQL an alert, which are the same for few and many.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import servers
import uvicorn
from generated_runs import generate_ended_runs
from usage import Usage, family_seconds, postmaster, seconds

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import parse_service_settings
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.api_context import ApiContext
from opsleuth.service.app import build_app
from opsleuth.service.intake import RequestIntake
from opsleuth.service.intake_lanes import IntakeLanes
from opsleuth.service.queue import create_queue_tables
from opsleuth.service.store_pool import StorePool
from opsleuth.state.clock import SystemClock, format_timestamp

TABLE = {"requests_per_minute": 1e9, "body_bytes": 10_000_000}
PORT = 18_931
CALLS = {"calls": {"kind": "declared", "calls": {f"web-{n}": [f"service-{n}"] for n in range(100)}}}


def answer_requests(url: str, folder: str) -> None:
    """The API's process."""
    clock, server = SystemClock(), PostgresServer(url, Path(folder))
    intake = RequestIntake(RunSettings(sources=CALLS), lambda store, taken: store.jobs.put_all(taken), clock)
    pools = [StorePool(lambda: Store.open(server, clock, Redactor()), size=size) for size in (4, 2)]
    context = ApiContext(
        pools[0], IntakeLanes(pools[1]), intake, parse_service_settings(TABLE, "here"), clock
    )
    uvicorn.run(build_app(context), port=PORT, log_config=None)


@contextmanager
def serving_process(url: str, folder: str) -> Iterator[tuple[str, int]]:
    """The API on a port of this machine while the block runs; its address and its process."""
    process = multiprocessing.get_context("spawn").Process(target=answer_requests, args=(url, folder))
    process.start()
    address = f"http://127.0.0.1:{PORT}"
    try:
        for _ in range(600):
            try:
                httpx.get(f"{address}/healthz")
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield address, process.pid or 0
    finally:
        process.terminate()
        process.join(30)


def make_messages(count: int, size: int) -> list[dict[str, Any]]:
    """Alerts of distinct services, in messages of this size, as Alertmanager sends them."""
    started = format_timestamp(SystemClock().now())
    alerts = [
        {
            "status": "firing",
            "labels": {
                "alertname": "Slow",
                "service": f"service-{n}",
                "severity": "critical",
                "pod": f"p-{n}",
            },
            "annotations": {"summary": f"service-{n} answers slowly"},
            "startsAt": started,
        }
        for n in range(count)
    ]
    return [{"version": "4", "alerts": alerts[at : at + size]} for at in range(0, count, size)]


async def read_meanwhile(client: httpx.AsyncClient, token: str, over: asyncio.Event) -> list[float]:
    """Milliseconds of each look of another team at its runs, until the storm is over."""
    took = []
    while not over.is_set():
        began = time.perf_counter()
        answer = await client.get("/api/tasks", headers={"Authorization": f"Bearer {token}"}, timeout=120)
        answer.raise_for_status()
        took.append(1_000 * (time.perf_counter() - began))
        await asyncio.sleep(0.05)
    return took


async def send_storm(
    address: str, tokens: tuple[str, str], count: int, size: int
) -> tuple[int, float, list[float]]:
    """How many runs the alerts started, in how many seconds, and the reads of the other team meanwhile, sorted."""
    over = asyncio.Event()
    async with httpx.AsyncClient(base_url=address) as sender, httpx.AsyncClient(base_url=address) as reader:
        reading = asyncio.create_task(read_meanwhile(reader, tokens[1], over))
        began, started = time.perf_counter(), 0
        for message in make_messages(count, size):
            answer = await sender.post(
                "/api/webhooks/am",
                json=message,
                headers={"Authorization": f"Bearer {tokens[0]}"},
                timeout=900,
            )
            answer.raise_for_status()
            started += answer.json()["started"]
        took = time.perf_counter() - began
        over.set()
        return started, took, sorted(await reading)


def measure_storm(url: str, folder: str, stored: int, count: int, size: int) -> str:
    """One line of the table."""
    with Store.open(PostgresServer(url, Path(folder)), SystemClock(), Redactor()) as store:
        tokens = (
            store.tokens.create("storm", "shop", ["run"])[1],
            store.tokens.create("reader", "bank", ["view"])[1],
        )
    server = postmaster(url)
    with serving_process(url, folder) as (address, process):
        usage = Usage({"api": lambda: seconds([process]), "database": lambda: family_seconds(server or 0)})
        started, took, reads = asyncio.run(send_storm(address, tokens, count, size))
        used = {role: 1_000 * spent / count for role, spent in usage.since().items()}
    p95 = reads[int(0.95 * (len(reads) - 1))]
    return (
        f"| {stored} | {count} | {took:.2f} s | {1_000 * took / count:.1f} ms | {used['api']:.1f} and {used['database']:.1f} ms "
        f"| {started} | {statistics.median(reads):.0f} and {p95:.0f} ms of {len(reads)} reads | {os.getloadavg()[0]:.0f} |"
    )


def measure_on(postgres: servers.Postgres, folder: str, stored: int, counts: list[int], size: int) -> None:
    """All storms over so many stored runs, each on a copy of one database."""
    original = PostgresServer(postgres.database(), Path(folder))
    create_queue_tables(original)
    if stored:
        generate_ended_runs(original.url, stored)
    for count in counts:
        print(measure_storm(postgres.database(original.url), folder, stored, count, size), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alerts", type=int, nargs="+", default=[50, 500, 1_000, 5_000])
    parser.add_argument("--stored", type=int, nargs="+", default=[0, 300_000])
    parser.add_argument("--message", type=int, default=100, help="alerts in one message")
    asked = parser.parse_args()
    print(
        "| stored runs | alerts | taken in | one alert | processor of API and PostgreSQL, one alert | runs "
        "| another team's reads, median and 95 % | load |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder, servers.postgres() as postgres:
        for stored in asked.stored:
            measure_on(postgres, folder, stored, asked.alerts, asked.message)


if __name__ == "__main__":
    main()
