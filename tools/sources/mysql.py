"""A MySQL or MariaDB database: statement digests by load, the slow log's table, sessions, lock waits, sizes.

The session can only read and gives up a statement after some seconds. Digests are watched for a moment; the slow log, where it
goes to its table (`log_output = TABLE`), tells of the window itself.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from opsleuth.analysis.records import ObjectState, PlatformEvent, Span, StatementLoad
from opsleuth.state.words import counted
from opsleuth.tools.arguments import zulu
from opsleuth.tools.sources import mysql_sql as sql
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.database import DatabaseSource
from opsleuth.tools.sources.live import SKEW_SECONDS, Check, Fetched, refused
from opsleuth.tools.sources.settings import MySql
from opsleuth.tools.spec import NotPermitted, ToolError, Transient, Unavailable

REMEDY = "MySQL and MariaDB need the extra 'mysql': pip install 'opsleuth[mysql]'"
RIGHTS = "GRANT PROCESS ON *.*, SELECT ON performance_schema.*, SELECT ON mysql.slow_log TO the account"
_FULL = 0.9
_DENIED = frozenset({1044, 1045, 1095, 1142, 1143, 1227, 1370, 1698})
_BUSY = frozenset({1040, 1203, 1053, 1205, 1213})
_TOO_LONG = frozenset({1969, 3024})
_VALUE = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|\b0x[0-9a-fA-F]+\b|\b\d+(?:\.\d+)?\b")
_SOME_VALUES = re.compile(r"\(\s*\?(?:\s*,\s*\?)*\s*\)")

_Row = Mapping[str, Any]
T = TypeVar("T")


class MySqlSource(DatabaseSource[MySql]):
    """The source of kind `mysql` or `mariadb`."""

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        past = self.past(window)
        if capability == "statements":
            return await self._with(lambda session: self._statements(session, window, current=not past))
        if past:
            return Fetched(
                {capability: []},
                notes=(f"sessions and locks are known only as they are now; the window {past}",),
            )
        rows = self._objects if capability == "objects" else self._events
        return await self._with(lambda session: Fetched({capability: rows(session)}, tuple(session.asked)))

    async def check(self) -> Sequence[Check]:
        return await self._with(self._checks)

    async def _with(self, work: "Callable[[_Session], T]") -> T:
        """Work in a thread, over a connection of its own: the driver waits for every answer."""
        return await asyncio.to_thread(self._connected, work)

    def _connected(self, work: "Callable[[_Session], T]") -> T:
        try:
            import pymysql  # noqa: PLC0415 - an extra, loaded where a source needs it
            from pymysql.cursors import DictCursor  # noqa: PLC0415
        except ImportError:
            raise Unavailable(f"{self.name}: {REMEDY}") from None
        own = self._settings
        password = self.vault.reveal(own.password) if own.password else ""
        with _said(self.name):
            connection = pymysql.connect(
                host=own.host, port=own.port, unix_socket=own.socket, user=own.user, password=password,
                connect_timeout=own.connect_seconds, read_timeout=own.statement_seconds + 1, charset="utf8mb4",
                autocommit=True, cursorclass=DictCursor, ssl={"ca": own.ca_file} if own.ca_file else None,
            )  # fmt: skip
        with closing(connection):
            session = _Session(self.name, connection)
            session.begin(own.statement_seconds)
            return work(session)

    # --- statements ------------------------------------------------------------------------------------------

    def _statements(self, session: "_Session", window: Span, *, current: bool) -> Fetched:
        loads, missed = [], []
        parts: list[tuple[str, Callable[[], list[StatementLoad]]]] = [
            ("slow log", lambda: self._slow(session, window))
        ]
        if current:
            parts.append(("digests", lambda: self._watched(session)))
        for what, read in parts:
            try:
                loads += read()
            except (NotPermitted, Unavailable) as error:
                missed.append(f"{what}: {error}")
        notes = (
            ()
            if current
            else ("digests are known only as they are now: of the window only the slow log tells",)
        )
        return Fetched({"statements": loads}, tuple(session.asked), notes, tuple(missed))

    def _watched(self, session: "_Session") -> list[StatementLoad]:
        """What each digest does in the next moment."""
        if not session.on("performance_schema"):
            raise Unavailable(
                "performance_schema is off: set performance_schema = ON and start the server anew"
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

    def _slow(self, session: "_Session", window: Span) -> list[StatementLoad]:
        """Entries of the slow log in the window, put together by their text without its values."""
        found: dict[str, list[_Row]] = defaultdict(list)
        for row in session.rows(sql.SLOW, start=window.start, end=window.end):
            found[without_values(str(row["query"]))].append(row)
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

    def _objects(self, session: "_Session") -> list[ObjectState]:
        status: dict[str, Any] = {
            "version": session.version,
            "variables": session.pairs(sql.VARIABLES),
            "status": session.pairs(sql.STATUS),
            "sessions": [dict(row) for row in session.rows(sql.SESSIONS)],
            "lock_waits": [_plain(row) for row in session.waits()][:20],
            "size_bytes": {row["db"]: int(row["bytes"] or 0) for row in session.rows(sql.SIZES)},
        }
        return [
            ObjectState(time=self.clock.now().timestamp(), kind="Database", name=self.database, status=status)
        ]

    def _events(self, session: "_Session") -> list[PlatformEvent]:
        """What is wrong now, by its own figures."""
        limits, status = session.pairs(sql.VARIABLES), session.pairs(sql.STATUS)
        events: list[tuple[str, str, float | None, int | None]] = []
        used, most = int(status.get("Threads_connected", 0)), int(limits.get("max_connections", 0))
        if most and used >= _FULL * most:
            events.append(("ConnectionsExhausted", f"{used} of {most} connections are used", None, None))
        by_holder: dict[int, list[_Row]] = defaultdict(list)
        for row in session.waits():
            by_holder[row["holder"]].append(row)
        for holder, rows in by_holder.items():
            first = min(rows, key=lambda row: float(row["since"]))
            message = (
                f"{counted(len(rows), 'session')} still waiting for a lock on {first['locked']}; held by session {holder} "
                f"({first['holder_command']}), its transaction open since {zulu(float(first['holder_since']))}"
            )
            events.append(("LockWait", message, float(first["since"]), len(rows)))
        now = self.clock.now().timestamp()
        return [
            PlatformEvent(time=now, source="mysql", object=f"Database/{self.database}", type="Warning", reason=reason,
                          message=message, count=count, first_time=since)
            for reason, message, since, count in events
        ]  # fmt: skip

    # --- doctor ----------------------------------------------------------------------------------------------

    def _checks(self, session: "_Session") -> Sequence[Check]:
        skew = (
            float(session.rows("SELECT UNIX_TIMESTAMP(NOW(6)) AS now")[0]["now"])
            - self.clock.now().timestamp()
        )
        checks = [Check("version", "ok", session.version)]
        checks.append(
            Check("clock", "ok", f"{skew:+.0f} s")
            if abs(skew) <= SKEW_SECONDS
            else Check(
                "clock", "warning", f"the server's clock differs by {skew:+.0f} s", "let NTP set both clocks"
            )
        )
        asked: dict[str, Callable[[], object]] = {
            "digests": lambda: session.rows(sql.STATEMENTS, most=1),
            "slow log": lambda: session.rows(sql.SLOW, start=0, end=1),
            "locks": session.waits,
        }
        for what, read in asked.items():
            try:
                read()
                checks.append(Check(what, "ok", "can be read"))
            except ToolError as error:
                checks.append(refused(what, error, RIGHTS))
        if not session.on("performance_schema"):
            checks.append(
                Check("digests", "warning", "performance_schema is off", "set performance_schema = ON")
            )
        if "TABLE" not in session.pairs(sql.VARIABLES).get("log_output", ""):
            checks.append(Check("slow log", "warning", "it does not go to its table", "SET GLOBAL log_output = 'TABLE', slow_query_log = ON"))  # fmt: skip
        return checks


class _Session:
    """One connection; `asked` holds the statements that were sent."""

    def __init__(self, name: str, connection: Any) -> None:  # noqa: ANN401 - of the extra
        self.name, self.version = name, str(connection.get_server_info())
        self.asked: list[str] = []
        self._connection = connection

    def begin(self, seconds: float) -> None:
        """Only reading, and no statement longer than so many seconds."""
        limit = (
            f"max_statement_time = {seconds:g}"
            if self._maria
            else f"max_execution_time = {seconds * 1_000:.0f}"
        )
        self.rows("SET SESSION TRANSACTION READ ONLY")
        self.rows(f"SET SESSION {limit}, SESSION lock_wait_timeout = 1")
        self.asked.clear()

    def rows(self, statement: str, **parameters: Any) -> Sequence[_Row]:  # noqa: ANN401 - values of any column
        with _said(self.name), self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            found: Sequence[_Row] = cursor.fetchall() or ()
        self.asked.append(f"{' '.join(statement.split())[:400]} -> {counted(len(found), 'row')}")
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
def _said(name: str) -> Iterator[None]:
    """What the server or the driver says, in the class of error that it is: by its number, not by wording."""
    import pymysql  # noqa: PLC0415 - an extra, already loaded by who connected

    try:
        yield
    except pymysql.Error as error:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = (
            f"{name}: {' '.join(str(part) for part in error.args[1:])[:500] or type(error).__name__} ({code})"
        )
        if code in _DENIED:
            raise NotPermitted(f"{text}. {RIGHTS}") from None
        if code in _TOO_LONG or "timed out" in text:
            raise TimeoutError(text) from None
        # The driver says "can't connect" too where a connection broke off while it was made.
        broke = isinstance(getattr(error, "original_exception", None), ConnectionResetError | BrokenPipeError)
        raise (Transient if broke or code in _BUSY or code in (2006, 2013) else Unavailable)(text) from None


def without_values(query: str) -> str:
    """The statement with every value as `?`, lists of them as one."""
    return _SOME_VALUES.sub("(?)", _VALUE.sub("?", " ".join(query.split())))


def _plain(row: _Row) -> dict[str, Any]:
    times = {"since", "holder_since"}
    return {key: zulu(float(value)) if key in times and value else value for key, value in row.items()}
