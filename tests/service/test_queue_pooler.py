"""The queue behind a real PgBouncer: at home in session mode, refused in transaction mode before a connection is used."""

import asyncio
from pathlib import Path

import pytest
import servers
from pgbouncer import pgbouncer

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import NotWritableError
from opsleuth.service.queue import build_queue_app, create_queue_tables

pytestmark = pytest.mark.slow
SECONDS = 60.0


async def work_once(server: PostgresServer) -> str:
    """Take one job that is given to the queue while a worker listens; what it did."""
    app, done = build_queue_app(server), asyncio.Event()

    @app.task(name="note_job")
    async def note_job() -> None:
        done.set()

    async with app.open_async():
        worker = asyncio.create_task(app.run_worker_async(fetch_job_polling_interval=300.0))
        await asyncio.sleep(1.0)  # it listens by now, and asks by itself no sooner than in five minutes
        await note_job.defer_async()
        await asyncio.wait_for(done.wait(), SECONDS)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    return "done"


@pytest.mark.parametrize("settings", ["", "ignore_startup_parameters = options,extra_float_digits"])
def test_a_pool_in_session_mode_carries_the_queue(
    postgres: servers.Postgres, tmp_path: Path, settings: str
) -> None:
    with pgbouncer(postgres.database(), mode="session", size=8, settings=settings) as pool:
        server = PostgresServer(pool.url, tmp_path)
        create_queue_tables(server)
        assert asyncio.run(work_once(server)) == "done"


def test_a_pool_in_transaction_mode_is_refused_before_the_queue_is_opened(
    postgres: servers.Postgres, tmp_path: Path
) -> None:
    with (
        pgbouncer(postgres.database(), mode="transaction", size=4) as pool,
        pytest.raises(NotWritableError, match="pool in session mode"),
    ):
        create_queue_tables(PostgresServer(pool.url, tmp_path))
