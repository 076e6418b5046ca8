"""Create our schema on a server, or bring an older one up to date. A newer or foreign one is left as it is."""

from contextlib import ExitStack

from opsleuth.checkpoints import migrations
from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import NotFoundError, NotWritableError
from opsleuth.checkpoints.postgres.connection import SCHEMA
from opsleuth.checkpoints.postgres.database import PostgresDatabase
from opsleuth.checkpoints.postgres.dialect import translate_types
from opsleuth.checkpoints.postgres.planted_code import refuse_planted_code

_LOCK = "SELECT pg_advisory_xact_lock(1869640559)"
_VERSION = "SELECT version FROM schema_version"
_FRAMEWORK = {"checkpoint_migrations", "checkpoints", "checkpoint_blobs", "checkpoint_writes"}


def open_database(server: PostgresServer, *, read_only: bool = False) -> PostgresDatabase:
    """A connection to the server with our tables at the current version.

    Raises NotFoundError (read-only, no schema), NotWritableError, StoreFailedError, and UnreadableStoreError for a newer schema, another's, or code that is not ours.
    """
    if not read_only:
        _make_folder(server)
    database = PostgresDatabase(server, server.url, read_only=read_only)
    with ExitStack() as undoing:
        undoing.callback(database.close)
        version = check_version(database)
        refuse_planted_code(database)
        if version < migrations.SCHEMA_VERSION:
            _bring_up(database, version)
        if database.checkpoint_db is not database:
            refuse_planted_code(database.checkpoint_db)
            if not read_only:
                _make_schema(database.checkpoint_db)
        undoing.pop_all()
    return database


def check_version(database: PostgresDatabase) -> int:
    """The version of the schema, 0 for none. Raises UnreadableStoreError for a newer one, or one that is not ours."""
    found = database.tables()
    if "schema_version" not in found:
        if found - _FRAMEWORK:
            raise migrations.foreign_database_error(
                f"the schema {SCHEMA} of {database.place}", "another database"
            )
        return 0
    row = database.row(_VERSION)
    return migrations.check_known(int(row[0]) if row else 0, database.place)


def _bring_up(database: PostgresDatabase, version: int) -> None:
    if database.read_only and not version:
        raise NotFoundError(
            f"no database at {database.place}: no run was stored yet, start one with `opsleuth run`"
        )
    migrations.check_writable(version, database.place, read_only=database.read_only)
    with database.using() as connection, connection.transaction():
        connection.execute(_LOCK)
        _make_schema(database)
        more = dict(migrations.read_migrations(0, migrations.SCRIPTS / "postgres"))
        for number, script in migrations.read_migrations(after=check_version(database)):
            for sql in filter(None, (translate_types(script), more.get(number))):
                connection.execute(sql)
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (migrations.SCHEMA_VERSION,))


def _make_schema(database: PostgresDatabase) -> None:
    """A role that owns the schema need not be allowed to create one: PostgreSQL asks for that even where it exists."""
    with database.using() as connection:
        row = connection.execute("SELECT to_regnamespace(%s) IS NULL", (SCHEMA,)).fetchone()
        if row is None or row[0]:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")


def _make_folder(server: PostgresServer) -> None:
    try:
        server.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritableError(f"cannot make {server.folder}: {error.strerror}; check permissions") from error
