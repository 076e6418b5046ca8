"""The framework's saver beside the store: same file, strict types, and no transaction left open between two awaits."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from opsleuth.checkpoints.errors import InvalidRowError, UnreadableStoreError
from opsleuth.checkpoints.sqlite.saver import SqliteCheckpointSaver, open_saver
from opsleuth.checkpoints.store import Store


class Opaque:
    """Something that must not be brought back to life from stored bytes."""


def config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


async def test_checkpoints_lie_in_the_stores_file(store: Store, run: str) -> None:
    with store.saver() as saver:
        where = await saver.aput(config(run), empty_checkpoint(), {}, {})
        await saver.aput_writes(where, [("a", 1), ("b", 2)], "task")
        found = await saver.aget_tuple(config(run))
    assert found is not None
    assert [(channel, value) for _, channel, value in found.pending_writes or []] == [("a", 1), ("b", 2)]
    assert store.database.rows("SELECT thread_id FROM checkpoints")[0][0] == run


async def test_the_store_never_waits_for_the_saver(store: Store, run: str) -> None:
    with store.saver() as saver:
        where = await saver.aput(config(run), empty_checkpoint(), {}, {})
        writing = asyncio.create_task(saver.aput_writes(where, [("a", 1)], "task"))
        appended = 0
        while not writing.done():
            store.events.append(
                run, "x", {}
            )  # would wait for an open transaction of the saver, which waits for us
            if isinstance(saver, SqliteCheckpointSaver):
                assert not saver.conn.in_transaction
            appended += 1
            await asyncio.sleep(0)
        await writing
        found = await saver.aget_tuple(config(run))
    assert appended
    assert found is not None
    assert [(channel, value) for _, channel, value in found.pending_writes or []] == [("a", 1)]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
async def test_writes_that_fail_half_way_are_undone(store: Store, run: str) -> None:
    with store.saver() as saver:
        where = await saver.aput(config(run), empty_checkpoint(), {}, {})
        store.database.change(
            "CREATE TRIGGER full BEFORE INSERT ON writes WHEN NEW.idx = 1 BEGIN SELECT RAISE(ABORT, 'no room'); END;"
        )
        with pytest.raises(InvalidRowError, match="no room"):
            await saver.aput_writes(where, [("__interrupt__", "a question"), ("b", 2)], "task")
        found = await saver.aget_tuple(config(run))
        assert found is not None
        assert found.config == where
        assert found.pending_writes == []
        store.database.change("DROP TRIGGER full")
        await saver.aput_writes(where, [("a", 1), ("b", 2)], "task")
        found = await saver.aget_tuple(config(run))
        assert found is not None
        assert len(found.pending_writes or []) == 2


async def test_what_an_ended_node_wrote_is_not_stored_beside_the_checkpoint_that_follows(
    store: Store, run: str
) -> None:
    db = store.database
    table = "writes" if isinstance(store.place, Path) else "checkpoint_writes"

    def stored() -> int:
        return len(db.rows(f"SELECT 1 FROM {table}"))

    with store.saver() as saver:
        where = await saver.aput(config(run), empty_checkpoint(), {}, {})
        await saver.aput_writes(where, [("a", 1)], "first")
        assert stored() == 0
        where = await saver.aput(where, empty_checkpoint(), {}, {})
        assert stored() == 0
        await saver.aput_writes(where, [("__interrupt__", "a question")], "second")
        assert stored() == 1
        await saver.aput_writes(where, [("a", 1)], "third")
        found = await saver.aget_tuple(config(run))
        assert found is not None
        assert [channel for _, channel, _ in found.pending_writes or []] == ["__interrupt__", "a"]
        await saver.aput_writes(where, [("a", 1)], "fourth")
    assert stored() == 3


async def test_only_plain_values_come_back(store: Store) -> None:
    with store.saver() as saver:
        with pytest.raises(TypeError):
            saver.serde.dumps_typed(Opaque())
        with pytest.raises(NotImplementedError):
            saver.serde.loads_typed(("pickle", b"cos\nsystem\n."))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    broken = tmp_path / "x.db"
    broken.write_bytes(b"dear diary " * 1000)
    with pytest.raises(UnreadableStoreError), open_saver(broken):
        pass


async def test_prune_takes_the_checkpoints_too(store: Store, run: str) -> None:
    with store.saver() as saver:
        where = await saver.aput(config(run), empty_checkpoint(), {}, {})
        await saver.aput_writes(where, [("a", 1)], "task")
        assert store.prune.remove(run, datetime.max.replace(tzinfo=UTC))
        assert await saver.aget_tuple(config(run)) is None
