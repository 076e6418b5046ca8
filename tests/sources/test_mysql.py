"""The MySQL source against a real MariaDB: digests, the slow log, locks, connections, rights, and what goes wrong."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pymysql
import pytest
import servers

from opsleuth.analysis.records import Recording, TimeRange
from opsleuth.configuration.secret_references import Vault
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources import mysql_sql as sql
from opsleuth.tools.sources.live_source import LiveSource, SourceRuntime
from opsleuth.tools.sources.mysql import limit_statement, replace_literals
from opsleuth.tools.sources.open_sources import open_source
from opsleuth.tools.spec import NotPermittedError, UnavailableError

SLEEPY = "SELECT id, SLEEP(0.2) FROM shop.orders WHERE id IN (%s, 7) OR email <> 'geheim-4711' LIMIT 1"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with servers.mariadb(tmp_path_factory.mktemp("db")) as number:
        with connected(number) as root, root.cursor() as cursor:
            for statement in (
                "CREATE DATABASE shop",
                "CREATE TABLE shop.orders (id INT PRIMARY KEY, email VARCHAR(100))",
                "INSERT INTO shop.orders VALUES (1, 'a@example.com'), (2, 'b@example.com')",
                "CREATE USER half@'127.0.0.1' IDENTIFIED BY 'pw'",
                "GRANT SELECT ON shop.* TO half@'127.0.0.1'",
            ):
                cursor.execute(statement)
        yield number


def connected(port: int) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)


def source(port: int, **settings: Any) -> LiveSource:
    stored = {"kind": "mariadb", "port": port, "user": "root", "name": "orders-db", "sample": 0.5} | settings
    return open_source("db-1", stored, SourceRuntime(Vault(), SystemClock()))


def hour() -> TimeRange:
    now = SystemClock().now().timestamp()
    return TimeRange(now - 3_600, now + 60)


async def told(port: int, capability: Any, window: TimeRange | None = None) -> Recording:
    return await source(port).read([capability], window or hour())


@pytest.mark.slow
async def test_statements_are_watched_while_they_run(port: int) -> None:
    over = threading.Event()

    def load() -> None:
        with connected(port) as client, client.cursor() as cursor:
            while not over.is_set():
                cursor.execute("SELECT COUNT(*) FROM shop.orders WHERE email = 'geheim-4711'")

    loading = asyncio.create_task(asyncio.to_thread(load))
    mine: list[Any] = []
    while not mine:  # a digest must have been there before to have a rate
        rows = (await told(port, "statements")).statements or ()
        mine = [row for row in rows if "email" in row.statement]
    over.set()
    await loading
    assert (mine[0].calls or 0) > 1
    assert "geheim" not in str(rows)


@pytest.mark.slow
async def test_the_slow_log_tells_of_the_window(port: int) -> None:
    with connected(port) as client, client.cursor() as cursor:
        for number in (1, 2):
            cursor.execute(SLEEPY, (number,))
    (slow,) = [row for row in (await told(port, "statements")).statements or () if "SLEEP" in row.statement and (row.extra or {}).get("from")]  # fmt: skip
    assert slow.calls == 2
    assert (slow.mean_ms or 0) > 150
    assert slow.statement.endswith("WHERE id IN (?) OR email <> ? LIMIT ?")
    past = TimeRange(hour().start - 7_200, hour().start - 3_600)
    assert not (await told(port, "statements", past)).statements


async def test_a_lock_names_who_holds_it(port: int) -> None:
    with connected(port) as holder, connected(port) as waiter:
        with holder.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE shop.orders SET email = 'x' WHERE id = 1")

        def wait() -> None:
            with waiter.cursor() as cursor:
                cursor.execute("UPDATE shop.orders SET email = 'y' WHERE id = 1")

        waiting = asyncio.create_task(asyncio.to_thread(wait))
        events: Any = ()
        while not events:  # bounded by the lock's own 50 s
            events = (await source(port).read(["events"], hour())).events
        state: Any = ((await told(port, "objects")).objects or ())[0].status
        holder.rollback()
        await waiting
    assert events[0].reason == "LockWait"
    assert f"held by session {holder.thread_id()}" in events[0].message
    assert "orders" in events[0].message
    assert state["lock_waits"]
    assert state["size_bytes"]["shop"] > 0


async def test_a_lock_of_a_prepared_xa_transaction_has_no_session(port: int) -> None:
    with connected(port) as gone, gone.cursor() as cursor:
        for statement in (
            "XA START 'pay'",
            "DELETE FROM shop.orders WHERE id = 2",
            "XA END 'pay'",
            "XA PREPARE 'pay'",
        ):
            cursor.execute(statement)
    with connected(port) as waiter:

        def wait() -> None:
            with waiter.cursor() as cursor:
                cursor.execute("UPDATE shop.orders SET email = 'y' WHERE id = 2")

        waiting = asyncio.create_task(asyncio.to_thread(wait))
        message = ""
        # Bounded by the lock's own 50 s. The session may still be on its way out, and the server renews its view of
        # locks only after 100 ms without a reader.
        while "prepared XA" not in message:
            await asyncio.sleep(0.2)
            events = (await source(port).read(["events"], hour())).events or ()
            message = " ".join(event.message for event in events)
        with connected(port) as root, root.cursor() as cursor:
            cursor.execute("XA ROLLBACK 'pay'")
        await waiting
    assert "held by a prepared XA transaction without a session" in message
    assert "XA RECOVER" in message


async def test_doctor_says_right_by_right_what_is_missing(port: int) -> None:
    well = {check.what: check for check in await source(port).check()}
    assert {check.state for check in well.values()} == {"ok"}
    half = source(port, user="half", password={"command": ["echo", "pw"]})
    found = {check.what: check for check in await half.check()}
    assert found["slow log"].state == "failed"
    assert "GRANT PROCESS" in found["slow log"].remedy


@pytest.mark.parametrize("capability", ["objects", "events"])
async def test_a_part_that_may_not_be_read_costs_itself_only(port: int, capability: Any) -> None:
    half = await source(port, user="half", password={"command": ["echo", "pw"]}).read([capability], hour())
    assert getattr(half, capability) is not None
    assert any(text.startswith("lock waits: ") and "GRANT PROCESS" in text for text in half.missed)


@pytest.mark.slow
async def test_what_goes_wrong_has_its_class(port: int) -> None:
    with pytest.raises(NotPermittedError):
        await source(port, user="nobody", password={"command": ["echo", "x"]}).read(["objects"], hour())
    with pytest.raises(UnavailableError):
        await source(9).read(["objects"], hour())
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        await source(silent.getsockname()[1], connect_seconds=1).read(["objects"], hour())


async def test_the_session_cannot_write(port: int) -> None:
    """Each read follows what the server logs as the start of a transaction, and in such a one the server refuses a write."""
    noted = await log_queries(port, ["objects"])
    begun = [before for before, text in pairwise(noted) if text.startswith("SET STATEMENT")]
    assert set(begun) == {"START TRANSACTION READ ONLY"}
    with connected(port) as same, same.cursor() as cursor:
        cursor.execute(begun[0])
        with pytest.raises(pymysql.err.OperationalError, match="READ ONLY"):
            cursor.execute("INSERT INTO shop.orders VALUES (99, 'x')")


async def log_queries(port: int, capabilities: Sequence[Any], *, is_checked: bool = False) -> list[str]:
    """The statements that the server's general log has of a read of the source, in order, without line breaks."""
    with connected(port) as root, root.cursor() as cursor:
        cursor.execute("SET GLOBAL log_output = 'TABLE'")
        cursor.execute("TRUNCATE mysql.general_log")
        cursor.execute("SET GLOBAL general_log = ON")
        await source(port, sample=0.2).read(capabilities, hour())
        if is_checked:
            await source(port).check()
        cursor.execute("SET GLOBAL general_log = OFF")
        cursor.execute(
            "SELECT thread_id, command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log"
        )
        rows = [row for row in cursor.fetchall() if row[0] != root.thread_id()]
    return [" ".join(text.split()) for _, kind, text in rows if kind == "Query"]


