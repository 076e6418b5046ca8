"""A Redis (or Valkey) server: commands by load, slow commands, latency spikes, clients, memory, replication.

Only commands that read are sent: INFO, SLOWLOG GET, LATENCY LATEST, CLIENT LIST, TIME, and AUTH before them; the connection
gets no name, and no database is selected. Commands are watched for a moment: how
often each is called now, and how much of the server's one thread it takes. Slow commands and spikes carry their own times.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from opsleuth.analysis.records import ObjectState, PlatformEvent, StatementLoad, TimeRange
from opsleuth.configuration.database_settings import RedisSettings
from opsleuth.configuration.secret_references import Secret
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources.database_source import DatabaseSource
from opsleuth.tools.sources.live_source import SKEW_SECONDS, FetchedRows, SourceCheck, failed_check
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError, ToolError, TransientError, UnavailableError

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client

REMEDY = "Redis needs the extra 'redis': pip install 'opsleuth[redis]'"
_SLOWLOG = 128
_FULL = 0.95
_WORD = 60
_KEPT = (
    "redis_version", "uptime_in_seconds", "role", "connected_clients", "blocked_clients", "maxclients", "used_memory",
    "maxmemory", "maxmemory_policy", "mem_fragmentation_ratio", "evicted_keys", "expired_keys", "rejected_connections",
    "instantaneous_ops_per_sec", "keyspace_hits", "keyspace_misses", "loading", "rdb_last_bgsave_status",
    "aof_last_write_status", "master_link_status", "master_last_io_seconds_ago", "connected_slaves",
)  # fmt: skip


class _SlowCommand(NamedTuple):
    """An entry of the slow log: when it began, how long it took in ms, and its command's first words."""

    time: float
    ms: float
    command: str


