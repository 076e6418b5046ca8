"""What psycopg raises, as the errors of tools: by SQLSTATE, not by wording."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opsleuth.tools.spec import NotPermitted, Transient, Unavailable

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Error

# A connection that fails carries no SQLSTATE: there the server's words decide.
_CREDENTIALS = re.compile(
    r"authentication failed|no password supplied|role \S+ does not exist|no pg_hba\.conf entry|not permitted to log in"
)
_FULL = re.compile(r"too many clients|connection slots are reserved|is starting up|is shutting down")
REMEDY = "PostgreSQL needs the extra 'postgres': pip install 'opsleuth[postgres]'"


async def connecting(
    name: str, dsn: str, password: str | None, seconds: int
) -> "AsyncConnection[dict[str, Any]]":
    """A connection in autocommit. Raises NotPermitted, Unavailable, Transient, TimeoutError."""
    try:
        import psycopg  # noqa: PLC0415 - an extra, loaded where a source needs it
        from psycopg.rows import dict_row  # noqa: PLC0415
    except ImportError:
        raise Unavailable(f"{name}: {REMEDY}") from None
    own: dict[str, Any] = {"password": password} if password else {}
    with said(name):
        return await psycopg.AsyncConnection.connect(
            dsn,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=seconds,
            application_name="opsleuth",
            **own,
        )


@contextmanager
def said(name: str) -> Iterator[None]:
    """What the server or the driver says, in the class of error that it is."""
    import psycopg  # noqa: PLC0415 - an extra, already loaded by who connected

    try:
        yield
    except psycopg.Error as error:
        raise _as_tool_error(name, error) from None


def _as_tool_error(name: str, error: "Error") -> Exception:
    from psycopg import errors  # noqa: PLC0415 - as above

    words = " ".join(str(error).split())[:500]
    if isinstance(error, errors.ConnectionTimeout):
        return TimeoutError(f"{name}: PostgreSQL gave no answer in time ({words})")
    if isinstance(error, errors.QueryCanceled):
        return TimeoutError(f"{name}: a statement took longer than it may: {words}")
    state = error.sqlstate or ""
    if state.startswith("28") or _CREDENTIALS.search(words):
        return NotPermitted(f"{name}: PostgreSQL does not know the credentials: {words}")
    if state == "42501":
        return NotPermitted(f"{name}: PostgreSQL does not allow this: {words}. GRANT pg_monitor TO the role")
    if (state == "42P01" and "pg_stat_statements" in words) or state == "55000":
        return Unavailable(
            f"{name}: pg_stat_statements is not there ({words}): add it to shared_preload_libraries, then CREATE EXTENSION"
        )
    if state in ("53300", "57P03") or _FULL.search(words) or state.startswith(("08", "40", "55P03", "57P0")):
        return Transient(f"{name}: PostgreSQL cannot serve just now: {words}")
    if isinstance(error, errors.OperationalError) and not state and "closed the connection" in words:
        return Transient(f"{name}: the connection to PostgreSQL broke off: {words}")
    return Unavailable(f"{name}: PostgreSQL: {words}")
