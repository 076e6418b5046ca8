"""The MySQL source against a real MariaDB: digests, the slow log, locks, connections, rights, and what goes wrong."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
import servers

from opsleuth.analysis.records import Recording, Span
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources.live import LiveSource, Surroundings
from opsleuth.tools.sources.mysql import without_values
from opsleuth.tools.sources.opening import open_one
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.spec import NotPermitted, Unavailable

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
    return open_one("db-1", stored, Surroundings(Vault(), SystemClock()))


def hour() -> Span:
    now = SystemClock().now().timestamp()
    return Span(now - 3_600, now + 60)


async def told(port: int, capability: Any, window: Span | None = None) -> Recording:
    return await source(port).read([capability], window or hour())


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


async def test_the_slow_log_tells_of_the_window(port: int) -> None:
    with connected(port) as client, client.cursor() as cursor:
        for number in (1, 2):
            cursor.execute(SLEEPY, (number,))
    (slow,) = [row for row in (await told(port, "statements")).statements or () if "SLEEP" in row.statement and (row.extra or {}).get("from")]  # fmt: skip
    assert slow.calls == 2
    assert (slow.mean_ms or 0) > 150
    assert slow.statement.endswith("WHERE id IN (?) OR email <> ? LIMIT ?")
    past = Span(hour().start - 7_200, hour().start - 3_600)
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


async def test_doctor_says_right_by_right_what_is_missing(port: int) -> None:
    well = {check.what: check for check in await source(port).check()}
    assert {check.state for check in well.values()} == {"ok"}
    half = source(port, user="half", password={"command": ["echo", "pw"]})
    found = {check.what: check for check in await half.check()}
    assert found["slow log"].state == "failed"
    assert "GRANT PROCESS" in found["slow log"].remedy


async def test_what_goes_wrong_has_its_class(port: int) -> None:
    with pytest.raises(NotPermitted):
        await source(port, user="nobody", password={"command": ["echo", "x"]}).read(["objects"], hour())
    with pytest.raises(Unavailable):
        await source(9).read(["objects"], hour())
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        await source(silent.getsockname()[1], connect_seconds=1).read(["objects"], hour())


async def test_the_session_cannot_write(port: int) -> None:
    def write(session: Any) -> None:
        session.rows("INSERT INTO shop.orders VALUES (99, 'x')")

    with pytest.raises(Unavailable, match="READ ONLY"):
        await source(port)._with(write)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT * FROM a WHERE b = 'it''s' AND c = 12.5", "SELECT * FROM a WHERE b = ? AND c = ?"),
        ("INSERT INTO t2 VALUES (1, 'x'),\n (2, \"y\")", "INSERT INTO t2 VALUES (?), (?)"),
        ("SELECT 0xFF, 'a\\'b'", "SELECT ?, ?"),
    ],
)
def test_values_are_left_out(query: str, shown: str) -> None:
    assert without_values(query) == shown
