"""Steps that no longer follow their anchor."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.steps import Tally, gain, loss

counts = st.integers(0, 500)


def test_steps_that_vanish_while_their_anchor_goes_on_are_a_complete_loss() -> None:
    found = loss(Tally(50, 50), Tally(0, 25))
    assert found is not None
    assert found.complete
    assert (found.expected, found.missing) == (25, 25)
    assert found.size > 8


def test_fewer_calls_are_no_loss() -> None:
    assert loss(Tally(50, 50), Tally(5, 5)) is None


def test_a_step_that_was_optional_is_missed_less() -> None:
    certain, optional = loss(Tally(40, 40), Tally(5, 10)), loss(Tally(20, 40), Tally(2, 10))
    assert certain is not None
    assert optional is not None
    assert certain.size > 2 * optional.size


def test_steps_that_come_together_weigh_as_one() -> None:
    single, bundle = loss(Tally(200, 100), Tally(50, 50)), loss(Tally(2000, 100), Tally(500, 50))
    assert single is not None
    assert bundle is not None
    assert bundle.size == pytest.approx(single.size)


def test_without_anchors_nothing_can_be_missing() -> None:
    assert loss(Tally(5, 5), Tally(0, 0)) is None
    assert loss(Tally(0, 5), Tally(0, 5)) is None
    assert loss(Tally(5, 0), Tally(0, 5)) is None


@given(counts, counts, counts, counts)
def test_more_and_less_exclude_each_other(a: int, b: int, c: int, d: int) -> None:
    usual, now = Tally(a, b), Tally(c, d)
    found = loss(usual, now)
    more = gain(usual, now)
    assert more >= 0
    assert math.isfinite(more)
    if found is not None:
        assert more == 0
        assert 0 < found.missing <= found.expected
        assert math.isfinite(found.size)


@given(st.integers(5, 200), st.integers(5, 200), st.data())
def test_the_more_is_missing_the_larger(anchors: int, calls: int, data: st.DataObject) -> None:
    fewer = data.draw(st.integers(0, calls - 1))
    more = data.draw(st.integers(fewer, calls - 1))
    large, small = (
        loss(Tally(anchors, anchors), Tally(fewer, calls)),
        loss(Tally(anchors, anchors), Tally(more, calls)),
    )
    assert large is not None
    assert small is not None
    assert large.size >= small.size - 1e-9


def test_two_independent_rates_move_apart_by_chance() -> None:
    chance, bound = loss(Tally(37, 37), Tally(24, 48), bound=False), loss(Tally(37, 37), Tally(24, 48))
    gone = loss(Tally(50, 50), Tally(0, 25), bound=False)
    assert chance is not None
    assert bound is not None
    assert gone is not None
    assert chance.size < 2.5 < bound.size
    assert gone.size > 4
