"""Medians, spreads and change points, against their definitions and against wild samples."""

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.robust_statistics import (
    find_change_point,
    find_significant_change_point,
    measure_rank_rise,
    measure_usual_level,
    quantile,
    robust_spread,
    typical_step,
)

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


@given(values)
def test_the_middle_quantile_is_the_median(samples: list[float]) -> None:
    assert quantile(samples, 0.5) == pytest.approx(median(samples), abs=1e-6)


@given(values, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_with_their_share_and_stay_inside(
    samples: list[float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert min(samples) <= quantile(samples, low) <= quantile(samples, high) + 1e-9
    assert quantile(samples, high) <= max(samples) + 1e-9


def test_a_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        quantile([], 0.5)


def test_the_spread_of_a_normal_sample_is_its_standard_deviation() -> None:
    source = random.Random(7)
    samples = [source.gauss(10.0, 2.0) for _ in range(4000)]
    assert robust_spread(samples, 1e-9) == pytest.approx(2.0, rel=0.1)


def test_a_constant_series_has_the_floor_as_its_spread() -> None:
    assert robust_spread([5.0] * 9, 0.25) == 0.25
    assert robust_spread([], 0.25) == 0.25


@pytest.mark.parametrize("floor", [0.0, -1.0])
def test_a_spread_without_a_floor_is_refused(floor: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        robust_spread([1.0, 2.0], floor)


def test_a_third_of_wild_samples_does_not_move_the_usual_level() -> None:
    calm = [10.0, 10.2, 9.8, 10.1, 9.9, 10.0]
    rest = measure_usual_level([*calm, 900.0, 950.0], 0.1)
    assert rest is not None
    assert rest.level == pytest.approx(10.1, abs=0.1)
    assert rest.spread < 1.0


def test_nothing_has_no_usual_level() -> None:
    assert measure_usual_level([], 1.0) is None


def test_the_step_survives_a_missing_sample() -> None:
    assert typical_step([0.0, 60.0, 120.0, 240.0, 300.0]) == 60.0
    assert typical_step([5.0]) == 0.0


@given(st.integers(2, 20), st.integers(2, 20), st.floats(-1e9, 1e9))
def test_the_change_point_of_a_step_is_its_first_sample(before: int, after: int, start: float) -> None:
    times = [start + 60.0 * place for place in range(before + after)]
    assert find_change_point(times, [1.0] * before + [5.0] * after) == times[before]


def test_one_outlier_does_not_take_the_change_point() -> None:
    levels = [1.0, 1.1, 900.0, 0.9, 1.0, 1.05, 3.0, 3.1, 2.9, 3.0, 3.2, 3.05]
    assert find_change_point([float(place) for place in range(12)], levels) == 6.0


@pytest.mark.parametrize("levels", [[], [1.0, 2.0, 3.0], [4.0] * 10])
def test_no_change_point_without_a_change(levels: list[float]) -> None:
    assert find_change_point([float(place) for place in range(len(levels))], levels) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=40))
def test_a_change_point_is_a_sample_time_or_none(samples: list[float]) -> None:
    found = find_change_point([float(place) for place in range(len(samples))], samples)
    assert found is None or (found in range(len(samples)) and math.isfinite(found))


def test_a_mixture_of_two_kinds_does_not_rise_where_its_median_jumps() -> None:
    before, since = [5.0] * 39 + [150.0] * 37, [5.0] * 38 + [150.0] * 40
    assert median(since) > 10 * median(before)
    assert measure_rank_rise(before, since) < 1
    assert measure_rank_rise(before, [value + 200 for value in since]) > 9


@given(values, values)
def test_of_two_samples_at_most_one_ranks_above_the_other(first: list[float], second: list[float]) -> None:
    rise, fall = measure_rank_rise(first, second), measure_rank_rise(second, first)
    assert min(rise, fall) == 0
    assert math.isfinite(rise + fall)
    assert measure_rank_rise(first, first) == pytest.approx(0, abs=1e-9)


def test_without_samples_nothing_rises() -> None:
    assert measure_rank_rise([], [1.0]) == 0
    assert measure_rank_rise([1.0], []) == 0


def find_in(values: list[float]) -> float | None:
    return find_significant_change_point([float(place) for place in range(len(values))], values)


@pytest.mark.parametrize("count", [6, 12, 30, 120])
@pytest.mark.parametrize("draw", ["gauss", "heavy", "counts"])
def test_noise_has_a_change_point_once_in_a_hundred(count: int, draw: str) -> None:
    dice = random.Random(count)
    draws = {
        "gauss": lambda: dice.gauss(10, 1),
        "heavy": lambda: dice.lognormvariate(0, 1.5),
        "counts": lambda: float(dice.randint(0, 2)),
    }
    found = sum(find_in([draws[draw]() for _ in range(count)]) is not None for _ in range(200))
    assert found <= 6


@pytest.mark.parametrize(("before", "after"), [(3, 3), (5, 25), (25, 5), (15, 15), (60, 60)])
def test_a_step_above_the_noise_is_found(before: int, after: int) -> None:
    dice = random.Random(1)
    values = [dice.gauss(10, 0.3) for _ in range(before)] + [dice.gauss(16, 0.3) for _ in range(after)]
    assert find_in(values) == before
