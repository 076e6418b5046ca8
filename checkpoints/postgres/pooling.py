"""Poolers before the server: one that lends a connection for a transaction at a time cannot carry a store.

A store sets its schema and its time limits once per session, takes locks that last from one transaction to the next, and
workers listen. Where sessions are shared the settings reach other programs and the locks reach nobody, so that such a pool is
recognised before anything is set on it. One that keeps a session for its client (session mode) is as good as the server.
"""

import select
from collections.abc import Callable
from contextlib import closing
from time import monotonic

import psycopg

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import NotWritableError
from opsleuth.checkpoints.postgres.dialect import PostgresRow

_ROUNDS = 5
_SECONDS = 1.0
_OWN_PROCESS = "SELECT pg_backend_pid()"
_HOLD_PROCESS = b"BEGIN; SELECT pg_backend_pid()"

Connect = Callable[[], "psycopg.Connection[PostgresRow]"]


def refuse_shared_sessions(
    place: PostgresServer, connection: "psycopg.Connection[PostgresRow]", connect: Connect
) -> None:
    """Raise NotWritable if a pooler lends this connection's session to others. Nothing is set on any session.

    A pooler answers a new client with a number of its own in place of the server process's. Whether it also shares that
    process shows when a second client works at the same time: then two transactions of one client meet two processes,
    or two clients meet the same one.
    """
    if _read_process_id(connection) == connection.info.backend_pid:
        return
    try:
        shared = _is_shared(connection, connect)
    except psycopg.errors.ProtocolViolation as error:
        if "pooling mode" not in str(error):
            raise
        shared = True
    if shared:
        raise NotWritableError(
            f"database {place} is behind a connection pooler in transaction mode, which cannot hold opsleuth's session "
            "settings and locks: give the address of the PostgreSQL server itself, or of a pool in session mode "
            "(PgBouncer: pool_mode = session); nothing was changed"
        )


def _is_shared(connection: "psycopg.Connection[PostgresRow]", connect: Connect) -> bool:
    own = _read_process_id(connection)
    for _ in range(_ROUNDS):
        if any(_read_process_id(connection) != own for _ in range(2)):
            return True
        with closing(connect()) as other:
            held = _hold_process(other)
            if held == own or any(_read_process_id(connection) != own for _ in range(2)):
                return True
        if held is None:
            return False
    return False


def _read_process_id(connection: "psycopg.Connection[PostgresRow]") -> int:
    row = connection.execute(_OWN_PROCESS).fetchone()
    return int(row[0]) if row else 0


def _hold_process(connection: "psycopg.Connection[PostgresRow]") -> int | None:
    """Begin a transaction; the server process that it is in, or None where the pool has none free for a second."""
    line = connection.pgconn
    line.send_query(_HOLD_PROCESS)
    until, found = monotonic() + _SECONDS, None
    while True:
        line.consume_input()
        while not line.is_busy():
            result = line.get_result()
            if result is None:
                return found
            if result.error_message:
                raise psycopg.errors.ProtocolViolation(result.error_message.decode(errors="replace"))
            found = int(result.get_value(0, 0) or 0) if result.ntuples else None
        if not select.select([line.socket], [], [], max(until - monotonic(), 0))[0]:
            return None
