"""The breaker opens after failures in a row, lets one trial through after its pause, and keeps keys apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_rig import START

from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.tools.circuit_breaker import COUNTED_FAILURES, UNCOUNTED_STATUSES, CircuitBreaker

KEY = ("metrics_query", "case")


def opened() -> tuple[CircuitBreaker, FakeClock]:
    clock = FakeClock(START)
    breaker = CircuitBreaker(clock, failures=3, pause=60)
    for status in (ResultStatus.TIMEOUT, ResultStatus.INTERNAL, ResultStatus.UNAVAILABLE):
        assert breaker.refuses(KEY) is None
        breaker.record(KEY, status, "down")
    return breaker, clock


def test_it_says_why_and_how_long() -> None:
    breaker, clock = opened()
    clock.advance(20)
    refusal = breaker.refuses(KEY) or ""
    assert "3 calls in a row failed, the last with: down" in refusal
    assert "in 40 s" in refusal
    assert breaker.refuses(("metrics_query", "other")) is None


def test_after_the_pause_one_trial_passes_and_the_next_waits_for_it() -> None:
    breaker, clock = opened()
    clock.advance(60)
    assert breaker.refuses(KEY) is None
    assert breaker.refuses(KEY) is not None
    breaker.record(KEY, ResultStatus.NONE_MATCHED)
    assert breaker.refuses(KEY) is None


def test_a_trial_that_fails_opens_it_for_another_pause() -> None:
    breaker, clock = opened()
    clock.advance(60)
    assert breaker.refuses(KEY) is None
    breaker.record(KEY, ResultStatus.TIMEOUT)
    clock.advance(59)
    assert breaker.refuses(KEY) is not None


@pytest.mark.parametrize("status", sorted(UNCOUNTED_STATUSES))
def test_a_trial_that_says_nothing_makes_room_for_another(status: ResultStatus) -> None:
    breaker, clock = opened()
    clock.advance(60)
    assert breaker.refuses(KEY) is None
    breaker.record(KEY, status)
    assert breaker.refuses(KEY) is None


@given(st.lists(st.sampled_from(ResultStatus), max_size=12))
def test_it_is_open_exactly_after_three_failures_in_a_row(statuses: list[ResultStatus]) -> None:
    breaker = CircuitBreaker(FakeClock(START))
    row = 0
    for status in statuses:
        if breaker.refuses(KEY) is not None:
            break
        breaker.record(KEY, status)
        row = row + 1 if status in COUNTED_FAILURES else row if status in UNCOUNTED_STATUSES else 0
    assert (breaker.refuses(KEY) is not None) == (row >= 3)


def test_an_effect_whose_outcome_nobody_saw_does_not_reset_the_count() -> None:
    breaker = CircuitBreaker(FakeClock(START), failures=3)
    for status in (ResultStatus.TIMEOUT, ResultStatus.UNKNOWN, ResultStatus.TIMEOUT, ResultStatus.TIMEOUT):
        assert breaker.refuses(KEY) is None
        breaker.record(KEY, status, "down")
    assert breaker.refuses(KEY) is not None
