"""A MySQL or MariaDB database: statement digests by load, the slow log's table, sessions, lock waits, sizes.

Each read is a transaction of its own that can only read, gives up a statement after some seconds, and is rolled back; nothing
is set on the session, for a proxy (ProxySQL, MaxScale) may lend it to another client next. Digests are watched for a moment; the slow log, where it
goes to its table (`log_output = TABLE`), reports the window itself.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from opsleuth.analysis.records import ObjectState, PlatformEvent, StatementLoad, TimeRange
from opsleuth.configuration.database_settings import MySqlSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources import mysql_sql as sql
from opsleuth.tools.sources.database_source import DatabaseSource
from opsleuth.tools.sources.live_source import SKEW_SECONDS, FetchedRows, SourceCheck, failed_check
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError, ToolError, TransientError, UnavailableError

REMEDY = "MySQL and MariaDB need the extra 'mysql': pip install 'opsleuth[mysql]'"
RIGHTS = "GRANT PROCESS ON *.*, SELECT ON performance_schema.*, SELECT ON mysql.slow_log TO the account"
_FULL = 0.9
_DENIED = frozenset({1044, 1045, 1095, 1142, 1143, 1227, 1370, 1698})
_BUSY = frozenset({1040, 1203, 1053, 1205, 1213})
_TOO_LONG = frozenset({1969, 3024})
_VALUE = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|\b0x[0-9a-fA-F]+\b|\b\d+(?:\.\d+)?\b")
_SELECT = re.compile(r"\A\s*SELECT\b")
_SOME_VALUES = re.compile(r"\(\s*\?(?:\s*,\s*\?)*\s*\)")

_Row = Mapping[str, Any]
T = TypeVar("T")


class MySqlSource(DatabaseSource[MySqlSettings]):
    """The source of kind `mysql` or `mariadb`."""

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        past = self.past(window)
        if capability == "statements":
            return await self.with_session(
                lambda session: self._statements(session, window, current=not past)
            )
        if past:
            return FetchedRows(
                {capability: []},
                notes=(f"sessions and locks are known only as they are now; the window {past}",),
            )
        rows = self._objects if capability == "objects" else self._events
        return await self.with_session(
            lambda session: FetchedRows(
                {capability: rows(session)}, tuple(session.asked), missed=tuple(session.missed)
            )
        )

    async def check(self) -> Sequence[SourceCheck]:
        return await self.with_session(self._checks)

    async def with_session(self, work: "Callable[[_MySqlSession], T]") -> T:
        """Work in a thread, over a connection of its own: the driver waits for every answer."""
        return await asyncio.to_thread(self._connected, work)

    def _connected(self, work: "Callable[[_MySqlSession], T]") -> T:
        try:
            from opsleuth.tools.sources.mysql_connection import (
                UnsetConnection,  # an extra, loaded where a source needs it
            )
        except ImportError:
            raise UnavailableError(f"{self.name}: {REMEDY}") from None
        own = self._settings
        password = self.vault.reveal(own.password) if own.password else ""
        with _translate_driver_errors(self.name):
            connection = UnsetConnection(
                host=own.host, port=own.port, unix_socket=own.socket, user=own.user, password=password,
                connect_timeout=own.connect_seconds, read_timeout=own.statement_seconds + 1,
                ssl={"ca": own.ca_file} if own.ca_file else None,
            )  # fmt: skip
        with closing(connection):
            return work(_MySqlSession(self.name, connection, own.statement_seconds))

    # --- statements ------------------------------------------------------------------------------------------

    def _statements(self, session: "_MySqlSession", window: TimeRange, *, current: bool) -> FetchedRows:
        loads, missed = [], []
        parts: list[tuple[str, Callable[[], list[StatementLoad]]]] = [
            ("slow log", lambda: self._slow(session, window))
        ]
        if current:
            parts.append(("digests", lambda: self._watched(session)))
        for what, read in parts:
            try:
                loads += read()
            except (NotPermittedError, UnavailableError) as error:
                missed.append(f"{what}: {error}")
        notes = (
            ()
            if current
            else ("digests are known only as they are now: only the slow log covers the window",)
        )
        return FetchedRows({"statements": loads}, tuple(session.asked), notes, (*missed, *session.missed))

    def _watched(self, session: "_MySqlSession") -> list[StatementLoad]:
        """What each digest does in the next moment."""
        if not session.on("performance_schema"):
            raise UnavailableError(
                "performance_schema is off: set performance_schema = ON and restart the server"
            )
        most = self._settings.max_statements
        before = {(r["db"], r["digest"]): r for r in session.rows(sql.STATEMENTS, most=most)}
        began = self.clock.monotonic()
        time.sleep(self._settings.sample)  # this is a thread of its own
        after = session.rows(sql.STATEMENTS, most=most)
        seconds, now = max(self.clock.monotonic() - began, 0.001), self.clock.now().timestamp()
        loads = []
        for row in after:
            old = before.get((row["db"], row["digest"]))
            calls = float(row["calls"] - old["calls"]) if old and old["calls"] <= row["calls"] else 0.0
            if old is None or not calls:
                continue
            ms = float(row["total_ms"] - old["total_ms"])
            loads.append(
                StatementLoad(
                    time=now, database=self.database, statement=str(row["query"]), calls=calls,
                    calls_per_sec=calls / seconds, mean_ms=ms / calls, total_ms=ms, load=ms / 1_000 / seconds,
                    load_unit="sessions", rows=float(row["rows_sent"] - old["rows_sent"]),
                    waits={"Lock": max(float(row["lock_ms"] - old["lock_ms"]), 0.0) / 1_000 / seconds},
                    extra={"rows_examined": float(row["examined"] - old["examined"]), "without_index": int(row["no_index"])},
                )
            )  # fmt: skip
        return loads

    def _slow(self, session: "_MySqlSession", window: TimeRange) -> list[StatementLoad]:
        """Entries of the slow log in the window, grouped by their text without its values."""
        found: dict[str, list[_Row]] = defaultdict(list)
        entries = session.rows(sql.SLOW, start=window.start, end=window.end, most=sql.MOST_SLOW)
        if len(entries) >= sql.MOST_SLOW:
            session.missed.append(
                f"slow log: more than {sql.MOST_SLOW:,} entries in the window: the earlier ones were not read"
            )
        for row in entries:
            found[replace_literals(str(row["query"]))].append(row)
        length = max(window.end - window.start, 1.0)
        return [
            StatementLoad(
                time=max(float(r["at"]) for r in rows), database=self.database, statement=statement,
                calls=float(len(rows)), calls_per_sec=len(rows) / length,
                mean_ms=1_000 * sum(float(r["seconds"]) for r in rows) / len(rows),
                total_ms=1_000 * sum(float(r["seconds"]) for r in rows),
                load=sum(float(r["seconds"]) for r in rows) / length, load_unit="sessions",
                rows=float(sum(r["rows_sent"] for r in rows)),
                extra={"from": "slow log", "rows_examined": float(sum(r["examined"] for r in rows))},
            )
            for statement, rows in found.items()
        ]  # fmt: skip

    # --- objects and events ----------------------------------------------------------------------------------

    def _objects(self, session: "_MySqlSession") -> list[ObjectState]:
        parts: dict[str, Callable[[], Any]] = {
            "variables": lambda: session.pairs(sql.VARIABLES),
            "status": lambda: session.pairs(sql.STATUS),
            "sessions": lambda: [dict(row) for row in session.rows(sql.SESSIONS)],
            "lock_waits": lambda: [_lock_wait_record(row) for row in session.waits()][:20],
            "size_bytes": lambda: {row["db"]: int(row["bytes"] or 0) for row in session.rows(sql.SIZES)},
        }
        status: dict[str, Any] = {"version": session.version}
        for what, read in parts.items():
            try:
                status[what] = read()
            except (NotPermittedError, UnavailableError) as error:
                session.missed.append(f"{what.replace('_', ' ')}: {error}")
        return [
            ObjectState(time=self.clock.now().timestamp(), kind="Database", name=self.database, status=status)
        ]

    def _events(self, session: "_MySqlSession") -> list[PlatformEvent]:
        """What is wrong now, by its own figures."""
        limits, status = session.pairs(sql.VARIABLES), session.pairs(sql.STATUS)
        events: list[tuple[str, str, float | None, int | None]] = []
        used, most = int(status.get("Threads_connected", 0)), int(limits.get("max_connections", 0))
        if most and used >= _FULL * most:
            events.append(("ConnectionsExhausted", f"{used} of {most} connections are used", None, None))
        by_holder: dict[tuple[int, float], list[_Row]] = defaultdict(list)
        try:
            waits = session.waits()
        except (NotPermittedError, UnavailableError) as error:
            waits = ()
            session.missed.append(f"lock waits: {error}")
        for row in waits:
            by_holder[int(row["holder"] or 0), float(row["holder_since"])].append(row)
        for rows in by_holder.values():
            first = min(rows, key=lambda row: float(row["since"]))
            message = (
                f"{format_count(len(rows), 'session')} still waiting for a lock on {first['locked']}; "
                f"held by {_describe_holder(first)}"
            )
            events.append(("LockWait", message, float(first["since"]), len(rows)))
        now = self.clock.now().timestamp()
        return [
            PlatformEvent(time=now, source="mysql", object=f"Database/{self.database}", type="Warning", reason=reason,
                          message=message, count=count, first_time=since)
            for reason, message, since, count in events
        ]  # fmt: skip

    # --- doctor ----------------------------------------------------------------------------------------------

    def _checks(self, session: "_MySqlSession") -> Sequence[SourceCheck]:
        skew = (
            float(session.rows("SELECT UNIX_TIMESTAMP(NOW(6)) AS now")[0]["now"])
            - self.clock.now().timestamp()
        )
        checks = [SourceCheck("version", "ok", session.version)]
        checks.append(
            SourceCheck("clock", "ok", f"{skew:+.0f} s")
            if abs(skew) <= SKEW_SECONDS
            else SourceCheck(
                "clock", "warning", f"the server's clock differs by {skew:+.0f} s", "let NTP set both clocks"
            )
        )
        asked: dict[str, Callable[[], object]] = {
            "digests": lambda: session.rows(sql.STATEMENTS, most=1),
            "slow log": lambda: session.rows(sql.SLOW, start=0, end=1, most=1),
            "locks": session.waits,
        }
        for what, read in asked.items():
            try:
                read()
                checks.append(SourceCheck(what, "ok", "can be read"))
            except ToolError as error:
                checks.append(failed_check(what, error, RIGHTS))
        if not session.on("performance_schema"):
            checks.append(
                SourceCheck("digests", "warning", "performance_schema is off", "set performance_schema = ON")
            )
        if "TABLE" not in session.pairs(sql.VARIABLES).get("log_output", ""):
            checks.append(SourceCheck("slow log", "warning", "it does not go to its table", "SET GLOBAL log_output = 'TABLE', slow_query_log = ON"))  # fmt: skip
        return checks


class _MySqlSession:
    """One connection; `asked` holds the statements that were sent."""

    def __init__(self, name: str, connection: Any, seconds: float) -> None:  # noqa: ANN401 - of the extra
        self.name, self.version = name, str(connection.get_server_info())
        self.asked: list[str] = []
        self.missed: list[str] = []
        self._connection, self._seconds = connection, seconds

    def rows(self, statement: str, **parameters: object) -> Sequence[_Row]:
        with _translate_driver_errors(self.name), self._connection.cursor() as cursor:
            cursor.execute("START TRANSACTION READ ONLY")
            try:
                cursor.execute(
                    limit_statement(statement, self._seconds, is_maria=self._maria), parameters or None
                )
                found: Sequence[_Row] = cursor.fetchall() or ()
            finally:
                if self._connection.open:
                    self._connection.rollback()
        self.asked.append(f"{' '.join(statement.split())[:400]} -> {format_count(len(found), 'row')}")
        return found

    def pairs(self, statement: str) -> dict[str, str]:
        """Variables or status by name."""
        return {row["Variable_name"]: row["Value"] for row in self.rows(statement)}

    def on(self, variable: str) -> bool:
        return self.pairs(sql.VARIABLES).get(variable) == "ON"

    def waits(self) -> Sequence[_Row]:
        """Who waits for whom."""
        return self.rows(sql.WAITS_MARIADB if self._maria else sql.WAITS_MYSQL)

    @property
    def _maria(self) -> bool:
        return "mariadb" in self.version.casefold()


@contextmanager
def _translate_driver_errors(name: str) -> Iterator[None]:
    """What the server or the driver says, in the class of error that it is: by its number, not by wording."""
    import pymysql  # an extra, already loaded by who connected

    try:
        yield
    except pymysql.Error as error:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = (
            f"{name}: {' '.join(str(part) for part in error.args[1:])[:500] or type(error).__name__} ({code})"
        )
        if code in _DENIED:
            raise NotPermittedError(f"{text}. {RIGHTS}") from None
        if code in _TOO_LONG or "timed out" in text:
            raise TimeoutError(text) from None
        # The driver says "can't connect" too where a connection broke off while it was made.
        broke = isinstance(getattr(error, "original_exception", None), ConnectionResetError | BrokenPipeError)
        raise (TransientError if broke or code in _BUSY or code in (2006, 2013) else UnavailableError)(
            text
        ) from None


def limit_statement(statement: str, seconds: float, *, is_maria: bool) -> str:
    """The statement with its own time limit. MySQL limits a SELECT only; what it shows it has in memory."""
    if is_maria:
        limit = f"max_statement_time = {seconds:g}, lock_wait_timeout = 1"
        return f"SET STATEMENT {limit} FOR {statement}"
    return _SELECT.sub(f"SELECT /*+ MAX_EXECUTION_TIME({seconds * 1_000:.0f}) */", statement, count=1)


def replace_literals(query: str) -> str:
    """The statement with every value as `?`, lists of them as one."""
    return _SOME_VALUES.sub("(?)", _VALUE.sub("?", " ".join(query.split())))


def _describe_holder(row: _Row) -> str:
    """Who holds a lock: a session, or an XA transaction that was prepared and that no session owns any more."""
    since = format_rfc3339(float(row["holder_since"]))
    if not row["holder"]:  # its client has gone, or the server was restarted
        return f"a prepared XA transaction without a session, open since {since}: XA RECOVER lists it, XA COMMIT or XA ROLLBACK ends it"
    return f"session {row['holder']} ({row['holder_command']}), its transaction open since {since}"


def _lock_wait_record(row: _Row) -> dict[str, Any]:
    times = {"since", "holder_since"}
    return {
        key: format_rfc3339(float(value)) if key in times and value else value for key, value in row.items()
    }
