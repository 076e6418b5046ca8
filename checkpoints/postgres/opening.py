"""Make our schema on a server, and bring an older one up to date. A newer one, or another's, is left as it is."""

from contextlib import ExitStack

from opsleuth.checkpoints import scripts
from opsleuth.checkpoints.errors import NotFound, NotWritable, Unreadable
from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.postgres.connecting import SCHEMA
from opsleuth.checkpoints.postgres.db import Database
from opsleuth.checkpoints.postgres.dialect import tables

_LOCK = "SELECT pg_advisory_xact_lock(1869640559)"
_VERSION = "SELECT version FROM schema_version"
_FRAMEWORK = {"checkpoint_migrations", "checkpoints", "checkpoint_blobs", "checkpoint_writes"}


def open_database(server: Server, *, read_only: bool = False) -> Database:
    """A connection to the server with our tables at the current version.

    Raises NotFound (read-only, no schema), NotWritable, StoreFailed, and Unreadable for a newer schema or another's.
    """
    if not read_only:
        _make_folder(server)
    database = Database(server, server.url, read_only=read_only)
    with ExitStack() as undoing:
        undoing.callback(database.close)
        version = check_version(database)
        if version < scripts.SCHEMA_VERSION:
            _bring_up(database, version)
        if database.checkpoint_db is not database and not read_only:
            _make_schema(database.checkpoint_db)
        undoing.pop_all()
    return database


def check_version(database: Database) -> int:
    """The version of the schema, 0 for none. Raises Unreadable for a newer one, or one that is not ours."""
    found = database.tables()
    if "schema_version" not in found:
        if found - _FRAMEWORK:
            raise Unreadable(
                f"the schema {SCHEMA} of {database.place} belongs to another program: choose another database with "
                "--db; nothing was changed"
            )
        return 0
    row = database.row(_VERSION)
    version = int(row[0]) if row else 0
    if version > scripts.SCHEMA_VERSION:
        raise Unreadable(
            f"database {database.place} has schema version {version}, this opsleuth knows up to "
            f"{scripts.SCHEMA_VERSION}: use the newer opsleuth that wrote it; nothing was changed"
        )
    return version


def _bring_up(database: Database, version: int) -> None:
    if database.read_only and not version:
        raise NotFound(
            f"no database at {database.place}: no run was stored yet, start one with `opsleuth run`"
        )
    if database.read_only:
        raise Unreadable(
            f"database {database.place} has schema version {version}, older than {scripts.SCHEMA_VERSION}: "
            "`opsleuth db migrate` brings it up to date; nothing was changed"
        )
    with database.using() as connection, connection.transaction():
        connection.execute(_LOCK)
        _make_schema(database)
        more = dict(scripts.scripts(0, scripts.SCRIPTS / "postgres"))
        for number, script in scripts.scripts(after=check_version(database)):
            for sql in filter(None, (tables(script), more.get(number))):
                connection.execute(sql)
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (scripts.SCHEMA_VERSION,))


def _make_schema(database: Database) -> None:
    with database.using() as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")


def _make_folder(server: Server) -> None:
    try:
        server.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable(f"cannot make {server.folder}: {error.strerror}; check permissions") from error
