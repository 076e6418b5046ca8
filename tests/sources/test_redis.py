"""The Redis source against a real server: load, slow commands, spikes, memory, rights, and what goes wrong."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from redis import Redis as Client
from redis.exceptions import ResponseError

from opsleuth.analysis.records import Recording, TimeRange
from opsleuth.configuration.secret_references import Vault
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources.live_source import SourceRuntime
from opsleuth.tools.sources.open_sources import open_source
from opsleuth.tools.sources.redis import RedisSource
from opsleuth.tools.spec import NotPermittedError, UnavailableError


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.redis(tmp_path_factory.mktemp("redis"), "--maxmemory", "4mb") as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client.from_url(url) as client:
        client.flushall()
        client.slowlog_reset()
        yield client


def source(url: str, **settings: Any) -> RedisSource:
    stored = {"kind": "redis", "url": url, "name": "cache", "sample": 0.5} | settings
    found = open_source("cache-1", stored, SourceRuntime(Vault(), SystemClock()))
    assert isinstance(found, RedisSource)
    return found


def hour() -> TimeRange:
    now = SystemClock().now().timestamp()
    return TimeRange(now - 3_600, now + 60)


async def told(url: str, capability: Any, window: TimeRange | None = None) -> Recording:
    return await source(url).read([capability], window or hour())


async def test_commands_are_watched_while_they_run(url: str, client: Any) -> None:
    over = asyncio.Event()

    async def load() -> None:
        while not over.is_set():
            await asyncio.to_thread(client.get, "basket:1")

    loading = asyncio.create_task(load())
    rows = (await told(url, "statements")).statements or ()
    over.set()
    await loading
    (get,) = [row for row in rows if row.statement == "GET"]
    assert get.database == "cache"
    assert get.calls
    assert get.calls > 1
    assert 0 < (get.load or 0) < 1


async def test_a_slow_command_is_named_without_its_data(url: str, client: Any) -> None:
    client.execute_command("DEBUG", "SLEEP", "0.03")
    client.eval("local t = redis.call('TIME'); local e = t[1] * 1e6 + t[2] + 20000; repeat t = redis.call('TIME') until t[1] * 1e6 + t[2] > e; return 1", 1, "basket:9", "geheim-4711")  # fmt: skip
    recording = await told(url, "statements")
    slow = [row for row in recording.statements or () if row.statement.endswith("(slow log)")]
    assert "DEBUG SLEEP (slow log)" in {row.statement for row in slow}
    assert all((row.mean_ms or 0) > 5 for row in slow)
    assert "geheim" not in str(slow)
    events = (await told(url, "events")).events or ()
    assert any(event.reason == "LatencySpike" and "command" in event.message for event in events)
    past = TimeRange(hour().start - 7_200, hour().start - 3_600)
    assert not (await told(url, "statements", past)).statements


def fill(client: Any) -> None:
    for number in range(100_000):
        client.set(f"key:{number}", "x" * 10_000)


async def test_a_full_memory_is_an_event_and_the_state_says_why(url: str, client: Any) -> None:
    with pytest.raises(ResponseError, match="maxmemory"):
        fill(client)
    (full,) = [e for e in (await told(url, "events")).events or () if e.reason == "MemoryFull"]
    assert "policy noeviction" in full.message
    (state,) = (await told(url, "objects")).objects or ()
    status: Any = state.status
    assert status["maxmemory"] == 4 * 1024 * 1024
    assert status["databases"]["db0"]["keys"] > 10


async def test_doctor_says_right_by_right_what_is_missing(url: str, client: Any) -> None:
    client.execute_command("ACL", "SETUSER", "half", "on", ">pw", "+info", "+time", "+slowlog|get", "+client|setname")  # fmt: skip
    states = {c.what: c.state for c in await source(url).check()}
    assert set(states.values()) == {"ok"}
    half = open_source("cache-1", {"kind": "redis", "url": url, "user": "half", "password": {"command": ["echo", "pw"]}}, SourceRuntime(Vault(), SystemClock()))  # fmt: skip
    found = {check.what: check for check in await half.check()}
    assert (found["slow log"].state, found["latency"].state, found["clients"].state) == (
        "ok",
        "failed",
        "failed",
    )
    assert "+latency|latest" in found["latency"].remedy


async def test_wrong_credentials_and_nobody_there(url: str) -> None:
    wrong = source(url, user="nobody", password={"command": ["echo", "wrong"]})
    with pytest.raises(NotPermittedError):
        await wrong.read(["objects"], hour())
    with pytest.raises(UnavailableError):
        await source("redis://127.0.0.1:9/0").read(["objects"], hour())


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(TimeoutError):
            await source(f"redis://127.0.0.1:{port}/0", timeout=0.5).read(["objects"], hour())


async def test_a_server_that_speaks_something_else_is_told(tmp_path: Path) -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnavailableError, match="Redis"):
            await source(f"redis://127.0.0.1:{port}/0").read(["objects"], hour())


async def test_only_commands_that_read_are_sent(url: str, client: Any) -> None:
    """As the server itself saw them, with a database in the address."""
    with client.monitor() as monitor:
        at = url.replace("/0", "/3")
        await source(at, sample=0.2).read(["statements", "objects", "events"], hour())
        await source(at).check()
        marking: Any = Client.from_url(url, protocol=2, driver_info=None)
        marking.execute_command("ECHO", "end")
        sent = []
        while "ECHO end" not in (command := str(monitor.next_command()["command"])):
            sent.append(command)
    assert len(sent) > 5
    assert {" ".join(command.split()[:2]) for command in sent} <= {
        "INFO", "INFO commandstats", "SLOWLOG GET", "LATENCY LATEST", "CLIENT LIST", "TIME",
    }  # fmt: skip
