"""Counts in words."""

import pytest

from opsleuth.state.words import counted, often


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 changes"), (1, "1 change"), (2, "2 changes"), (1200, "1,200 changes")]
)
def test_a_noun_follows_its_count(count: int, said: str) -> None:
    assert counted(count, "change") == said


def test_a_plural_of_its_own() -> None:
    assert [counted(n, "try", "tries") for n in (1, 2)] == ["1 try", "2 tries"]
    assert [often(n) for n in (0, 1, 2)] == ["0 times", "once", "2 times"]
