"""Exact tests of counts, against their definitions by plain fractions."""

import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.analysis.exact_tests import measure_exact_rate_rise

counts = st.integers(0, 25)


def _deviations(probability: Fraction) -> float:
    return max(0.0, -NormalDist().inv_cdf(float(probability))) if float(probability) < 1 else 0.0


@settings(deadline=None)
@given(counts, counts, st.integers(1, 9))
def test_a_rise_is_as_sure_as_the_binomial_tail_is_small(usual: int, now: int, tenths: int) -> None:
    trials, share = usual + now, Fraction(tenths, 10)
    tail = sum(
        (math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(now, trials + 1)),
        start=Fraction(0),
    )
    assert measure_exact_rate_rise(usual, now, float(share)) == pytest.approx(_deviations(tail), abs=1e-6)


def test_counts_of_thousands_keep_finite_or_infinite_sizes_and_never_fail() -> None:
    assert measure_exact_rate_rise(10_000, 12_000, 0.5) == pytest.approx(13.5, abs=0.2)
    assert measure_exact_rate_rise(0, 50_000, 0.1) == math.inf


def test_a_share_of_nothing_or_of_all_shows_nothing() -> None:
    assert measure_exact_rate_rise(3, 9, 0.0) == 0.0
    assert measure_exact_rate_rise(3, 9, 1.0) == 0.0
