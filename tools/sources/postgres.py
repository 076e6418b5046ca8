"""A PostgreSQL database: statements by load, sessions and who holds them up, standbys, storage.

The session can only read, gives up a statement after some seconds and a lock after half of one, and needs no
more than the role pg_monitor. Statements are watched for two seconds: how often each is called now, how long it
takes and what its sessions wait for. What was before is known where snapshots are kept (`history`).
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from opsleuth.analysis.records import ObjectState, PlatformEvent, Span, StatementLoad
from opsleuth.state.words import counted
from opsleuth.tools.arguments import zulu
from opsleuth.tools.sources import postgres_sql as sql
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.database import DatabaseSource
from opsleuth.tools.sources.live import SKEW_SECONDS, Check, Fetched
from opsleuth.tools.sources.postgres_errors import connecting, said
from opsleuth.tools.sources.secrets import Secret
from opsleuth.tools.sources.settings import Postgres
from opsleuth.tools.spec import ToolError, Unavailable

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_LOOKS = 8
# PostgreSQL itself looks for deadlocks after a second; a shorter wait is everyday.
_WAIT_SECONDS = 1.0
_FULL = 0.9
_LAG_SECONDS = 30.0
_KEPT_WAL = 10e9
_HIDDEN = "<insufficient privilege>"

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Session:
    """One connection; `asked` holds the statements that were sent."""

    name: str
    connection: "AsyncConnection[dict[str, Any]]"
    asked: list[str]

    async def rows(self, statement: str, **parameters: Any) -> Sequence[_Row]:  # noqa: ANN401 - values of any column
        """The rows, and a line for the log of what was asked."""
        with said(self.name):
            cursor = await self.connection.execute(statement, parameters)
            found = await cursor.fetchall()
        shown = " ".join(statement.split())
        self.asked.append(f"{shown[:400]} -> {counted(len(found), 'row')}")
        return found

    async def one(self, statement: str, **parameters: Any) -> _Row:  # noqa: ANN401 - values of any column
        return (await self.rows(statement, **parameters))[0]


class PostgresSource(DatabaseSource[Postgres]):
    """The source of kind `postgres`."""

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[_Session]:
        """Raises NotPermitted, Unavailable, Transient, TimeoutError."""
        settings = self._settings
        dsn, password = await asyncio.to_thread(self._secrets)
        connection = await connecting(self.name, dsn, password, settings.connect_seconds)
        try:
            session = _Session(self.name, connection, [])
            await session.rows(sql.SESSION, statement_ms=f"{settings.statement_seconds * 1000:.0f}ms")
            session.asked.clear()
            yield session
        finally:
            await connection.close()

    def _secrets(self) -> tuple[str, str | None]:
        """How to connect; read in a thread, for a command may take its time."""
        settings = self._settings
        dsn = self.vault.reveal(settings.dsn) if isinstance(settings.dsn, Secret) else settings.dsn
        return dsn, self.vault.reveal(settings.password) if settings.password else None

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        past = self.past(window)
        if capability == "statements":
            return await self._statements(window, current=not past)
        if past:
            return Fetched(
                {capability: []},
                notes=(f"sessions, locks and standbys are known only as they are now; the window {past}",),
            )
        async with self._session() as session:
            rows = await (self._objects(session) if capability == "objects" else self._events(session))
            return Fetched({capability: rows}, tuple(session.asked))

    # --- statements ------------------------------------------------------------------------------------------

    async def _statements(self, window: Span, *, current: bool) -> Fetched:
        history, notes = self._settings.history, []
        if history is None and not current:
            notes.append(
                "statements are known only as they are now: set history to a query over stored snapshots"
            )
            return Fetched({"statements": []}, notes=tuple(notes))
        async with self._session() as session:
            loads = []
            if history is not None:
                loads = await self._history(
                    session, history, Span(window.start - self._settings.before, window.end)
                )
            if current:
                loads += await self._watched(session)
            if any(load.statement == _HIDDEN for load in loads):
                notes.append(
                    "the text of some statements is hidden: GRANT pg_monitor TO the role of this source"
                )
            return Fetched({"statements": loads}, tuple(session.asked), tuple(notes))

    async def _history(self, session: _Session, history: str, span: Span) -> list[StatementLoad]:
        start, end = (datetime.fromtimestamp(t, UTC) for t in (span.start, span.end))
        # Inside of another, the text can only be one statement that reads.
        rows = await session.rows(f"SELECT * FROM ({history.rstrip('; ')}) AS history", start=start, end=end)  # noqa: S608 - the operator's own
        try:
            return [self._recorded(row) for row in rows]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unavailable(
                f"{self.name}: `history` must give captured_at (timestamptz), statement, calls, and total_ms or mean_ms "
                f"({type(error).__name__}: {error})"
            ) from None

    def _recorded(self, row: _Row) -> StatementLoad:
        return StatementLoad(
            time=row["captured_at"].timestamp(),
            database=self.database,
            statement=str(row["statement"]),
            calls=_number(row.get("calls")),
            calls_per_sec=_number(row.get("calls_per_sec")),
            mean_ms=_number(row.get("mean_ms")),
            total_ms=_number(row.get("total_ms")),
            load=_number(row.get("load")),
            load_unit=row.get("load_unit"),
            waits={str(k): float(v) for k, v in (row.get("waits") or {}).items()},
            rows=_number(row.get("rows")),
        )

    async def _watched(self, session: _Session) -> list[StatementLoad]:
        """What each statement does in the next seconds: calls and their time, and what its sessions wait for."""
        most = self._settings.max_statements
        before = {row["queryid"]: row for row in await session.rows(sql.STATEMENTS, most=most)}
        began = self.clock.monotonic()
        waits: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        texts: dict[int, str] = {}
        for _ in range(_LOOKS):
            for row in await session.rows(sql.ACTIVE):
                if row["queryid"] is not None:
                    waits[row["queryid"]][row["wait"]] += row["sessions"] / _LOOKS
                    texts[row["queryid"]] = row["query"]
            await asyncio.sleep(self._settings.sample / _LOOKS)
        after = await session.rows(sql.STATEMENTS, most=most)
        seconds = max(self.clock.monotonic() - began, 0.001)
        now = self.clock.now().timestamp()
        known = {row["queryid"]: _delta(before.get(row["queryid"]), row, seconds) for row in after}
        return [
            StatementLoad(
                time=now,
                database=self.database,
                statement=row["query"],
                load=sum(waits[key].values()) if key in waits else row["calls_per_sec"] * (row["mean_ms"] or 0.0) / 1000.0,
                load_unit="sessions",
                waits=dict(waits.get(key, {})),
                **{name: row[name] for name in ("calls", "calls_per_sec", "mean_ms", "total_ms", "rows", "extra")},
            )
            for key, row in (known | {k: _unfinished(t) for k, t in texts.items() if k not in known}).items()
            if row["calls"] or key in waits
        ]  # fmt: skip

    # --- objects and events ----------------------------------------------------------------------------------

    async def _objects(self, session: _Session) -> list[ObjectState]:
        about = await session.one(sql.ABOUT)
        status: dict[str, Any] = {
            "version": about["version"],
            "up_since": zulu(about["up_since"]),
            "size_bytes": about["size_bytes"],
            "max_connections": about["max_connections"],
            "sessions": [dict(row) for row in await session.rows(sql.CONNECTIONS)],
            "blocked": [dict(row) for row in await session.rows(sql.BLOCKED)][:20],
            "tables": [dict(row) for row in await session.rows(sql.TABLES)],
        }
        status |= await self._replication(session, is_standby=about["is_standby"])
        return [
            ObjectState(time=self.clock.now().timestamp(), kind="Database", name=self.database, status=status)
        ]

    async def _replication(self, session: _Session, *, is_standby: bool) -> dict[str, Any]:
        if is_standby:
            return {"standby": dict(await session.one(sql.OWN_LAG))}
        return {
            "standbys": [dict(row) for row in await session.rows(sql.STANDBYS)],
            "slots": [dict(row) for row in await session.rows(sql.SLOTS)],
        }

    async def _events(self, session: _Session) -> list[PlatformEvent]:
        """What is wrong now, in the words that PostgreSQL itself has for it."""
        about = await session.one(sql.ABOUT)
        sessions = await session.rows(sql.CONNECTIONS)
        replication = await self._replication(session, is_standby=about["is_standby"])
        events = [
            *_full(about, sessions),
            *_held_up(await session.rows(sql.BLOCKED)),
            *_behind(replication),
        ]
        now = self.clock.now().timestamp()
        return [
            PlatformEvent(
                time=now, source="postgresql", object=f"Database/{self.database}", type="Warning",
                reason=reason, message=message, count=count, first_time=since,
            )
            for reason, message, since, count in events
        ]  # fmt: skip

    # --- doctor ----------------------------------------------------------------------------------------------

    async def check(self) -> Sequence[Check]:
        async with self._session() as session:
            about = await session.one(sql.ABOUT)
            skew = about["now"] - self.clock.now().timestamp()
            checks = [
                Check("version", "ok", f"PostgreSQL {about['version']}"),
                Check("rights", "ok", "member of pg_monitor")
                if about["may_monitor"]
                else Check(
                    "rights", "warning", "other users' statements are hidden", "GRANT pg_monitor TO the role"
                ),
                Check("clock", "ok", f"{skew:+.0f} s")
                if abs(skew) <= SKEW_SECONDS
                else Check(
                    "clock",
                    "warning",
                    f"the server's clock differs by {skew:+.0f} s",
                    "let NTP set both clocks",
                ),
            ]
            if not about["has_statements"]:
                return [*checks, Check("statements", "failed", "pg_stat_statements is not installed in this database",
                                       "add it to shared_preload_libraries, then CREATE EXTENSION pg_stat_statements")]  # fmt: skip
            try:
                await session.rows(sql.STATEMENTS, most=1)
            except (ToolError, TimeoutError) as error:
                return [
                    *checks,
                    Check(
                        "statements",
                        "failed",
                        str(error),
                        "add pg_stat_statements to shared_preload_libraries",
                    ),
                ]
            return [*checks, Check("statements", "ok", "pg_stat_statements is read")]


_Event = tuple[str, str, float | None, int | None]


def _full(about: _Row, sessions: Sequence[_Row]) -> list[_Event]:
    used, room = sum(row["sessions"] for row in sessions), about["max_connections"] - about["reserved"]
    if used < _FULL * room:
        return []
    states = ", ".join(f"{row['sessions']} {row['state']}" for row in sessions)
    return [
        (
            "ConnectionsExhausted",
            f"{used} of {room} connections are used (max_connections {about['max_connections']}): {states}",
            None,
            None,
        )
    ]


def _held_up(blocked: Sequence[_Row]) -> list[_Event]:
    """One event for each session that holds others up."""
    by_holder: dict[int, list[_Row]] = defaultdict(list)
    for row in blocked:
        if row["seconds"] >= _WAIT_SECONDS:
            by_holder[row["holder"]].append(row)
    events: list[_Event] = []
    for holder, rows in by_holder.items():
        first = min(rows, key=lambda row: row["since"])
        waiting = len({row["pid"] for row in rows})
        message = (
            f"{counted(waiting, 'session')} still waiting for {first['mode']} on {first['relation']}, the longest for {first['seconds']:.0f} s; "
            f"held by process {holder}, {first['holder_state']} since {zulu(first['holder_since'])}, "
            f"its last statement: {' '.join(first['holder_query'].split())[:200]}"
        )
        events.append(("LockWait", message, first["since"], waiting))
    return events


def _behind(replication: Mapping[str, Any]) -> list[_Event]:
    events: list[_Event] = []
    own = replication.get("standby", {}).get("lag_seconds") or 0.0
    if own > _LAG_SECONDS:
        events.append(("ReplicationLag", f"replica lag: this standby is {own:.0f} s behind", None, None))
    for row in replication.get("standbys", ()):
        if row["replay_lag_seconds"] > _LAG_SECONDS:
            text = f"replica lag of {row['name']}: {row['replay_lag_seconds']:.0f} s, {row['behind_bytes']:,.0f} bytes behind"
            events.append(("ReplicationLag", text, None, None))
    for row in replication.get("slots", ()):
        if not row["active"] and row["kept_bytes"] > _KEPT_WAL:
            text = f"slot {row['name']} is not read and keeps {row['kept_bytes']:,.0f} bytes of WAL: running out of disk space"
            events.append(("SlotInactive", text, None, None))
    return events


def _delta(before: _Row | None, after: _Row, seconds: float) -> dict[str, Any]:
    start = (
        before
        if before and before["calls"] <= after["calls"]
        else {"calls": 0.0, "total_ms": 0.0, "rows": 0.0}
    )
    calls, total = after["calls"] - start["calls"], after["total_ms"] - start["total_ms"]
    if before is None:  # it was not among the heaviest a moment ago: its counters may be years old
        calls, total = 0.0, 0.0
    return {
        "query": after["query"],
        "calls": calls,
        "calls_per_sec": calls / seconds,
        "total_ms": total,
        "mean_ms": total / calls if calls else None,
        "rows": after["rows"] - start["rows"] if calls else None,
        "extra": {
            "calls_since_reset": after["calls"],
            "mean_ms_since_reset": after["total_ms"] / max(after["calls"], 1.0),
        },
    }


def _unfinished(text: str) -> dict[str, Any]:
    """A statement that runs and has not yet ended once."""
    return {
        "query": text,
        "calls": None,
        "calls_per_sec": None,
        "total_ms": None,
        "mean_ms": None,
        "rows": None,
        "extra": None,
    }


def _number(value: Any) -> float | None:  # noqa: ANN401 - any column
    return None if value is None else float(value)
