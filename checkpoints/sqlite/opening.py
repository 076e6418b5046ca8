"""Create the database, and bring an older one up to date. A newer or foreign one is left as it is."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from opsleuth.checkpoints import scripts
from opsleuth.checkpoints.errors import NotFound, NotWritable, Unreadable
from opsleuth.checkpoints.sqlite.db import Database
from opsleuth.checkpoints.sqlite.lock import locks_folder

APPLICATION_ID = 0x6F70736C

_SAVER_TABLES = {"checkpoints", "writes"}


def open_database(path: Path, *, read_only: bool = False) -> Database:
    """Open the database at the current schema version, created with mode 0600 in a folder of mode 0700.

    Raises NotFound (read-only, no file), NotWritable, StoreFailed, and Unreadable for a file that is no
    database of ours, is damaged, or has a newer schema.
    """
    if read_only:
        _check_file(path)
    else:
        _create_file(path)
    database = Database(path, read_only=read_only)
    with ExitStack() as undoing:
        undoing.callback(database.close)
        version = check_version(database)
        if version < scripts.SCHEMA_VERSION:
            _bring_up(database, version)
        undoing.pop_all()
    return database


def check_version(database: Database) -> int:
    """The schema version of the file, 0 for an empty one. Raises Unreadable for a newer or foreign one."""
    # The tables first: another process may make them now, and commits them together with the two numbers.
    tables = database.tables()
    version, application = _pragma(database, "user_version"), _pragma(database, "application_id")
    if application == APPLICATION_ID:
        if version > scripts.SCHEMA_VERSION:
            raise Unreadable(
                f"database {database.path} has schema version {version}, this opsleuth knows up to "
                f"{scripts.SCHEMA_VERSION}: use the newer opsleuth that wrote it; nothing was changed"
            )
        return version
    if application or version or tables - _SAVER_TABLES:
        raise Unreadable(
            f"{database.path} is a database of another program: choose another file with --db; nothing was changed"
        )
    return 0


def _bring_up(database: Database, version: int) -> None:
    if database.read_only:
        raise Unreadable(
            f"database {database.path} has schema version {version}, older than {scripts.SCHEMA_VERSION}: "
            "`opsleuth db migrate` brings it up to date; nothing was changed"
        )
    with _alone(database.path):
        database.rows(
            "PRAGMA auto_vacuum = INCREMENTAL"
        )  # counts for a new file only, before its first table
        database.rows("PRAGMA journal_mode = WAL")
        for number, sql in scripts.scripts(after=check_version(database)):
            database.script(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {number};\nCOMMIT;")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Only one process creates or migrates: SQLite's own waiting does not cover the switch to WAL."""
    folder = locks_folder(path)
    descriptor = os.open(folder / ".migration", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_file(path: Path) -> None:
    """Raises NotFound without a file, NotWritable for what is none: a pipe would be waited for."""
    try:
        if path.is_file():
            return
        there = path.exists()
    except OSError as error:
        raise NotWritable(
            f"cannot look at {path}: {error.strerror}; choose another path with --db"
        ) from error
    if there:
        raise NotWritable(f"{path} is no file: choose another path with --db")
    raise NotFound(f"no database at {path}: no run was stored yet, start one with `opsleuth run`")


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
        raise NotWritable(f"{path} is no file: choose another path with --db") from None
    except OSError as error:
        raise NotWritable(
            f"cannot create the database {path}: {error.strerror}; check permissions, or choose --db"
        ) from error


def _pragma(database: Database, name: str) -> int:
    row = database.row(f"PRAGMA {name}")
    return int(row[0]) if row else 0
