"""Create the database, and bring an older one up to date. A newer or foreign one is left as it is."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from opsleuth.checkpoints import migrations
from opsleuth.checkpoints.errors import NotFoundError, NotWritableError
from opsleuth.checkpoints.sqlite.database import SqliteDatabase
from opsleuth.checkpoints.sqlite.lock import locks_folder
from opsleuth.checkpoints.sqlite.planted_triggers import refuse_planted_triggers

APPLICATION_ID = 0x6F70736C

_SAVER_TABLES = {"checkpoints", "writes"}


def open_database(path: Path, *, read_only: bool = False) -> SqliteDatabase:
    """Open the database at the current schema version, created with mode 0600 in a folder of mode 0700.

    Raises NotFoundError (read-only, no file), NotWritableError, StoreFailedError, and UnreadableStoreError for a file that is no
    database of ours, is damaged, has a newer schema, or a trigger that is not ours.
    """
    if read_only:
        _check_file(path)
    else:
        _create_file(path)
        _refuse_hard_links(path)
    database = SqliteDatabase(path, read_only=read_only)
    with ExitStack() as undoing:
        undoing.callback(database.close)
        version = check_version(database)
        if not read_only:
            refuse_planted_triggers(database)
        if version < migrations.SCHEMA_VERSION:
            _bring_up(database, version)
        undoing.pop_all()
    return database


def check_version(database: SqliteDatabase) -> int:
    """The schema version of the file, 0 for an empty one. Raises UnreadableStoreError for a newer or foreign one."""
    # The tables first: another process may make them now, and commits them together with the two numbers.
    tables = database.tables()
    version, application = _read_pragma(database, "user_version"), _read_pragma(database, "application_id")
    if application == APPLICATION_ID:
        return migrations.check_known(version, database.path)
    if application or version or tables - _SAVER_TABLES:
        raise migrations.foreign_database_error(database.path, "another file")
    return 0


def _bring_up(database: SqliteDatabase, version: int) -> None:
    migrations.check_writable(version, database.path, read_only=database.read_only)
    with _migration_lock(database.path):
        database.rows(
            "PRAGMA auto_vacuum = INCREMENTAL"
        )  # counts for a new file only, before its first table
        database.rows("PRAGMA journal_mode = WAL")
        more = dict(migrations.read_migrations(0, migrations.SCRIPTS / "sqlite"))
        for number, sql in migrations.read_migrations(after=check_version(database)):
            database.script(
                f"BEGIN IMMEDIATE;\n{sql}\n{more.get(number, '')}\n;PRAGMA user_version = {number};\nCOMMIT;"
            )


@contextmanager
def _migration_lock(path: Path) -> Iterator[None]:
    """Only one process creates or migrates: SQLite's own waiting does not cover the switch to WAL."""
    folder = locks_folder(path)
    descriptor = os.open(folder / ".migration", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_file(path: Path) -> None:
    """Raises NotFoundError without a file, NotWritableError for anything that is not a file: reading a pipe would block."""
    try:
        if path.is_file():
            return
        there = path.exists()
    except OSError as error:
        raise NotWritableError(
            f"cannot look at {path}: {error.strerror}; choose another path with --db"
        ) from error
    if there:
        raise NotWritableError(f"{path} is not a file: choose another path with --db")
    raise NotFoundError(f"no database at {path}: no run was stored yet, start one with `opsleuth run`")


def _refuse_hard_links(path: Path) -> None:
    """Raises NotWritableError for a file with a second name: SQLite keeps what was written last beside the name that was used."""
    names = path.stat().st_nlink
    if names > 1:
        raise NotWritableError(
            f"{path} has {names} names (hard links): what was written under another one may be missing here, and changes would be made twice; "
            "remove the other names, or copy the file with `sqlite3 FILE '.backup COPY'` and choose the copy with --db"
        )


def _create_file(path: Path) -> None:
    """Make the file readable for its owner alone.

    An existing file is never opened here: closing it would drop SQLite's locks of this process.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.is_file():
            return
        raise NotWritableError(f"{path} is not a file: choose another path with --db") from None
    except OSError as error:
        raise NotWritableError(
            f"cannot create the database {path}: {error.strerror}; check permissions, or choose --db"
        ) from error


def _read_pragma(database: SqliteDatabase, name: str) -> int:
    row = database.row(f"PRAGMA {name}")
    return int(row[0]) if row else 0
