"""PostgreSQL's errors in plain words, with what to do, and without a password."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from opsleuth.checkpoints.errors import Misfit, NotWritable, StoreError, StoreFailed, Unreadable
from opsleuth.checkpoints.places import Server

LOST = "OPS01"
"""What our own function raises where a run is held by somebody else by now."""

_ADVICE: tuple[tuple[type[psycopg.Error], type[StoreError], str], ...] = (
    (errors.LockNotAvailable, StoreFailed, "another process has been writing for too long: try again"),
    (errors.DeadlockDetected, StoreFailed, "two processes waited for each other: try again"),
    (errors.DiskFull, StoreFailed, "the server's disk is full: free some space, then resume"),
    (errors.ReadOnlySqlTransaction, NotWritable, "no permission to write: the server or this connection is read-only"),
    (errors.InsufficientPrivilege, NotWritable, "no permission: grant this user CREATE on the database, or the rights on the schema opsleuth"),
    (errors.UndefinedTable, Unreadable, "its tables are not as this version wrote them"),
    (errors.UndefinedColumn, Unreadable, "its tables are not as this version wrote them"),
    (errors.UndefinedFunction, Unreadable, "its functions are not as this version wrote them"),
    (errors.DataCorrupted, Unreadable, "it is damaged: restore a copy"),
    (errors.IdleInTransactionSessionTimeout, StoreFailed, "this process stood still in mid-transaction, which was undone: resume"),
    (errors.AdminShutdown, StoreFailed, "the server was stopped: what was stored is safe, resume when it is back"),
    (errors.IntegrityError, Misfit, "a row does not fit its table: nothing was changed"),
    (errors.DataError, Misfit, "a row does not fit its table: nothing was changed"),
    (errors.OperationalError, StoreFailed, "the server cannot be reached: what was stored is safe, resume when it can"),
    (errors.InterfaceError, StoreFailed, "the connection was closed: what was stored is safe, resume"),
)  # fmt: skip

_REFUSALS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("does not exist", NotWritable, "make the database with createdb, or choose another with --db"),
    ("authentication failed", NotWritable, "check user and password"),
    ("no password supplied", NotWritable, "give the password in PGPASSWORD, ~/.pgpass or the connection string"),
    ("pg_hba.conf", NotWritable, "the server lets nobody in from here: its administrator can"),
    ("too many clients", StoreFailed, "raise max_connections, or run fewer workers"),
    ("connection slots", StoreFailed, "raise max_connections, or run fewer workers"),
)  # fmt: skip
"""What a server says that lets nobody in: then the driver knows no code."""


@contextmanager
def plain_errors(place: Server) -> Iterator[None]:
    """Turn the driver's errors into ours. Those of our own pass."""
    try:
        yield
    except psycopg.Error as error:
        known = _known(error)
        if known is None:
            raise
        kind, advice = known
        raise kind(f"database {place}: {first_line(place, error)}; {advice}") from None


def _known(error: psycopg.Error) -> tuple[type[StoreError], str] | None:
    if error.sqlstate is None and isinstance(error, errors.OperationalError):
        for words, ours, advice in _REFUSALS:
            if words in str(error):
                return ours, advice
    return next(((ours, advice) for kind, ours, advice in _ADVICE if isinstance(error, kind)), None)


def first_line(place: Server, error: Exception) -> str:
    """What the driver says, in one line: connection strings may be repeated there."""
    text = " ".join(str(error).split())
    for secret in place.secrets:
        text = text.replace(secret, "***")
    return text[:400]
