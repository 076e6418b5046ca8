"""Every database against what networks and clocks do: a wire that breaks or goes silent in mid-answer, another zone."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import servers
from contract_server import Reply, contract_server
from cutting import Wire
from live_rig import one

from opsleuth.analysis.records import TimeRange
from opsleuth.state.clock import FakeClock
from opsleuth.tools.spec import ToolError, TransientError, UnavailableError

every = pytest.mark.parametrize("kind", ["postgres", "mariadb", "redis"])
SECONDS = {"postgres": {"statement_seconds": 1, "connect_seconds": 1}, "mariadb": {"statement_seconds": 1, "connect_seconds": 1}, "redis": {"timeout": 1}}  # fmt: skip


@dataclass(frozen=True)
class Databases:
    """The ports of real servers; `settings` are those of a source at a port, which may be that of a wire."""

    ports: Mapping[str, int]

    def settings(self, kind: str, port: int | None = None) -> dict[str, Any]:
        at = port or self.ports[kind]
        every: Mapping[str, Mapping[str, Any]] = {
            "postgres": {"dsn": f"host=127.0.0.1 port={at} user=postgres dbname=postgres sslmode=disable"},
            "mariadb": {"port": at, "user": "root"},
            "redis": {"url": f"redis://127.0.0.1:{at}/0"},
        }
        return {"kind": kind, "sample": 0.3, **every[kind]}


@pytest.fixture(scope="module")
def databases(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    with (
        servers.mariadb(tmp_path_factory.mktemp("mariadb")) as mariadb,
        servers.redis(tmp_path_factory.mktemp("redis")) as redis,
    ):
        port = int(psycopg.conninfo.conninfo_to_dict(postgres)["port"] or 0)
        yield Databases(
            {"postgres": port, "mariadb": mariadb, "redis": int(redis.rpartition(":")[2].partition("/")[0])}
        )


def now() -> TimeRange:
    at = datetime.now(UTC).timestamp()
    return TimeRange(at - 600, at + 60)


@every
@pytest.mark.parametrize("cut", [1, 40, 300, 1_000])
async def test_a_reset_in_mid_answer(databases: Databases, kind: str, cut: int) -> None:
    """It may heal: it is tried again."""
    with Wire(databases.ports[kind], cut, hang=False) as wire:
        with pytest.raises(TransientError):
            await one(**databases.settings(kind, wire.port)).read(["objects"], now())
        assert wire.broken.is_set()


@pytest.mark.slow
@every
@pytest.mark.parametrize("cut", [1, 1_000])
async def test_an_answer_that_stops_half_way(databases: Databases, kind: str, cut: int) -> None:
    with Wire(databases.ports[kind], cut, hang=True) as wire:
        source = one(**databases.settings(kind, wire.port) | SECONDS[kind])
        with pytest.raises((TimeoutError, ToolError)) as caught:
            await source.read(["objects"], now())
        assert wire.broken.is_set()
    assert isinstance(caught.value, TimeoutError | TransientError)


@every
async def test_a_web_server_at_its_address(databases: Databases, kind: str) -> None:
    with contract_server(lambda _: Reply("<html>Sign in</html>")) as server:
        port = server.server_address[1]
        with pytest.raises((UnavailableError, TransientError, TimeoutError)) as caught:
            await one(**databases.settings(kind, port) | SECONDS[kind]).read(["objects"], now())
    assert str(caught.value).startswith("s: ")


@pytest.mark.slow
@every
async def test_a_clock_five_minutes_off_is_said(databases: Databases, kind: str) -> None:
    ours = FakeClock(datetime.now(UTC) + timedelta(minutes=5))
    checks = {check.what: check for check in await one(ours, **databases.settings(kind)).check()}
    assert (checks["clock"].state, "NTP" in checks["clock"].remedy) == ("warning", True)
    assert re.search(r"by -(299|30[01]) s", checks["clock"].text)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this machine into another zone."""

    def put(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


@pytest.mark.slow
@every
async def test_rows_are_of_now_wherever_we_are(
    databases: Databases, kind: str, zone: Callable[[str], None]
) -> None:
    for name in ("Asia/Shanghai", "America/New_York"):
        zone(name)
        rows = (await one(**databases.settings(kind)).read(["objects"], now())).objects or ()
        assert rows
        assert all(abs((row.time or 0) - time.time()) < 60 for row in rows)
