"""A PostgreSQL database: statements by load, sessions and who holds them up, standbys, storage.

Each read is a transaction of its own that can only read, gives up a statement after some seconds and a lock after half
of one, and is rolled back; nothing is set on the session, for a pooler may lend it to another client next. The role
pg_monitor is enough. Statements are watched for two seconds: how often each is called now, how long it
takes and what its sessions wait for. What was before is known where snapshots are kept (`history`).
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, SupportsFloat

from opsleuth.analysis.records import ObjectState, PlatformEvent, StatementLoad, TimeRange
from opsleuth.configuration.database_settings import PostgresSettings
from opsleuth.configuration.secret_references import Secret
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources import postgres_sql as sql
from opsleuth.tools.sources.checked_sql import can_check_sql
from opsleuth.tools.sources.database_source import DatabaseSource
from opsleuth.tools.sources.live_source import SKEW_SECONDS, FetchedRows, SourceCheck
from opsleuth.tools.sources.postgres_errors import (
    RefusedStatementError,
    open_connection,
    roll_back,
    translate_driver_errors,
)
from opsleuth.tools.sources.postgres_queries import CLOSED_SESSION, run_checked_sql
from opsleuth.tools.sources.source_protocols import Capability, QueryAnswer, QueryLanguage, SourceQuery
from opsleuth.tools.spec import InvalidArgumentsError, ToolError, UnavailableError

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
class _PostgresSession:
    """One connection; `asked` holds the statements that were sent, `begin` is how each transaction begins."""

    name: str
    connection: "AsyncConnection[dict[str, Any]]"
    begin: str
    asked: list[str]

    async def rows(self, statement: str, **parameters: object) -> Sequence[_Row]:
        """The rows, and a line for the log of what was asked."""
        with translate_driver_errors(self.name):
            try:
                await self.connection.execute(self.begin)
                cursor = await self.connection.execute(statement, parameters)
                found = await cursor.fetchall()
            finally:
                await roll_back(self.connection)
        shown = " ".join(statement.split())
        self.asked.append(f"{shown[:400]} -> {format_count(len(found), 'row')}")
        return found

    async def one(self, statement: str, **parameters: object) -> _Row:
        return (await self.rows(statement, **parameters))[0]


class PostgresSource(DatabaseSource[PostgresSettings]):
    """The source of kind `postgres`."""

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[_PostgresSession]:
        """Raises NotPermittedError, UnavailableError, TransientError, TimeoutError."""
        settings = self._settings
        dsn, password = await asyncio.to_thread(self._secrets)
        connection = await open_connection(self.name, dsn, password, settings.connect_seconds)
        try:
            begin = sql.BEGIN.format(statement_ms=settings.statement_seconds * 1000)
            yield _PostgresSession(self.name, connection, begin, [])
        finally:
            await connection.close()

    def _secrets(self) -> tuple[str, str | None]:
        """How to connect; read in a thread, for a command may take its time."""
        settings = self._settings
        dsn = self.vault.reveal(settings.dsn) if isinstance(settings.dsn, Secret) else settings.dsn
        return dsn, self.vault.reveal(settings.password) if settings.password else None

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        past = self.past(window)
        if capability == "statements":
            return await self._statements(window, current=not past)
        if past:
            return FetchedRows(
                {capability: []},
                notes=(f"sessions, locks and standbys are known only as they are now; the window {past}",),
            )
        async with self._session() as session:
            rows = await (self._objects(session) if capability == "objects" else self._events(session))
            return FetchedRows({capability: rows}, tuple(session.asked))

    @property
    def query_languages(self) -> frozenset[QueryLanguage]:
        """SQL, where its parser is installed."""
        return frozenset({"sql"}) if can_check_sql() else frozenset()

    async def run_query(self, language: QueryLanguage, query: SourceQuery) -> QueryAnswer:
        del language
        async with asyncio.timeout(self.fetch_seconds), self._session() as session:
            closed = replace(session, begin=f"{session.begin}; {CLOSED_SESSION}")
            try:
                return await run_checked_sql(closed.rows, query, self._settings.query_tables)
            except RefusedStatementError as error:
                if error.is_mistake:
                    raise InvalidArgumentsError(str(error)) from None
                raise

    # --- statements ------------------------------------------------------------------------------------------

    async def _statements(self, window: TimeRange, *, current: bool) -> FetchedRows:
        history, notes = self._settings.history, []
        if history is None and not current:
            notes.append(
                "statements are known only as they are now: set history to a query over stored snapshots"
            )
            return FetchedRows({"statements": []}, notes=tuple(notes))
        async with self._session() as session:
            loads = []
            if history is not None:
                loads = await self._history(
                    session, history, TimeRange(window.start - self._settings.before, window.end)
                )
            if current:
                loads += await self._watched(session)
            if any(load.statement == _HIDDEN for load in loads):
                notes.append(
                    "the text of some statements is hidden: GRANT pg_monitor TO the role of this source"
                )
            return FetchedRows({"statements": loads}, tuple(session.asked), tuple(notes))

    async def _history(self, session: _PostgresSession, history: str, span: TimeRange) -> list[StatementLoad]:
        start, end = (datetime.fromtimestamp(t, UTC) for t in (span.start, span.end))
        # Inside of another, and with a parameter, the text can only be one statement that reads.
        statement = f"SELECT * FROM ({history.rstrip('; ')}) AS history WHERE %(one)s"  # noqa: S608 - the operator's own
        rows = await session.rows(statement, start=start, end=end, one=True)
        try:
            return [self._recorded(row) for row in rows]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnavailableError(
                f"{self.name}: `history` must give captured_at (timestamptz), statement, calls, and total_ms or mean_ms "
                f"({type(error).__name__}: {error})"
            ) from None

    def _recorded(self, row: _Row) -> StatementLoad:
        return StatementLoad(
            time=row["captured_at"].timestamp(),
            database=self.database,
            statement=str(row["statement"]),
            calls=_optional_float(row.get("calls")),
            calls_per_sec=_optional_float(row.get("calls_per_sec")),
            mean_ms=_optional_float(row.get("mean_ms")),
            total_ms=_optional_float(row.get("total_ms")),
            load=_optional_float(row.get("load")),
            load_unit=row.get("load_unit"),
            waits={str(k): float(v) for k, v in (row.get("waits") or {}).items()},
            rows=_optional_float(row.get("rows")),
        )

    async def _watched(self, session: _PostgresSession) -> list[StatementLoad]:
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
        known = {row["queryid"]: _statement_delta(before.get(row["queryid"]), row, seconds) for row in after}
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
            for key, row in (known | {k: _unfinished_statement(t) for k, t in texts.items() if k not in known}).items()
            if row["calls"] or key in waits
        ]  # fmt: skip

    # --- objects and events ----------------------------------------------------------------------------------

    async def _objects(self, session: _PostgresSession) -> list[ObjectState]:
        about = await session.one(sql.ABOUT)
        status: dict[str, Any] = {
            "version": about["version"],
            "up_since": format_rfc3339(about["up_since"]),
            "size_bytes": about["size_bytes"],
            "max_connections": about["max_connections"],
            "sessions": [dict(row) for row in await session.rows(sql.CONNECTIONS)],
            "blocked": [dict(row) for row in await session.rows(sql.BLOCKED)][:20],
            "prepared_transactions": [dict(row) for row in await session.rows(sql.PREPARED)],
            "tables": [dict(row) for row in await session.rows(sql.TABLES)],
        }
        status |= await self._replication(session, is_standby=about["is_standby"])
        return [
            ObjectState(time=self.clock.now().timestamp(), kind="Database", name=self.database, status=status)
        ]

    async def _replication(self, session: _PostgresSession, *, is_standby: bool) -> dict[str, Any]:
        if is_standby:
            return {"standby": dict(await session.one(sql.OWN_LAG))}
        return {
            "standbys": [dict(row) for row in await session.rows(sql.STANDBYS)],
            "slots": [dict(row) for row in await session.rows(sql.SLOTS)],
        }

    async def _events(self, session: _PostgresSession) -> list[PlatformEvent]:
        """What is wrong now, in the words that PostgreSQL itself has for it."""
        about = await session.one(sql.ABOUT)
        sessions = await session.rows(sql.CONNECTIONS)
        replication = await self._replication(session, is_standby=about["is_standby"])
        events = [
            *_connection_events(about, sessions),
            *_lock_wait_events(await session.rows(sql.BLOCKED)),
            *_replication_events(replication),
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

    async def check(self) -> Sequence[SourceCheck]:
        async with self._session() as session:
            about = await session.one(sql.ABOUT)
            skew = about["now"] - self.clock.now().timestamp()
            checks = [
                SourceCheck("version", "ok", f"PostgreSQL {about['version']}"),
                SourceCheck("rights", "ok", "member of pg_monitor")
                if about["may_monitor"]
                else SourceCheck(
                    "rights", "warning", "other users' statements are hidden", "GRANT pg_monitor TO the role"
                ),
                SourceCheck("clock", "ok", f"{skew:+.0f} s")
                if abs(skew) <= SKEW_SECONDS
                else SourceCheck(
                    "clock",
                    "warning",
                    f"the server's clock differs by {skew:+.0f} s",
                    "let NTP set both clocks",
                ),
            ]
            if not about["has_statements"]:
                return [*checks, SourceCheck("statements", "failed", "pg_stat_statements is not installed in this database",
                                       "add it to shared_preload_libraries, then CREATE EXTENSION pg_stat_statements")]  # fmt: skip
            try:
                await session.rows(sql.STATEMENTS, most=1)
            except (ToolError, TimeoutError) as error:
                return [
                    *checks,
                    SourceCheck(
                        "statements",
                        "failed",
                        str(error),
                        "add pg_stat_statements to shared_preload_libraries",
                    ),
                ]
            return [*checks, SourceCheck("statements", "ok", "pg_stat_statements is read")]


_Event = tuple[str, str, float | None, int | None]


def _connection_events(about: _Row, sessions: Sequence[_Row]) -> list[_Event]:
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


def _lock_wait_events(blocked: Sequence[_Row]) -> list[_Event]:
    """One event for each session that holds others up."""
    by_holder: dict[tuple[int, str | None], list[_Row]] = defaultdict(list)
    for row in blocked:
        if row["seconds"] >= _WAIT_SECONDS:
            by_holder[row["holder"], row["prepared"]].append(row)
    events: list[_Event] = []
    for rows in by_holder.values():
        first = min(rows, key=lambda row: row["since"])
        waiting = len({row["pid"] for row in rows})
        message = (
            f"{format_count(waiting, 'session')} still waiting for {first['mode']} on {first['relation']}, the longest for {first['seconds']:.0f} s; "
            f"held by {_describe_holder(first)}"
        )
        events.append(("LockWait", message, first["since"], waiting))
    return events


def _describe_holder(row: _Row) -> str:
    """Who holds a lock: a process, or a prepared transaction that no process owns any more."""
    if row["prepared"] is not None:
        return (
            f"prepared transaction {row['prepared']!r} of {row['prepared_by']} since {format_rfc3339(row['holder_since'])}: "
            "no process ends it, only COMMIT PREPARED or ROLLBACK PREPARED"
        )
    return (
        f"process {row['holder']}, {row['holder_state']} since {format_rfc3339(row['holder_since'])}, "
        f"its last statement: {' '.join(row['holder_query'].split())[:200]}"
    )


def _replication_events(replication: Mapping[str, Any]) -> list[_Event]:
    events: list[_Event] = []
    standby = replication.get("standby", {})
    own = standby.get("lag_seconds") or 0.0
    if standby and not standby["receives"]:
        last = standby["last_replayed"]
        since = (
            f"the last transaction it replayed is of {format_rfc3339(last)}"
            if last
            else "it has replayed nothing yet"
        )
        text = f"replication stopped: this standby has no WAL receiver; {since}"
        events.append(("ReplicationBroken", text, last, None))
    elif own > _LAG_SECONDS:
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


def _statement_delta(before: _Row | None, after: _Row, seconds: float) -> dict[str, Any]:
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


def _unfinished_statement(text: str) -> dict[str, Any]:
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


def _optional_float(value: SupportsFloat | str | None) -> float | None:
    return None if value is None else float(value)
