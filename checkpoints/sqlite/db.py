"""The connection to the one database file: WAL, full sync, short immediate transactions, errors in plain words."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from opsleuth.checkpoints import db
from opsleuth.checkpoints.db import Parameters
from opsleuth.checkpoints.errors import Misfit, NotWritable, StoreError, StoreFailed, Unreadable
from opsleuth.checkpoints.rows import insert
from opsleuth.checkpoints.sqlite.lock import RunLock
from opsleuth.checkpoints.unpacking import damaged, unpacked

if TYPE_CHECKING:
    from opsleuth.checkpoints.saving import Saver

# ruff: noqa: PLC0415 - the framework is loaded by those who drive a graph, not by those who read our tables

BUSY_TIMEOUT = 30
"""Seconds that a writer waits for another one."""

_CHECKPOINTS = """
SELECT checkpoint_id, type, checkpoint FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id
"""
_ADVICE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreFailed, f"another process has been writing for {BUSY_TIMEOUT} s: try again"),
    sqlite3.SQLITE_LOCKED: (StoreFailed, "a table is locked: try again"),
    sqlite3.SQLITE_FULL: (StoreFailed, "the disk is full: free some space, then resume"),
    sqlite3.SQLITE_IOERR: (StoreFailed, "reading or writing failed: check the disk, then resume"),
    sqlite3.SQLITE_NOMEM: (StoreFailed, "out of memory"),
    sqlite3.SQLITE_READONLY: (NotWritable, "no permission to write: check the file's owner, or choose --db"),
    sqlite3.SQLITE_PERM: (NotWritable, "no permission: check the file's owner, or choose --db"),
    sqlite3.SQLITE_CANTOPEN: (NotWritable, "it cannot be opened: check path and permissions, or choose --db"),
    sqlite3.SQLITE_NOTADB: (Unreadable, "it is no SQLite database: choose another file with --db"),
    sqlite3.SQLITE_CORRUPT: (Unreadable, "it is damaged: restore a copy, or choose another file with --db"),
    sqlite3.SQLITE_CONSTRAINT: (Misfit, "a row does not fit its table: nothing was changed"),
    sqlite3.SQLITE_ERROR: (Unreadable, "its tables are not as this version wrote them"),
}


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, with the file's name and what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        known = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if known is None:
            raise
        kind, advice = known
        raise kind(f"database {path}: {error}; {advice}") from error


class Database(db.Database):
    """One connection to the file. A second writer waits for the first, whatever runs they name."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.place = self.path = path
        self.read_only = read_only
        mode = "ro" if read_only else "rw"
        with plain_errors(path):
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT, isolation_level=None
            )
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        self._connection.close()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        with plain_errors(self.path):
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                return self._damaged(sql, parameters)

    def change(self, sql: str, parameters: Parameters = ()) -> int:
        with self.write(), plain_errors(self.path):
            return self._connection.execute(sql, parameters).rowcount

    def script(self, sql: str) -> None:
        """Execute several statements, which hold their own BEGIN and COMMIT: all of them or none."""
        with plain_errors(self.path):
            try:
                self._connection.executescript(sql)
            finally:
                self._roll_back()

    @contextmanager
    def write(self, run: str | None = None) -> Iterator[None]:  # noqa: ARG002 - all writers wait here
        if self._connection.in_transaction:
            yield
            return
        with plain_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                self._roll_back()

    def exclusive(self) -> AbstractContextManager[None]:
        return self.write()

    def tables(self) -> set[str]:
        return {row["name"] for row in self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    def columns(self, table: str) -> set[str]:
        return {row["name"] for row in self.rows(f"PRAGMA table_info({table})")}

    def checkpoints(self, run: str) -> list[tuple[str, Mapping[str, Any]]]:
        if "checkpoints" not in self.tables():
            return []
        return [(row["checkpoint_id"], _document(run, row)) for row in self.rows(_CHECKPOINTS, (run,))]

    def saved_rows(self, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for table in sorted(self.tables() & {"checkpoints", "writes"}):
            for row in self.rows(f"SELECT * FROM {table} WHERE thread_id = ?", (run,)):  # noqa: S608 - one of two
                yield table, dict(row)

    def put_saved(self, table: str, values: Mapping[str, Any], origin: object) -> int:
        return insert(self, table, values, origin)

    def saver(self) -> "AbstractContextManager[Saver]":
        from opsleuth.checkpoints.sqlite.saver import open_saver

        return open_saver(self.path)

    def lock(self, run: str, now: str) -> RunLock:
        return RunLock(self, self.path, run, now)

    def ensure_still_held(self) -> None:
        """The kernel keeps the lock of a process that stands still: nobody took the run over."""

    def vacuum(self) -> None:
        self.rows("PRAGMA incremental_vacuum")

    def _damaged(self, sql: str, parameters: Parameters) -> list[sqlite3.Row]:
        """Read again where a text is no UTF-8, with U+FFFD in it: one damaged row must not hide the sound ones."""
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            return self._connection.execute(sql, parameters).fetchall()
        finally:
            self._connection.text_factory = str

    def _roll_back(self) -> None:
        """Undo what a failure left open; after a commit there is nothing to undo."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _document(run: str, row: sqlite3.Row) -> Mapping[str, Any]:
    if row["type"] == "msgpack":
        document = unpacked(run, row["checkpoint_id"], row["checkpoint"])
        if isinstance(document, dict) and isinstance(document.get("channel_values"), dict):
            return document
    raise damaged(run, row["checkpoint_id"])
