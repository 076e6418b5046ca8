"""The framework's checkpoint savers: the synchronous ones, called from their asynchronous side.

Each operation is one whole transaction inside one step of the event loop. The framework's asynchronous saver
commits in a later step: whoever writes to our tables in between waits for a lock that only the blocked loop
could free.
"""

import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

# Read by the framework when it is imported: stored bytes may become plain values only, never classes by name.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from opsleuth.checkpoints.errors import Unreadable
from opsleuth.checkpoints.places import Place

_DIGITS = 8
"""Of a channel's version: enough for more steps than a run may take, and in the order of their numbers."""


def strict() -> JsonPlusSerializer:
    """The serializer of all savers: it makes plain values of what is stored, and nothing else."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


_Writes = tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]


class Saver(BaseCheckpointSaver[str]):
    """What our savers have in common. Stands before the framework's own class among the bases.

    What a node that has ended wrote is kept back until the checkpoint that follows: that holds the same values, so they
    are stored once. Whoever reads before that, or closes the saver, finds the writes stored all the same.
    """

    place: Place
    _unflushed: list[_Writes]

    def plain(self) -> AbstractContextManager[object]:
        """Around each operation: errors in plain words."""
        raise NotImplementedError

    def transaction(self, thread: str) -> AbstractContextManager[object]:
        """One transaction, errors in plain words. What is written inside belongs to this thread."""
        raise NotImplementedError

    @contextmanager
    def reading(self) -> Iterator[None]:
        self.flush_writes()
        with self.plain():
            yield

    @contextmanager
    def writing(self, thread: str) -> Iterator[None]:
        """What is kept back and what is written inside, in one transaction."""
        unflushed, self._unflushed = self._unflushed, []
        with self.transaction(thread):
            for writes in unflushed:
                self.put_writes(*writes)
            yield

    def flush_writes(self) -> None:
        """Store what ended nodes wrote and no checkpoint has followed yet."""
        if self._unflushed:
            with self.writing(self._unflushed[0][0]["configurable"]["thread_id"]):
                pass

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Eight digits instead of the framework's 49 characters: a checkpoint holds one for every channel.

        The framework's own, in runs that were stored with them, are counted on as they are.
        """
        if current is not None and len(current) != _DIGITS:
            return super().get_next_version(current, channel)
        return f"{int(current or 0) + 1:0{_DIGITS}d}"

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        with self.reading():
            try:
                return self.get_tuple(config)
            except (TypeError, ValueError, KeyError) as error:
                raise Unreadable(
                    f"database {self.place}: a stored checkpoint is damaged ({type(error).__name__}); nothing was changed: "
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
        with self.reading():
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
        before = _of(config)
        self._unflushed = [writes for writes in self._unflushed if _of(writes[0]) != before]
        with self.writing(config["configurable"]["thread_id"]):
            return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._unflushed.append((config, writes, task_id, task_path))
        if any(channel.startswith("__") for channel, _ in writes):  # a question, an answer, an error
            self.flush_writes()

    async def adelete_thread(self, thread_id: str) -> None:
        with self.writing(thread_id):
            self.delete_thread(thread_id)


def _of(config: RunnableConfig) -> tuple[Any, Any]:
    """The thread and the checkpoint that are meant."""
    return config["configurable"]["thread_id"], config["configurable"].get("checkpoint_id")