class RedisSource(DatabaseSource[RedisSettings]):
    """The source of kind `redis`."""

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        past = self.past(window)
        notes = (f"current values do not cover a window that {past}",) if past else ()
        async with self._client() as client:
            if capability == "statements":
                slow = await self._slow(client)
                rows: list[Any] = _group_slow_commands(self.database, slow, window)
                rows += await self._watched(client) if not past else []
                return FetchedRows(
                    {"statements": rows},
                    ("SLOWLOG GET", "INFO commandstats"),
                    notes,
                    _report_cut_slow_log(slow, window),
                )
            info = await self._info(client)
            if capability == "objects":
                return FetchedRows({"objects": [await self._state(client, info)] if not past else []}, ("INFO", "CLIENT LIST"), notes)  # fmt: skip
            spikes = await self._spikes(client)
            events = [e for e in (*spikes, *(self._wrong(info) if not past else ())) if e.time < window.end]
            return FetchedRows({"events": events}, ("INFO", "LATENCY LATEST"), notes)

    async def check(self) -> Sequence[SourceCheck]:
        async with self._client() as client:
            with self._said():
                seconds, _ = await client.time()
            info = await self._info(client)
            skew = seconds - self.clock.now().timestamp()
            checks = [
                SourceCheck(
                    "version", "ok", f"Redis {info.get('redis_version', '?')}, {info.get('role', '?')}"
                )
            ]
            well = abs(skew) <= SKEW_SECONDS
            checks.append(
                SourceCheck("clock", "ok", f"{skew:+.0f} s")
                if well
                else SourceCheck("clock", "warning", f"the server's clock differs by {skew:+.0f} s", "let NTP set both clocks")
            )  # fmt: skip
            for what, ask in (
                ("slow log", self._slow),
                ("latency", self._spikes),
                ("clients", self._clients),
            ):
                try:
                    await ask(client)
                    checks.append(SourceCheck(what, "ok", "can be read"))
                except ToolError as error:
                    checks.append(failed_check(what, error, "ACL SETUSER … +info +slowlog|get +latency|latest +client|list +time"))  # fmt: skip
            return checks

    @asynccontextmanager
    async def _client(self) -> "AsyncIterator[Client]":
        """Raises UnavailableError, NotPermittedError, TransientError, TimeoutError."""
        try:
            from redis.asyncio import Redis as Client  # an extra, loaded where a source needs it
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError:
            raise UnavailableError(f"{self.name}: {REMEDY}") from None
        own, seconds = self._settings, self._settings.timeout
        url, password = await asyncio.to_thread(self._secrets)
        secure: dict[str, Any] = {"ssl_ca_certs": own.ca_file} if own.ca_file else {}
        client = Client.from_url(
            _without_database(url), username=own.user, password=password, decode_responses=True, encoding_errors="backslashreplace",
            socket_connect_timeout=min(3.0, seconds), socket_timeout=seconds, driver_info=None,
            protocol=2, retry=Retry(NoBackoff(), 0), **secure,
        )  # fmt: skip
        try:
            yield client
        finally:
            await client.aclose()

    def _secrets(self) -> tuple[str, str | None]:
        own = self._settings
        url = self.vault.reveal(own.url) if isinstance(own.url, Secret) else own.url
        return url, self.vault.reveal(own.password) if own.password else None

    @contextmanager
    def _said(self) -> Iterator[None]:
        """What the server or the driver says, in the class of error that it is."""
        from redis import exceptions as said  # already loaded by who connected

        try:
            yield
        except (said.AuthenticationError, said.NoPermissionError, said.AuthorizationError) as error:
            raise NotPermittedError(f"{self.name}: Redis does not allow this: {error}") from None
        except said.TimeoutError as error:
            raise TimeoutError(f"{self.name}: Redis gave no answer in time ({error})") from None
        except said.BusyLoadingError as error:
            raise TransientError(f"{self.name}: Redis cannot serve at the moment: {error}") from None
        except said.ConnectionError as error:
            text = f"{self.name}: Redis: {error}"
            raise (UnavailableError if " connecting to " in text else TransientError)(text) from None
        except said.RedisError as error:
            denied = str(error).startswith(("NOAUTH", "NOPERM", "WRONGPASS"))
            raise (NotPermittedError if denied else UnavailableError)(
                f"{self.name}: Redis: {error}"
            ) from None

    async def _info(self, client: "Client", section: str | None = None) -> Mapping[str, Any]:
        with self._said():
            found: Mapping[str, Any] = await (client.info(section) if section else client.info())
        return found

    async def _slow(self, client: "Client") -> list[_SlowCommand]:
        with self._said():
            entries = await client.slowlog_get(_SLOWLOG)
        return [
            _SlowCommand(float(e["start_time"]), e["duration"] / 1_000, _command_summary(e["command"]))
            for e in entries
        ]

    async def _clients(self, client: "Client") -> Sequence[Mapping[str, str]]:
        with self._said():
            found: Sequence[Mapping[str, str]] = await client.client_list()
        return found

    async def _spikes(self, client: "Client") -> list[PlatformEvent]:
        with self._said():
            found: Any = await client.latency_latest()
        return [
            self._event(
                "LatencySpike", f"{event}: {last} ms, at most {most} ms since the start", time=float(at)
            )
            for event, at, last, most in (row[:4] for row in found)
        ]

    async def _watched(self, client: "Client") -> list[StatementLoad]:
        """What each command does in the next moment: calls, their time, and its share of the server's thread."""
        before, began = await self._info(client, "commandstats"), self.clock.monotonic()
        await asyncio.sleep(self._settings.sample)
        after = await self._info(client, "commandstats")
        seconds, now = max(self.clock.monotonic() - began, 0.001), self.clock.now().timestamp()
        loads = []
        for name, row in after.items():
            old = before.get(name, {"calls": 0, "usec": 0})
            calls, ms = row["calls"] - old["calls"], (row["usec"] - old["usec"]) / 1_000
            if calls > 0 and name.startswith("cmdstat_"):
                loads.append(
                    StatementLoad(
                        time=now, database=self.database, statement=name.removeprefix("cmdstat_").upper().replace("|", " "),
                        calls=float(calls), calls_per_sec=calls / seconds, mean_ms=ms / calls, total_ms=ms,
                        load=ms / 1_000 / seconds, load_unit="share of its thread",
                    )
                )  # fmt: skip
        return loads

    async def _state(self, client: "Client", info: Mapping[str, Any]) -> ObjectState:
        clients = await self._clients(client)
        status = {key: info[key] for key in _KEPT if key in info}
        status["databases"] = {key: value for key, value in info.items() if key.startswith("db") and key[2:].isdigit()}  # fmt: skip
        status["clients_by_command"] = dict(Counter(c.get("cmd", "?") for c in clients).most_common(10))
        status["clients_by_address"] = dict(
            Counter(c.get("addr", "?").rpartition(":")[0] for c in clients).most_common(10)
        )
        return ObjectState(
            time=self.clock.now().timestamp(), kind="Database", name=self.database, status=status
        )

    def _wrong(self, info: Mapping[str, Any]) -> Iterator[PlatformEvent]:
        """What is wrong now, by its own figures."""
        used, room = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
        if room and used > _FULL * room:
            evicted = int(info.get("evicted_keys", 0))
            yield self._event("MemoryFull", f"memory: {used:,} of {room:,} bytes (policy {info.get('maxmemory_policy')}), {format_count(evicted, 'key')} evicted since the start")  # fmt: skip
        clients, most = int(info.get("connected_clients", 0)), int(info.get("maxclients", 0))
        if most and clients > _FULL * most:
            yield self._event("ConnectionsExhausted", f"{clients} of {most} connections are used, {info.get('rejected_connections', 0)} refused since the start")  # fmt: skip
        if info.get("role") == "slave" and info.get("master_link_status") != "up":
            yield self._event("ReplicationBroken", f"replica lag: the link to its master is {info.get('master_link_status')}")  # fmt: skip
        for key in ("rdb_last_bgsave_status", "aof_last_write_status"):
            if info.get(key, "ok") != "ok":
                yield self._event("PersistenceFailed", f"{key}: {info[key]}")

    def _event(self, reason: str, message: str, time: float | None = None) -> PlatformEvent:
        return PlatformEvent(
            time=time or self.clock.now().timestamp(), source="redis", object=f"Database/{self.database}",
            type="Warning", reason=reason, message=message,
        )  # fmt: skip


