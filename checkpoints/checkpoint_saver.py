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

import json

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.seals import digest_checkpoint, digest_write, seal_parameters

_DIGITS = 8
"""Of a channel's version: enough for more steps than a run may take, and in the order of their numbers."""


def strict_serializer() -> JsonPlusSerializer:
    """The serializer of all savers: it makes plain values of what is stored, and nothing else."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


_Writes = tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]


class CheckpointSaver(BaseCheckpointSaver[str]):
    """What our savers have in common. Stands before the framework's own class among the bases.

    What a node that has ended wrote is kept back until the checkpoint that follows: that holds the same values, so they
    are stored once. Whoever reads before that, or closes the saver, finds the writes stored nevertheless.
    """

    place: Place
    _unflushed: list[_Writes]

    def plain(self) -> AbstractContextManager[object]:
        """Around each operation: errors in plain words."""
        raise NotImplementedError

    def transaction(self, thread: str) -> AbstractContextManager[object]:
        """One transaction, errors in plain words. What is written inside belongs to this thread."""
        raise NotImplementedError

    def put_seal(self, parameters: Mapping[str, Any]) -> None:
        """Store a seal inside the open transaction."""
        raise NotImplementedError

    def stored_writes(self, thread: str, checkpoint: str, task: str) -> list[dict[str, Any]]:
        """What a task wrote, as it stands inside the open transaction, in the form of the file."""
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
                self._seal_writes(*writes)
            yield

    def newest_checkpoint(self, thread: str, namespace: str) -> str | None:
        """The id of the thread's newest checkpoint, by the number of its step: a clock may go back between two."""
        raise NotImplementedError

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that is named, else the newest one by its step and not by the time in its id."""
        asked = config["configurable"]
        if not asked.get("checkpoint_id"):
            thread, namespace = str(asked["thread_id"]), asked.get("checkpoint_ns", "")
            found = self.newest_checkpoint(thread, namespace)
            if found is None:
                return None
            names = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": found}
            config = {**config, "configurable": {**asked, **names}}
        return super().get_tuple(config)

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
                raise UnreadableStoreError(
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
        before = _thread_and_checkpoint(config)
        self._unflushed = [
            writes for writes in self._unflushed if _thread_and_checkpoint(writes[0]) != before
        ]
        return self.put_sealed(config, checkpoint, metadata, new_versions)

    def put_sealed(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and its seal, in one transaction."""
        with self.writing(config["configurable"]["thread_id"]):
            stored = self.put(config, checkpoint, metadata, new_versions)
            self._seal_checkpoint(config, checkpoint, metadata)
            return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._unflushed.append((config, writes, task_id, task_path))
        if any(channel.startswith("__") for channel, _ in writes):  # a question, an answer, an error
            self.flush_writes()

    async def adelete_thread(self, thread_id: str) -> None:
        with self.writing(thread_id):
            self.delete_thread(thread_id)

    def _seal_checkpoint(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> None:
        form, packed = self.serde.dumps_typed(checkpoint)
        values = {
            "checkpoint_id": checkpoint["id"],
            "parent_checkpoint_id": config["configurable"].get("checkpoint_id"),
            "type": form,
            "checkpoint": packed,
            "metadata": json.dumps(get_checkpoint_metadata(config, metadata)),
        }
        thread = config["configurable"]["thread_id"]
        self.put_seal(seal_parameters(thread, "checkpoints", checkpoint["id"], digest_checkpoint(values)))

    def _seal_writes(self, config: RunnableConfig, _: Sequence[tuple[str, Any]], task: str, __: str) -> None:
        thread, checkpoint = _thread_and_checkpoint(config)
        for values in self.stored_writes(thread, checkpoint, task):
            key = f"{checkpoint}/{task}/{values['idx']}"
            self.put_seal(seal_parameters(thread, "writes", key, digest_write(values)))


def _thread_and_checkpoint(config: RunnableConfig) -> tuple[Any, Any]:
    """The thread and the checkpoint that are meant."""
    return config["configurable"]["thread_id"], config["configurable"].get("checkpoint_id")
