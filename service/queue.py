"""The queue that workers take runs from: procrastinate, in the schema and the database of our own tables."""

import contextlib
from typing import Any

import procrastinate
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.schema import SchemaManager
from psycopg.conninfo import conninfo_to_dict

from opsleuth.checkpoints.jobs import TABLE
from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.postgres.connecting import SCHEMA
from opsleuth.checkpoints.postgres.opening import open_database

_LOCK = "SELECT pg_advisory_xact_lock(1869640560)"
_THERE = "SELECT to_regclass(%s) IS NOT NULL"
MOST_CONNECTIONS = 4
"""Of one worker, for the queue: fetch, finish, heartbeat, and one that listens."""


def make_queue(server: Server) -> None:
    """Make our tables and the queue's where there are none. Several processes may do so at once."""
    with open_database(server) as database, database.using() as connection, connection.transaction():
        connection.execute(_LOCK)
        row = connection.execute(_THERE, (f"{SCHEMA}.{TABLE}",)).fetchone()
        if row is None or not row[0]:
            connection.execute(SchemaManager.get_schema())


def queue_of(server: Server) -> procrastinate.App:
    """The queue of this server, not opened yet."""
    given = str(conninfo_to_dict(server.url).get("options") or "")
    kwargs: dict[str, Any] = {"options": f"{given} -csearch_path={SCHEMA}".strip()}
    connector = procrastinate.PsycopgConnector(
        conninfo=server.url, kwargs=kwargs, min_size=1, max_size=MOST_CONNECTIONS, timeout=10.0
    )
    return procrastinate.App(connector=connector)


class Again(Exception):
    """The job is to be taken up again, by whoever is free, in so many seconds."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds


class RetryUntilRunEnds(BaseRetryStrategy):
    """`Again` puts the job back; so does every other error, a little later: only a run's own end ends its job."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        wait = exception.seconds if isinstance(exception, Again) else min(2.0 ** min(job.attempts, 6), 60.0)
        return RetryDecision(retry_in={"seconds": round(wait)} if wait >= 1 else {"seconds": 0})


async def take_over(app: procrastinate.App, seconds: float) -> int:
    """Put jobs back whose worker was not heard of for so long; how many. Others may do the same: one of them does."""
    count = 0
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=seconds):
        with contextlib.suppress(ConnectorException):
            await app.job_manager.retry_job(job)
            count += 1
    return count