def _without_database(url: str) -> str:
    """The server's address alone, without a proxy, which would share connections."""
    parts = urlsplit(url)
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name != "db"])
    return urlunsplit(parts._replace(path="", query=query))


def _command_summary(command: str | bytes) -> str:
    """The command and its first argument, a key mostly: what follows may be data of people."""
    command = command.decode("utf-8", "backslashreplace") if isinstance(command, bytes) else command
    return " ".join(word[:_WORD] for word in command.split()[:2])


def _report_cut_slow_log(entries: Sequence[_SlowCommand], window: TimeRange) -> tuple[str, ...]:
    """The server keeps the last entries alone (slowlog-max-len): what was slow before them in the window is gone."""
    oldest = min((entry.time for entry in entries), default=0.0)
    if len(entries) < _SLOWLOG or oldest <= window.start:
        return ()
    return (
        f"slow log: only the last {len(entries)} commands are kept, the oldest of {format_rfc3339(oldest)}",
    )


def _group_slow_commands(
    database: str, entries: Sequence[_SlowCommand], window: TimeRange
) -> list[StatementLoad]:
    """Slow commands that began in the window, grouped by their words."""
    found: dict[str, list[_SlowCommand]] = defaultdict(list)
    for entry in entries:
        if window.start <= entry.time < window.end:
            found[entry.command].append(entry)
    seconds = max(window.end - window.start, 1.0)
    return [
        StatementLoad(
            time=max(e.time for e in slow), database=database, statement=f"{command} (slow log)",
            calls=float(len(slow)), calls_per_sec=len(slow) / seconds, mean_ms=sum(e.ms for e in slow) / len(slow),
            total_ms=sum(e.ms for e in slow), load=sum(e.ms for e in slow) / 1_000 / seconds, load_unit="share of its thread",
        )
        for command, slow in found.items()
    ]  # fmt: skip
