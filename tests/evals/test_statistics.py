"""Intervals and tests against published figures and against their own definition."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.evals.statistics import (
    bootstrap_mean,
    compare_paired_shares,
    fair_coin_probability,
    wilson_interval,
)

counts = st.integers(0, 60)


def test_a_share_has_the_published_interval() -> None:
    # Newcombe (1998), table I: 15 of 148, Wilson's score method.
    found = wilson_interval(15, 148)
    assert (round(found.low, 4), round(found.high, 4)) == (0.0624, 0.1605)


@pytest.mark.parametrize(("only_a", "only_b"), list(product(range(4), repeat=2)))
def test_the_coin_counts_what_is_as_uneven(only_a: int, only_b: int) -> None:
    thrown = only_a + only_b
    throws = list(product((0, 1), repeat=thrown))
    uneven = [t for t in throws if abs(2 * sum(t) - thrown) >= abs(only_a - only_b)]
    assert fair_coin_probability(only_a, only_b) == pytest.approx(len(uneven) / len(throws))


@given(counts, counts, counts)
def test_paired_shares_hold_their_difference_and_turn_with_their_sides(a: int, b: int, same: int) -> None:
    pairs = a + b + same
    found, turned = compare_paired_shares(a, b, pairs), compare_paired_shares(b, a, pairs)
    assert -1 <= found.low <= found.high <= 1
    assert found.value == (b - a) / pairs if pairs else found.value == 0
    assert (found.low, found.high) == pytest.approx((-turned.high, -turned.low))


def test_five_that_only_one_side_has_are_not_yet_beyond_noise_and_six_are() -> None:
    assert not compare_paired_shares(5, 0, 80).beyond_noise
    assert compare_paired_shares(6, 0, 80).beyond_noise


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_a_bootstrap_is_repeatable_and_within_the_values(values: list[float]) -> None:
    found = bootstrap_mean(values)
    assert found == bootstrap_mean(values)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.value == pytest.approx(math.fsum(values) / len(values))


def test_a_difference_that_all_cases_share_is_beyond_noise() -> None:
    assert bootstrap_mean([1.0] * 8).beyond_noise
    assert not bootstrap_mean([1.0, -1.0] * 8).beyond_noise
