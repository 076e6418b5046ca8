"""The pauses between tries: doubled, spread, bounded, and never shorter than what was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.state.backoff import Backoff

RETRIES = Backoff(first=0.5, longest=60.0)


@pytest.mark.parametrize(
    ("tries", "seconds"), [(0, 0.5), (1, 0.5), (2, 1.0), (5, 8.0), (8, 60.0), (5_000, 60.0)]
)
def test_each_pause_is_twice_the_one_before_up_to_the_longest(tries: int, seconds: float) -> None:
    assert RETRIES.seconds(tries) == seconds


@given(st.integers(1, 100), st.floats(0, 1))
def test_jitter_spreads_a_pause_around_its_plain_value(tries: int, jitter: float) -> None:
    plain = min(0.5 * 2 ** (tries - 1), 60.0)
    assert plain * 0.5 <= RETRIES.seconds(tries, jitter) <= min(plain * 1.5, 60.0)


@pytest.mark.parametrize(("asked", "seconds"), [(0.0, 1.0), (30.0, 30.0), (60.0, 60.0), (61.0, None)])
def test_a_pause_is_as_long_as_asked_or_there_is_none(asked: float, seconds: float | None) -> None:
    assert RETRIES.seconds_as_asked(2, asked) == seconds
