"""The queue that workers take runs from: procrastinate, in the schema and the database of our own tables."""

import contextlib
from typing import Any

import procrastinate
import psycopg
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.schema import SchemaManager

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.postgres.connection import SCHEMA
from opsleuth.checkpoints.postgres.migration import open_database
from opsleuth.checkpoints.service.jobs import INDEXES, TABLE
from opsleuth.state.backoff import Backoff

_LOCK = "SELECT pg_advisory_xact_lock(1869640560)"
_THERE = "SELECT to_regclass(%s) IS NOT NULL"
RETRIES = Backoff(first=1.0, longest=60.0)
MOST_CONNECTIONS = 4
"""Of one worker, for the queue: fetch, finish, heartbeat, and one that listens."""


def create_queue_tables(server: PostgresServer) -> None:
    """Make our tables and the queue's where there are none. Several processes may do so at once."""
    with open_database(server) as database, database.using() as connection, connection.transaction():
        connection.execute(_LOCK)
        row = connection.execute(_THERE, (f"{SCHEMA}.{TABLE}",)).fetchone()
        if row is None or not row[0]:
            connection.execute(SchemaManager.get_schema())
        connection.execute(INDEXES)


def build_queue_app(server: PostgresServer) -> procrastinate.App:
    """The queue of this server, not opened yet.

    Its schema is set on each connection and not as a startup option, which a pooler in session mode refuses or passes over.
    One in transaction mode, which can hold neither settings nor LISTEN, was refused when the tables were made.
    """
    connector = procrastinate.PsycopgConnector(
        conninfo=server.url, configure=_set_schema, min_size=1, max_size=MOST_CONNECTIONS, timeout=10.0
    )
    return procrastinate.App(connector=connector)


async def _set_schema(connection: "psycopg.AsyncConnection[Any]") -> None:
    await connection.execute("SELECT set_config('search_path', %s, false)", (SCHEMA,))
    await connection.commit()


class RetryLaterError(Exception):
    """The job is to be taken up again, by whoever is free, in this many seconds."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds


class RetryUntilRunEnds(BaseRetryStrategy):
    """`Again` puts the job back; so does every other error, a little later: only a run's own end ends its job."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        wait = (
            exception.seconds if isinstance(exception, RetryLaterError) else RETRIES.seconds(job.attempts + 1)
        )
        return RetryDecision(retry_in={"seconds": round(wait)} if wait >= 1 else {"seconds": 0})


async def retry_stalled_jobs(app: procrastinate.App, seconds: float) -> int:
    """Put jobs back whose worker was not heard from for this long; returns how many. Others may do the same: one of them does."""
    count = 0
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=seconds):
        with contextlib.suppress(ConnectorException):
            await app.job_manager.retry_job(job)
            count += 1
    return count
