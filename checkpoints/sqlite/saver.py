"""The framework's checkpoints, through a connection of their own to the same file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver

from opsleuth.checkpoints import saving
from opsleuth.checkpoints.sqlite.db import BUSY_TIMEOUT, plain_errors


class Saver(saving.Saver, SqliteSaver):
    """The framework's SQLite saver, its asynchronous side done by its synchronous one, errors in plain words.

    What a node that has ended wrote is stored with the checkpoint that follows, in one transaction: each one
    waits for the disk. Whoever reads before that, or closes the saver, finds it stored all the same.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        SqliteSaver.__init__(self, connection, serde=saving.strict())
        self.place = path
        self._ended: list[tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]] = []
        self._open: sqlite3.Cursor | None = None

    def reading(self) -> AbstractContextManager[None]:
        self.store_ended()
        return plain_errors(self.place)

    @contextmanager
    def writing(self, thread: str) -> Iterator[None]:  # noqa: ARG002 - one process a run: see the lock
        """What ended nodes wrote and what is written inside, in one transaction."""
        ended, self._ended = self._ended, []
        with plain_errors(self.place), self.cursor() as cursor:
            self._open = cursor
            try:
                for writes in ended:
                    self.put_writes(*writes)
                yield
            finally:
                self._open = None

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._ended.append((config, writes, task_id, task_path))
        if any(channel.startswith("__") for channel, _ in writes):  # a question, an answer, an error
            self.store_ended()

    def store_ended(self) -> None:
        """Store what ended nodes wrote and no checkpoint has followed yet."""
        if self._ended:
            with self.writing(""):
                pass

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
            saver.store_ended()
