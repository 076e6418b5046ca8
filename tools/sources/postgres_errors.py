"""Turn psycopg's errors into errors of tools, by SQLSTATE, not by wording."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opsleuth.tools.spec import NotPermittedError, TransientError, UnavailableError

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Error

# A connection that fails carries no SQLSTATE: there the server's words decide.
_CREDENTIALS = re.compile(
    r"authentication failed|no password supplied|role \S+ does not exist|no pg_hba\.conf entry|not permitted to log in"
)
_POOLERS: Mapping[str, str] = {
    "statement pooling": "give the address of the server itself, or of a pool in transaction or session mode",
    "unsupported startup parameter": "remove options from the dsn and unset PGOPTIONS: a pooler takes none",
}
"""What poolers refuse, with what to do."""
_FULL = re.compile(r"too many clients|connection slots are reserved|is starting up|is shutting down")
REMEDY = "PostgreSQL needs the extra 'postgres': pip install 'opsleuth[postgres]'"


class RefusedStatementError(UnavailableError):
    """The server does not run a statement as it is written; `sqlstate` says why."""

    def __init__(self, text: str, sqlstate: str) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate

    @property
    def is_mistake(self) -> bool:
        """Whether the statement itself is wrong: its syntax, its names, its data, or that it would write."""
        return self.sqlstate.startswith(("22", "25", "42"))


async def open_connection(
    name: str, dsn: str, password: str | None, seconds: int
) -> "AsyncConnection[dict[str, Any]]":
    """A connection that begins no transaction by itself, and prepares and sets nothing on the server.

    Its name is not in the startup packet either: a pooler would keep it for the session. Raises NotPermittedError, UnavailableError,
    TransientError, TimeoutError.
    """
    try:
        import psycopg  # an extra, loaded where a source needs it
        from psycopg.rows import dict_row
    except ImportError:
        raise UnavailableError(f"{name}: {REMEDY}") from None
    own: dict[str, Any] = {"password": password} if password else {}
    with translate_driver_errors(name):
        return await psycopg.AsyncConnection.connect(
            dsn,
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=None,
            connect_timeout=seconds,
            **own,
        )


async def roll_back(connection: "AsyncConnection[dict[str, Any]]") -> None:
    """End the transaction. A connection that is still busy is closed: the server ends what it has open."""
    from psycopg.pq import TransactionStatus

    status = connection.info.transaction_status
    if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        await connection.execute("ROLLBACK")
    elif status is TransactionStatus.ACTIVE:
        await connection.close()


@contextmanager
def translate_driver_errors(name: str) -> Iterator[None]:
    """What the server or the driver says, in the class of error that it is."""
    import psycopg  # an extra, already loaded by who connected

    try:
        yield
    except psycopg.Error as error:
        raise _tool_error_from_psycopg(name, error) from None


def _tool_error_from_psycopg(name: str, error: "Error") -> Exception:
    from psycopg import errors

    words = " ".join(str(error).split())[:500]
    if isinstance(error, errors.ConnectionTimeout):
        return TimeoutError(f"{name}: PostgreSQL gave no answer in time ({words})")
    if isinstance(error, errors.QueryCanceled):
        return TimeoutError(f"{name}: a statement took longer than it may: {words}")
    state = error.sqlstate or ""
    if remedy := next((remedy for refused, remedy in _POOLERS.items() if refused in words), None):
        return UnavailableError(f"{name}: the pooler before PostgreSQL refuses this: {words}; {remedy}")
    if state.startswith("28") or _CREDENTIALS.search(words):
        return NotPermittedError(f"{name}: PostgreSQL does not accept the credentials: {words}")
    if state == "42501":
        return NotPermittedError(
            f"{name}: PostgreSQL does not allow this: {words}. GRANT pg_monitor TO the role"
        )
    if (state == "42P01" and "pg_stat_statements" in words) or state == "55000":
        return UnavailableError(
            f"{name}: pg_stat_statements is not there ({words}): add it to shared_preload_libraries, then CREATE EXTENSION"
        )
    if state in ("53300", "57P03") or _FULL.search(words) or state.startswith(("08", "40", "55P03", "57P0")):
        return TransientError(f"{name}: PostgreSQL cannot serve at the moment: {words}")
    if isinstance(error, errors.OperationalError) and not state and "closed the connection" in words:
        return TransientError(f"{name}: the connection to PostgreSQL broke off: {words}")
    return RefusedStatementError(f"{name}: PostgreSQL: {words}", state)
