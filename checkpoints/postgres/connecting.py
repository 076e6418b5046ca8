"""How a connection is opened: in a schema of our own, one that fails fast, and whose commits are on disk."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from opsleuth.checkpoints.errors import NotWritable
from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.postgres.dialect import Row, adapt, by_name
from opsleuth.checkpoints.postgres.plain import first_line, plain_errors

SCHEMA = "opsleuth"
"""The schema of all our tables, the framework's included."""

CONNECT_SECONDS = 10
IDLE_SECONDS = 20
"""So long may a transaction stand still: that of a stopped process must not keep others out for longer."""

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
_SAFE_COMMITS = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
"""What is committed is on disk, whatever the server's default; a stronger one than that stays."""


def connected(place: Server, url: str, *, read_only: bool) -> psycopg.Connection[Row]:
    """A connection to one of the place's servers. Raises NotWritable, StoreFailed."""
    lock = {"lock_timeout": f"{round(1000 * place.lock_seconds)}ms"}
    settings = _SETTINGS | lock | ({"default_transaction_read_only": "on"} if read_only else {})
    given = _parsed(place, url)
    options = " ".join(
        [*str(given.get("options") or "").split(), *(f"-c{k}={v}" for k, v in settings.items())]
    )
    with plain_errors(place):
        connection = psycopg.connect(
            url,
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            row_factory=by_name,
            **_NETWORK | {name: given[name] for name in _NETWORK if given.get(name)},
            options=options,
        )
        adapt(connection)
        connection.execute(_SAFE_COMMITS)
    return connection


def _parsed(place: Server, url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise NotWritable(
            f"database {place}: {first_line(place, error)}; write postgresql://USER@HOST:PORT/DATABASE, with signs "
            "such as @ and / in a password as %40 and %2F"
        ) from None