async def test_nothing_is_set_on_a_session(port: int) -> None:
    """What the server noted of our connections: transactions that read, each ended, each with its own time limit."""
    asked = await log_queries(port, ["statements", "objects", "events"], is_checked=True)
    limit = "SET STATEMENT max_statement_time = 5, lock_wait_timeout = 1 FOR "
    reads = [text for text in asked if text.startswith((f"{limit}SELECT", f"{limit}SHOW"))]
    assert len(reads) > 10
    assert asked == [part for read in reads for part in ("START TRANSACTION READ ONLY", read, "ROLLBACK")]


def test_mysql_limits_a_select_by_a_hint() -> None:
    """By its manual: the hint stands right behind the first SELECT; what is shown has no limit."""
    for statement in (sql.STATEMENTS, sql.SLOW, sql.SIZES, sql.SESSIONS, sql.WAITS_MYSQL):
        limited = limit_statement(statement, 5.0, is_maria=False)
        assert limited.startswith("SELECT /*+ MAX_EXECUTION_TIME(5000) */ ")
        assert limited.count("MAX_EXECUTION_TIME") == 1
    assert limit_statement(sql.STATUS, 5.0, is_maria=False) == sql.STATUS


@pytest.mark.slow
async def test_a_long_statement_is_given_up(port: int) -> None:
    with pytest.raises(TimeoutError, match="1969"):
        await source(port, statement_seconds=0.5).with_session(lambda s: s.rows("SELECT SLEEP(9)"))  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT * FROM a WHERE b = 'it''s' AND c = 12.5", "SELECT * FROM a WHERE b = ? AND c = ?"),
        ("INSERT INTO t2 VALUES (1, 'x'),\n (2, \"y\")", "INSERT INTO t2 VALUES (?), (?)"),
        ("SELECT 0xFF, 'a\\'b'", "SELECT ?, ?"),
    ],
)
def test_values_are_left_out(query: str, shown: str) -> None:
    assert replace_literals(query) == shown
