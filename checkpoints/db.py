"""The connection to the one database file: WAL, full sync, short immediate transactions, errors in plain words."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from opsleuth.checkpoints.errors import NotWritable, StoreError, StoreFailed, Unreadable

BUSY_TIMEOUT = 30
"""Seconds that a writer waits for another one."""

Parameters = Sequence[Any] | Mapping[str, Any]
Row = sqlite3.Row

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
    sqlite3.SQLITE_ERROR: (Unreadable, "its tables are not as this version wrote them"),
}


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, with the file's name and what to do. Constraint errors pass."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        known = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if known is None:
            raise
        kind, advice = known
        raise kind(f"database {path}: {error}; {advice}") from error


class Database:
    """One connection, for one thread. Each statement outside of `write` is a transaction of its own."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        mode = "ro" if read_only else "rw"
        with plain_errors(path):
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT, isolation_level=None
            )
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows of a query."""
        with plain_errors(self.path):
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                return self._damaged(sql, parameters)

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of a query, or None."""
        return next(iter(self.rows(sql, parameters)), None)

    def change(self, sql: str, parameters: Parameters = ()) -> int:
        """Execute one writing statement; returns how many rows it changed."""
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
    def write(self) -> Iterator[None]:
        """One immediate transaction: all of it or nothing. Inside another one it is part of that."""
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

    def _damaged(self, sql: str, parameters: Parameters) -> list[Row]:
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
