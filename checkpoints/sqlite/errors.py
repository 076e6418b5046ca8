"""SQLite's errors in plain words, with what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opsleuth.checkpoints.errors import (
    InvalidRowError,
    NotWritableError,
    StoreError,
    StoreFailedError,
    UnreadableStoreError,
)

BUSY_TIMEOUT = 30
"""Seconds that a writer waits for another one."""

_ADVICE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreFailedError,
        f"another process has been writing for {BUSY_TIMEOUT} s: try again",
    ),
    sqlite3.SQLITE_LOCKED: (StoreFailedError, "a table is locked: try again"),
    sqlite3.SQLITE_FULL: (StoreFailedError, "the disk is full: free some space, then resume"),
    sqlite3.SQLITE_IOERR: (StoreFailedError, "reading or writing failed: check the disk, then resume"),
    sqlite3.SQLITE_NOMEM: (StoreFailedError, "out of memory"),
    sqlite3.SQLITE_READONLY: (
        NotWritableError,
        "no permission to write: check the file's owner, or choose --db",
    ),
    sqlite3.SQLITE_PERM: (NotWritableError, "no permission: check the file's owner, or choose --db"),
    sqlite3.SQLITE_CANTOPEN: (
        NotWritableError,
        "it cannot be opened: check path and permissions, or choose --db",
    ),
    sqlite3.SQLITE_NOTADB: (
        UnreadableStoreError,
        "it is not an SQLite database: choose another file with --db",
    ),
    sqlite3.SQLITE_CORRUPT: (
        UnreadableStoreError,
        "it is damaged: restore a copy, or choose another file with --db",
    ),
    sqlite3.SQLITE_CONSTRAINT: (InvalidRowError, "a row does not fit its table: nothing was changed"),
    sqlite3.SQLITE_ERROR: (UnreadableStoreError, "its tables differ from those of this version"),
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
