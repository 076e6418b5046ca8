"""Counts in words."""

import pytest

from opsleuth.state.plurals import format_count, format_times


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 changes"), (1, "1 change"), (2, "2 changes"), (1200, "1,200 changes")]
)
def test_a_noun_follows_its_count(count: int, said: str) -> None:
    assert format_count(count, "change") == said


def test_a_plural_of_its_own() -> None:
    assert [format_count(n, "try", "tries") for n in (1, 2)] == ["1 try", "2 tries"]
    assert [format_times(n) for n in (0, 1, 2)] == ["0 times", "once", "2 times"]
