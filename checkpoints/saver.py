"""The framework's checkpoints, through a connection of their own to the same file.

Each operation is one whole transaction inside one step of the event loop. The framework's asynchronous saver
commits in a later step: whoever writes to our tables in between waits for a lock that only the blocked loop
could free.
"""

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

# Read by the framework when it is imported: stored bytes may become plain values only, never classes by name.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from opsleuth.checkpoints.db import BUSY_TIMEOUT, plain_errors
from opsleuth.checkpoints.errors import Unreadable

_DIGITS = 8
"""Of a channel's version: enough for more steps than a run may take, and in the order of their numbers."""


class Saver(SqliteSaver):
    """The framework's SQLite saver, its asynchronous side done by its synchronous one, errors in plain words."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self._path = path

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """The framework's cursor, but what fails half way is undone: it commits even then.

        Half of a node's writes would pass for all of them when the run is resumed.
        """
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

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Eight digits instead of the framework's 49 characters: a checkpoint holds one for every channel.

        The framework's own, in runs that were stored with them, are counted on as they are.
        """
        if current is not None and len(current) != _DIGITS:
            return super().get_next_version(current, channel)
        return f"{int(current or 0) + 1:0{_DIGITS}d}"

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        with plain_errors(self._path):
            try:
                return self.get_tuple(config)
            except (TypeError, ValueError, KeyError) as error:
                raise Unreadable(
                    f"database {self._path}: a stored checkpoint is damaged ({type(error).__name__}); nothing was changed: "
                    "restore a copy"
                ) from error

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the framework's own word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        with plain_errors(self._path):
            found = list(self.list(config, filter=dict(filter or {}), before=before, limit=limit))
        for item in found:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        with plain_errors(self._path):
            return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        with plain_errors(self._path):
            self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        with plain_errors(self._path):
            self.delete_thread(thread_id)


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
        yield saver
