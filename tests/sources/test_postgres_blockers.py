"""Locks without a process, and standbys that receive nothing: what PostgreSQL's own views pass over."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
import pytest
import servers
from live_rig import one

from opsleuth.analysis.records import PlatformEvent, TimeRange
from opsleuth.tools.sources.live_source import LiveSource

WAITING = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '1.1 second'"


def now() -> TimeRange:
    at = datetime.now(UTC).timestamp()
    return TimeRange(at - 600, at + 60)


def source(dsn: str) -> LiveSource:
    return one(kind="postgres", dsn=dsn, name="orders-db")


async def events(dsn: str) -> list[PlatformEvent]:
    return list((await source(dsn).read(["events"], now())).events or ())


@contextmanager
def waiting(dsn: str, statement: str) -> Iterator[None]:
    """Another session that waits for a lock with this statement, longer than a second."""
    connection = psycopg.connect(dsn)

    def wait() -> None:
        try:
            connection.execute(statement)
        except psycopg.errors.QueryCanceled:
            return

    thread = threading.Thread(target=wait)
    thread.start()
    with psycopg.connect(dsn, autocommit=True) as watching:
        servers.until(lambda: watching.execute(WAITING).fetchone() is not None)
    try:
        yield
    finally:
        connection.cancel()
        thread.join()
        connection.close()


@pytest.fixture
def stock(postgres: str) -> Iterator[str]:
    """A database with a table that a prepared transaction has changed; no process holds its locks."""
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE TABLE held (id int PRIMARY KEY, n int)")
        admin.execute("INSERT INTO held VALUES (1, 0), (2, 0)")
        admin.execute("BEGIN; UPDATE held SET n = 1 WHERE id = 1; PREPARE TRANSACTION 'order-4711'")
        yield postgres
        admin.execute("ROLLBACK PREPARED 'order-4711'")
        admin.execute("DROP TABLE held")


@pytest.mark.parametrize(
    "statement", ["UPDATE held SET n = 2 WHERE id = 1", "ALTER TABLE held ADD COLUMN note text"]
)
async def test_a_lock_of_a_prepared_transaction_names_it(stock: str, statement: str) -> None:
    with waiting(stock, statement):
        [event] = await events(stock)
        [state] = (await source(stock).read(["objects"], now())).objects or ()
    assert event.reason == "LockWait"
    assert "1 session still waiting" in event.message
    assert "held by prepared transaction 'order-4711' of postgres since 20" in event.message
    assert "ROLLBACK PREPARED" in event.message
    assert isinstance(state.status, dict)
    assert state.status["prepared_transactions"][0]["gid"] == "order-4711"
    assert state.status["blocked"][0]["prepared"] == "order-4711"


async def test_a_prepared_transaction_that_blocks_nobody_is_no_event(stock: str) -> None:
    assert await events(stock) == []


async def test_a_standby_without_a_receiver_does_not_lag_by_zero() -> None:
    with servers.postgres() as primary, servers.standby(primary) as follower:
        with psycopg.connect(primary.dsn, autocommit=True) as writing:
            writing.execute("CREATE TABLE sold (id int)")
        servers.until(lambda: receives(follower.dsn))
        assert await events(follower.dsn) == []
        primary.stop()
        servers.until(lambda: not receives(follower.dsn))
        [event] = await events(follower.dsn)
        [state] = (await source(follower.dsn).read(["objects"], now())).objects or ()
    assert event.reason == "ReplicationBroken"
    assert "this standby has no WAL receiver; the last transaction it replayed is of 20" in event.message
    assert isinstance(state.status, dict)
    assert state.status["standby"]["receives"] is False
    assert state.status["standby"]["lag_seconds"] > 0


def receives(dsn: str) -> bool:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'"
        ).fetchone()
        return row is not None and row[0] == 1
