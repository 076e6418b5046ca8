"""The framework's checkpoints, through a connection of their own to the same file."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from opsleuth.checkpoints import checkpoint_saver
from opsleuth.checkpoints.seals import COLUMNS, INSERT_SEAL
from opsleuth.checkpoints.sqlite.database import STEP
from opsleuth.checkpoints.sqlite.errors import BUSY_TIMEOUT, plain_errors

_WRITES = "SELECT {names} FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND task_id = ?"
_NEWEST = f"""
SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
ORDER BY {STEP} DESC, checkpoint_id DESC LIMIT 1
"""


class SqliteCheckpointSaver(checkpoint_saver.CheckpointSaver, SqliteSaver):
    """The framework's SQLite saver, its asynchronous side done by its synchronous one, errors in plain words."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        SqliteSaver.__init__(self, connection, serde=checkpoint_saver.strict_serializer())
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

    def put_seal(self, parameters: Mapping[str, Any]) -> None:
        with self.cursor() as cursor:
            cursor.execute(INSERT_SEAL, parameters)

    def stored_writes(self, thread: str, checkpoint: str, task: str) -> list[dict[str, Any]]:
        names = (*COLUMNS["writes"], "value")
        with self.cursor() as cursor:
            cursor.execute(_WRITES.format(names=", ".join(names)), (thread, checkpoint, task))
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def newest_checkpoint(self, thread: str, namespace: str) -> str | None:
        with self.cursor(transaction=False) as cursor:
            row = cursor.execute(_NEWEST, (thread, namespace)).fetchone()
        return str(row[0]) if row else None

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
def open_saver(path: Path) -> Iterator[SqliteCheckpointSaver]:
    """A checkpoint saver over the database that the store has opened; its tables are made on first use.

    Raises the store's errors for a database that cannot be used when it is opened.
    """
    with plain_errors(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT)
    with closing(connection):
        with plain_errors(path):
            connection.execute("PRAGMA synchronous = FULL")
            saver = SqliteCheckpointSaver(connection, path)
            saver.setup()
        try:
            yield saver
        finally:
            saver.flush_writes()
