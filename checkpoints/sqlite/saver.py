"""The framework's checkpoints, through a connection of their own to the same file."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from opsleuth.checkpoints import saving
from opsleuth.checkpoints.sqlite.db import BUSY_TIMEOUT, plain_errors


class Saver(saving.Saver, SqliteSaver):
    """The framework's SQLite saver, its asynchronous side done by its synchronous one, errors in plain words."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        SqliteSaver.__init__(self, connection, serde=saving.strict())
        self.place = self._path = path
        self._unflushed = []
        self._open: sqlite3.Cursor | None = None

    def plain(self) -> AbstractContextManager[None]:
        return plain_errors(self._path)

    @contextmanager
    def transaction(self, thread: str) -> Iterator[None]:  # noqa: ARG002 - one process a run: see the lock
        with plain_errors(self._path), self.cursor() as cursor:
            self._open = cursor
            try:
                yield
            finally:
                self._open = None

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """The framework's cursor, but what fails half way is undone: it commits even then.

        Half of a node's writes would pass for all of them when the run is resumed.
        """
        if self._open is not None:
            yield self._open
            return
        with self.lock:
            self.setup()
            with closing(self.conn.cursor()) as cursor:
                try:
                    yield cursor
                    if transaction:
                        self.conn.commit()
                finally:
                    if transaction and self.conn.in_transaction:
                        self.conn.rollback()


@contextmanager
def open_saver(path: Path) -> Iterator[Saver]:
    """A checkpoint saver over the database that the store has opened; its tables are made on first use.

    Raises the store's errors for a database that cannot be used when it is opened.
    """
    with plain_errors(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT)
    with closing(connection):
        with plain_errors(path):
            connection.execute("PRAGMA synchronous = FULL")
            saver = Saver(connection, path)
            saver.setup()
        try:
            yield saver
        finally:
            saver.flush_writes()
