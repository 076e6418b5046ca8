"""Counters recorded as they stand become rates; what only looks like one stays as it is."""

import random
from itertools import accumulate

import pytest
from nonempty import nonempty

from opsleuth.analysis.counter_series import rates_of_counters
from opsleuth.analysis.records import MetricSeries

STEP = 30.0


def series(metric: str, values: list[float], unit: str = "") -> MetricSeries:
    times = tuple(STEP * place for place in range(len(values)))
    return MetricSeries("quotes", metric, unit, times, tuple(values), None)


def counted(seed: int, each: float, start: float = 1e6, length: int = 40) -> list[float]:
    chance = random.Random(seed)
    return list(
        accumulate((float(round(chance.gauss(each, each / 20))) for _ in range(length)), initial=start)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("restart", [None, 12, 30])
def test_counter_becomes_its_rate_across_a_restart(seed: int, restart: int | None) -> None:
    values = counted(seed, 600.0)
    if restart is not None:
        values[restart:] = counted(seed + 10, 600.0, 0.0, len(values) - restart - 1)
    [found] = rates_of_counters([series("http_requests_total{code=200}", values)])
    assert found.unit == "count/s"
    assert len(found.values) == len(values) - 1
    usual = [rate for place, rate in enumerate(found.values, 1) if place != restart]
    assert all(15.0 < rate < 25.0 for rate in nonempty(usual))
    assert min(found.values) >= 0


def test_seldom_errors_follow_the_busy_series_of_their_metric() -> None:
    errors = [3.0] * 20 + [3.0 + 60.0 * place for place in range(1, 22)]
    found = rates_of_counters(
        [
            series("http_requests_total{code=200}", counted(1, 600.0)),
            series("http_requests_total{code=500}", errors),
        ]
    )
    assert found[1].values[5] == 0.0
    assert found[1].values[-1] == 2.0


@pytest.mark.parametrize(
    ("metric", "values", "unit"),
    [
        ("orders_total", [40.0, 42.0, 39.0, 44.0, 41.0, 38.0, 43.0, 40.0, 42.0, 41.0], ""),
        ("requests_total", [float(place) for place in range(20)], "count/s"),
        ("queue_length", [float(place) for place in range(20)], ""),
        ("errors_total", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0], ""),
    ],
)
def test_numbers_of_a_period_rates_and_gauges_stay(metric: str, values: list[float], unit: str) -> None:
    given = series(metric, values, unit)
    assert rates_of_counters([given]) == [given]
