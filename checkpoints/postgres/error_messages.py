"""PostgreSQL's errors in plain words, with what to do, and without a password."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import (
    InvalidRowError,
    NotWritableError,
    StoreError,
    StoreFailedError,
    UnreadableStoreError,
)

LOST = "OPS01"
"""What our own function raises where a run is held by somebody else by now."""

_ADVICE: tuple[tuple[type[psycopg.Error], type[StoreError], str], ...] = (
    (errors.LockNotAvailable, StoreFailedError, "another process has been writing for too long: try again"),
    (errors.DeadlockDetected, StoreFailedError, "two processes waited for each other: try again"),
    (errors.DiskFull, StoreFailedError, "the server's disk is full: free some space, then resume"),
    (errors.ReadOnlySqlTransaction, NotWritableError, "no permission to write: the server or this connection is read-only"),
    (errors.InsufficientPrivilege, NotWritableError, "no permission: grant this user CREATE on the database, or the rights on the schema opsleuth"),
    (errors.UndefinedTable, UnreadableStoreError, "its tables differ from those of this version"),
    (errors.UndefinedColumn, UnreadableStoreError, "its tables differ from those of this version"),
    (errors.UndefinedFunction, UnreadableStoreError, "its functions are not as this version wrote them"),
    (errors.DataCorrupted, UnreadableStoreError, "it is damaged: restore a copy"),
    (errors.IdleInTransactionSessionTimeout, StoreFailedError, "this process stalled during a transaction, which was rolled back: resume"),
    (errors.AdminShutdown, StoreFailedError, "the server was stopped: what was stored is safe, resume when it is back"),
    (errors.IntegrityError, InvalidRowError, "a row does not fit its table: nothing was changed"),
    (errors.DataError, InvalidRowError, "a row does not fit its table: nothing was changed"),
    (errors.OperationalError, StoreFailedError, "the server cannot be reached: what was stored is safe, resume when it can"),
    (errors.InterfaceError, StoreFailedError, "the connection was closed: what was stored is safe, resume"),
)  # fmt: skip

_REFUSALS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("does not exist", NotWritableError, "make the database with createdb, or choose another with --db"),
    ("authentication failed", NotWritableError, "check user and password"),
    ("no password supplied", NotWritableError, "give the password in PGPASSWORD, ~/.pgpass or the connection string"),
    ("pg_hba.conf", NotWritableError, "the server accepts no connection from here: ask its administrator to allow it"),
    ("unsupported startup parameter", NotWritableError, "a pooler takes no options: remove them from the connection string and unset PGOPTIONS"),
    ("too many clients", StoreFailedError, "raise max_connections, or run fewer workers"),
    ("connection slots", StoreFailedError, "raise max_connections, or run fewer workers"),
)  # fmt: skip
"""What a server says that lets nobody in: then the driver knows no code."""


@contextmanager
def plain_errors(place: PostgresServer) -> Iterator[None]:
    """Turn the driver's errors into ours. Those of our own pass."""
    try:
        yield
    except psycopg.Error as error:
        known = _known_refusal(error)
        if known is None:
            raise
        kind, advice = known
        raise kind(f"database {place}: {first_line(place, error)}; {advice}") from None


def _known_refusal(error: psycopg.Error) -> tuple[type[StoreError], str] | None:
    if error.sqlstate is None and isinstance(error, errors.OperationalError):
        for words, ours, advice in _REFUSALS:
            if words in str(error):
                return ours, advice
    return next(((ours, advice) for kind, ours, advice in _ADVICE if isinstance(error, kind)), None)


def first_line(place: PostgresServer, error: Exception) -> str:
    """What the driver says, in one line: connection strings may be repeated there."""
    text = " ".join(str(error).split())
    for secret in place.secrets:
        text = text.replace(secret, "***")
    return text[:400]
