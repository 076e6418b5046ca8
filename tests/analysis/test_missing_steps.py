"""Steps that no longer follow their anchor."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.missing_steps import (
    StepTally,
    measure_rate_rise,
    measure_step_gain,
    measure_step_loss,
)

counts = st.integers(0, 500)


def test_steps_that_vanish_while_their_anchor_goes_on_are_a_complete_loss() -> None:
    found = measure_step_loss(StepTally(50, 50), StepTally(0, 25))
    assert found is not None
    assert found.is_complete
    assert (found.expected, found.missing) == (25, 25)
    assert found.size > 8


def test_fewer_calls_are_no_loss() -> None:
    assert measure_step_loss(StepTally(50, 50), StepTally(5, 5)) is None


def test_a_step_that_was_optional_is_missed_less() -> None:
    certain, optional = (
        measure_step_loss(StepTally(40, 40), StepTally(5, 10)),
        measure_step_loss(StepTally(20, 40), StepTally(2, 10)),
    )
    assert certain is not None
    assert optional is not None
    assert certain.size > 2 * optional.size


def test_steps_that_come_together_weigh_as_one() -> None:
    single, bundle = (
        measure_step_loss(StepTally(200, 100), StepTally(50, 50)),
        measure_step_loss(StepTally(2000, 100), StepTally(500, 50)),
    )
    assert single is not None
    assert bundle is not None
    assert bundle.size == pytest.approx(single.size)


def test_without_anchors_nothing_can_be_missing() -> None:
    assert measure_step_loss(StepTally(5, 5), StepTally(0, 0)) is None
    assert measure_step_loss(StepTally(0, 5), StepTally(0, 5)) is None
    assert measure_step_loss(StepTally(5, 0), StepTally(0, 5)) is None


@given(counts, counts, counts, counts)
def test_more_and_less_exclude_each_other(a: int, b: int, c: int, d: int) -> None:
    usual, now = StepTally(a, b), StepTally(c, d)
    found = measure_step_loss(usual, now)
    more = measure_step_gain(usual, now)
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
        measure_step_loss(StepTally(anchors, anchors), StepTally(fewer, calls)),
        measure_step_loss(StepTally(anchors, anchors), StepTally(more, calls)),
    )
    assert large is not None
    assert small is not None
    assert large.size >= small.size - 1e-9


def test_two_independent_rates_move_apart_by_chance() -> None:
    chance, bound = (
        measure_step_loss(StepTally(37, 37), StepTally(24, 48), bound=False),
        measure_step_loss(StepTally(37, 37), StepTally(24, 48)),
    )
    gone = measure_step_loss(StepTally(50, 50), StepTally(0, 25), bound=False)
    assert chance is not None
    assert bound is not None
    assert gone is not None
    assert chance.size < 2.5 < bound.size
    assert gone.size > 4


def test_a_handful_of_lines_rises_by_no_more_than_the_exact_test_shows() -> None:
    """Five of five in three eighths of the time come by chance once in 130 systems, not once in a thousand."""
    five = measure_rate_rise(StepTally(0, 500), StepTally(5, 300))
    fifty = measure_rate_rise(StepTally(0, 500), StepTally(50, 300))
    assert five == pytest.approx(2.44, abs=0.02)
    assert fifty > 8
    assert measure_rate_rise(StepTally(0, 500), StepTally(5000, 300)) > fifty
