"""A real PostgreSQL: what it is busy with, who holds whom up, and every way in which it refuses."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from live_rig import SPAN, ask, one
from servers import free_port
from stored_elsewhere import HISTORY, rows

from opsleuth.analysis.records import TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.sources.postgres import PostgresSource
from opsleuth.tools.spec import NotPermittedError, TransientError, UnavailableError


def now() -> TimeRange:
    at = datetime.now(UTC).timestamp()
    return TimeRange(at - 600, at + 60)


def source(dsn: str, **more: object) -> LiveSource:
    return one(kind="postgres", dsn=dsn, name="orders-db", sample=0.4, **more)


async def test_a_history_is_that_of_the_folder(postgres: str, case: Path) -> None:
    found = await source(postgres, history=HISTORY).read(["statements"], SPAN)
    recorded = CaseSource.open(case).recording(["statements"])
    assert [(s.time, s.statement, s.mean_ms, s.waits) for s in found.statements or ()] == [
        (s.time, s.statement, s.mean_ms, s.waits) for s in recorded.statements or ()
    ]
    assert len(found.statements or ()) == len(rows(case / "statements.jsonl"))


@contextmanager
def busy(dsn: str, work: Callable[["psycopg.Connection[tuple[object, ...]]"], object]) -> Iterator[None]:
    """Another session that works until the block ends."""
    connection = psycopg.connect(dsn)

    def worked() -> None:
        try:
            work(connection)
        except psycopg.errors.QueryCanceled:
            return

    thread = threading.Thread(target=worked)
    thread.start()
    try:
        yield
    finally:
        connection.cancel()
        thread.join()
        connection.close()


async def test_a_statement_that_runs_now_is_seen_with_what_it_waits_for(postgres: str) -> None:
    with busy(postgres, lambda c: c.execute("SELECT pg_sleep(60)")):
        _until(postgres, "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%(60)'")
        found = await source(postgres).read(["statements"], now())
    [asleep] = [s for s in found.statements or () if "pg_sleep" in s.statement]
    assert asleep.load == pytest.approx(1, abs=0.3)
    assert list(asleep.waits) == ["Timeout:PgSleep"]
    assert (asleep.load_unit, asleep.mean_ms) == ("sessions", None)


async def test_statements_are_counted_while_they_are_watched(postgres: str) -> None:
    stop = threading.Event()

    def many(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        while not stop.is_set():
            connection.execute("SELECT count(*) FROM generate_series(1, 1000) AS counted")

    with busy(postgres, many):
        await source(postgres).read(["statements"], now())  # by then it is among the known ones
        found = await source(postgres).read(["statements"], now())
        stop.set()
    [counted] = [s for s in found.statements or () if "counted" in s.statement]
    assert counted.calls_per_sec is not None
    assert counted.calls_per_sec > 0
    assert counted.mean_ms is not None
    assert counted.mean_ms > 0
    assert "1000" not in counted.statement


async def test_who_holds_a_lock_that_others_wait_for(postgres: str) -> None:
    with psycopg.connect(postgres) as holder:
        holder.execute("CREATE TABLE IF NOT EXISTS stock (id int)")
        holder.commit()
        holder.execute("LOCK TABLE stock")
        later = FakeClock(datetime.now(UTC))
        with busy(postgres, lambda c: c.execute("SELECT * FROM stock")):
            [waits] = _until(
                postgres,
                "SELECT b.pid FROM pg_stat_activity a JOIN LATERAL unnest(pg_blocking_pids(a.pid)) b(pid) ON true"
                " WHERE clock_timestamp() - a.query_start > interval '1.1 second'",
            )
            events = (
                await one(later, kind="postgres", dsn=postgres, name="orders-db").read(["events"], now())
            ).events
            objects = (await source(postgres).read(["objects"], now())).objects or ()
        holder.rollback()
    [event] = events or ()
    assert (event.object, event.reason, event.count) == ("Database/orders-db", "LockWait", 1)
    assert "still waiting for AccessShareLock on stock" in event.message
    assert f"held by process {waits}, idle in transaction" in event.message
    status = objects[0].status
    assert isinstance(status, dict)
    assert status["blocked"][0]["relation"] == "stock"
    assert status["size_bytes"] > 1_000_000


def _until(dsn: str, statement: str) -> tuple[object, ...]:
    """The first row of the statement, asked until there is one."""
    with psycopg.connect(dsn, autocommit=True) as watching:
        while (row := watching.execute(statement).fetchone()) is None:
            watching.execute("SELECT pg_sleep(0.05)")
        return row


async def test_what_is_known_of_now_is_not_told_of_the_past(postgres: str) -> None:
    for capability, tool in (
        ("events", "events_list"),
        ("objects", "objects_get"),
        ("statements", "database_statements"),
    ):
        reading = source(postgres)
        result = await ask([reading], tool)
        assert result.status is ResultStatus.NOT_RECORDED, capability
        assert "only as they are now" in " ".join(reading.warnings)


async def test_nothing_can_be_written(postgres: str) -> None:
    reading = source(postgres, history="CREATE TABLE written (i int)")
    with pytest.raises(UnavailableError, match="syntax error"):
        await reading.read(["statements"], SPAN)
    reading = source(postgres, history="SELECT 1; DROP TABLE statement_history")
    with pytest.raises(UnavailableError, match="syntax error"):
        await reading.read(["statements"], SPAN)
    reading = source(postgres, history="SELECT nextval('statement_history_place_seq')")
    with pytest.raises(UnavailableError, match="read-only transaction"):
        await reading.read(["statements"], SPAN)


async def test_a_history_without_the_columns(postgres: str) -> None:
    reading = source(postgres, history="SELECT now() AS captured_at")
    with pytest.raises(UnavailableError, match="`history` must give captured_at"):
        await reading.read(["statements"], SPAN)


async def test_a_long_statement_is_given_up(postgres: str) -> None:
    reading = source(postgres, history="SELECT pg_sleep(60)", statement_seconds=0.1)
    with pytest.raises(TimeoutError, match="statement timeout"):
        await reading.read(["statements"], SPAN)


async def test_a_role_that_may_not(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS guest")
        admin.execute("CREATE ROLE guest LOGIN")
    reading = source(postgres.replace("user=postgres", "user=guest"), history=HISTORY)
    with pytest.raises(NotPermittedError, match="GRANT pg_monitor"):
        await reading.read(["statements"], SPAN)
    rights = next(check for check in await reading.check() if check.what == "rights")
    assert (rights.state, rights.remedy) == ("warning", "GRANT pg_monitor TO the role")


async def test_a_role_that_is_not_there(postgres: str) -> None:
    with pytest.raises(NotPermittedError, match="does not accept the credentials"):
        await source(postgres.replace("user=postgres", "user=nobody")).read(["objects"], now())


async def test_a_database_without_pg_stat_statements(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS bare")
        admin.execute("CREATE DATABASE bare")
    reading = source(postgres.replace("dbname=postgres", "dbname=bare"))
    with pytest.raises(UnavailableError, match="shared_preload_libraries, then CREATE EXTENSION"):
        await reading.read(["statements"], now())
    assert [check.state for check in await reading.check() if check.what == "statements"] == ["failed"]


async def test_nobody_there() -> None:
    with pytest.raises(UnavailableError, match="Connection refused"):
        await source(f"host=127.0.0.1 port={free_port()} user=x").read(["objects"], now())


@pytest.mark.slow
async def test_a_hang_and_a_connection_that_breaks_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"host=127.0.0.1 port={silent.getsockname()[1]} user=x sslmode=disable"
        with pytest.raises(TimeoutError, match="no answer in time"):
            await source(dsn, connect_seconds=1).read(["objects"], now())
        thread = threading.Thread(target=_hang_up, args=(silent,))
        thread.start()
        with pytest.raises(TransientError, match="broke off"):
            await source(dsn, connect_seconds=2).read(["objects"], now())
        thread.join()


def _hang_up(silent: socket.socket) -> None:
    for _ in range(2):  # the first is the one that was not answered
        silent.accept()[0].close()


async def test_a_clock_five_minutes_off(postgres: str) -> None:
    ours = FakeClock(datetime.now(UTC) + timedelta(minutes=5))
    reading = one(ours, kind="postgres", dsn=postgres)
    assert isinstance(reading, PostgresSource)
    clock = next(check for check in await reading.check() if check.what == "clock")
    assert clock.state == "warning"
    assert "-300 s" in clock.text
