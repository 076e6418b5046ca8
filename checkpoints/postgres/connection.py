"""Open a connection: in our own schema, failing fast, with commits on disk."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import NotWritableError
from opsleuth.checkpoints.postgres.dialect import PostgresRow, by_name, register_adapters
from opsleuth.checkpoints.postgres.error_messages import first_line, plain_errors
from opsleuth.checkpoints.postgres.pooling import refuse_shared_sessions

SCHEMA = "opsleuth"
"""The schema of all our tables, the framework's included."""

CONNECT_SECONDS = 10
IDLE_SECONDS = 20
"""The longest idle time of a transaction: a stopped process must not block others for longer."""

_NETWORK: dict[str, Any] = {
    "application_name": "opsleuth",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A server that went away without a word is noticed in less than a lease lasts. What a connection string says counts."""

_SETTINGS = {
    "search_path": SCHEMA,
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
}
_SET = "SELECT set_config(%s, %s, false)"
_SAFE_COMMITS = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
"""What is committed is on disk, whatever the server's default; a stronger one than that stays."""


def open_connection(place: PostgresServer, url: str, *, read_only: bool) -> psycopg.Connection[PostgresRow]:
    """A connection to one of the place's servers. Raises NotWritableError, StoreFailedError.

    The settings are sent when it is known that the session is ours alone, not with the startup packet: a pooler would
    refuse them there, or leave them out.
    """
    lock = {"lock_timeout": f"{round(1000 * place.lock_seconds)}ms"}
    settings = _SETTINGS | lock | ({"default_transaction_read_only": "on"} if read_only else {})
    given = _parse_url(place, url)
    with plain_errors(place), ExitStack() as undoing:
        connection = _open_connection(url, given)
        undoing.callback(connection.close)
        refuse_shared_sessions(place, connection, lambda: _open_connection(url, given))
        register_adapters(connection)
        cursor = psycopg.ClientCursor(connection)
        cursor.execute("; ".join(cursor.mogrify(_SET, setting) for setting in settings.items()))
        connection.execute(_SAFE_COMMITS)
        undoing.pop_all()
    return connection


def _open_connection(url: str, given: Mapping[str, Any]) -> psycopg.Connection[PostgresRow]:
    return psycopg.connect(
        url,
        autocommit=True,
        cursor_factory=psycopg.ClientCursor,
        row_factory=by_name,
        **_NETWORK | {name: given[name] for name in _NETWORK if given.get(name)},
    )


def _parse_url(place: PostgresServer, url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise NotWritableError(
            f"database {place}: {first_line(place, error)}; write postgresql://USER@HOST:PORT/DATABASE, with signs "
            "such as @ and / in a password as %40 and %2F"
        ) from None
