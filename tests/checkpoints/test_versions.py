"""Versions of channels: short, in order, and at peace with those of older runs."""

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.checkpoints.sqlite.saver import SqliteCheckpointSaver
from opsleuth.checkpoints.store import Store


def test_versions_grow_in_the_order_of_text(store: Store) -> None:
    with store.saver() as saver:
        version = saver.get_next_version(None, None)
        seen = [version]
        for _ in range(1_000):
            version = saver.get_next_version(version, None)
            seen.append(version)
        old = "00000000000000000000000000000012.0.3649481624012345"
        assert saver.get_next_version(old, None) > old
    assert seen == sorted(set(seen))
    assert {len(version) for version in seen} == {8}


@given(st.integers(1, 10**8 - 2))
def test_the_next_is_greater(number: int) -> None:
    assert (
        SqliteCheckpointSaver.get_next_version(
            SqliteCheckpointSaver.__new__(SqliteCheckpointSaver), f"{number:08d}", None
        )
        > f"{number:08d}"
    )
