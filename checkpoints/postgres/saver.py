"""The framework's checkpoints on the server: through our connection, each operation one fenced transaction."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Cursor
from psycopg.pq import Format
from psycopg.rows import DictRow, dict_row

from opsleuth.checkpoints import saving
from opsleuth.checkpoints.postgres.db import Database

_SETUP = 1869640558
"""The server's lock under which the framework's tables are made."""


class Saver(saving.Saver, PostgresSaver):
    """The framework's PostgreSQL saver, its asynchronous side done by its synchronous one.

    `db` is where the runs are held; the checkpoints may lie on another server. A checkpoint is written inside a
    transaction of both, so that nobody can take the run over in between.
    """

    def __init__(self, db: Database) -> None:
        self._db, self.place, self._unflushed = db, db.place, []
        with db.checkpoint_db.using() as connection:
            PostgresSaver.__init__(self, connection, serde=saving.strict())  # type: ignore[arg-type]

    def plain(self) -> AbstractContextManager[object]:
        return self._db.checkpoint_db.using()

    @contextmanager
    def transaction(self, thread: str) -> Iterator[None]:
        with self._db.write(thread), self._db.checkpoint_db.write(thread):
            yield

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:  # noqa: ARG002 - the framework's own
        with self._db.checkpoint_db.using() as connection, Cursor(connection, row_factory=dict_row) as cursor:
            cursor.format = Format.BINARY
            yield cursor


@contextmanager
def open_saver(db: Database) -> Iterator[Saver]:
    """A checkpoint saver over the database that the store has opened; its tables are made on first use."""
    saver = Saver(db)
    if not db.read_only and not db.checkpoint_db.line.framework_is_ready:
        _set_up(saver, db.checkpoint_db)
        db.checkpoint_db.line.framework_is_ready = True
    try:
        yield saver
    finally:
        saver.flush_writes()


def _set_up(saver: Saver, db: Database) -> None:
    """Make the framework's tables, or bring them up to date. One process at a time: theirs is not made for more."""
    if _version(db) == len(saver.MIGRATIONS) - 1:
        return
    with db.using() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_SETUP,))
        try:
            saver.setup()
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_SETUP,))


def _version(db: Database) -> int:
    if "checkpoint_migrations" not in db.tables():
        return -1
    row = db.row("SELECT max(v) FROM checkpoint_migrations")
    return -1 if row is None or row[0] is None else int(row[0])
