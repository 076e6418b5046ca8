"""Demand that rises where it comes in, and calls that multiply inside."""

from dataclasses import replace

import pytest

from opsleuth.analysis.demand_surge import find_demand_surges
from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, ServiceDependency, TimeRange

TIMES = [60.0 * place for place in range(20)]
CALLS = [ServiceDependency("web", "api"), ServiceDependency("batch", "store")]


def surge(service: str, usual: float, incident: float) -> Recording:
    counts = [usual] * 14 + [incident] * 6
    series = MetricSeries(service, "requests_sum", "count", TIMES, counts)
    alert = AlertFacts("slow", service="api", onset=14 * 60.0)
    return Recording(alert, TimeRange(0.0, 1200.0), metrics=[series], topology=CALLS)


def test_twice_the_demand_is_found_with_its_factor_and_metric() -> None:
    (finding,) = find_demand_surges(surge("web", 100.0, 450.0))
    assert (finding.service, finding.kind, finding.metric) == ("web", "traffic", "requests_sum")
    assert finding.figures["times"] == pytest.approx(4.5)


@pytest.mark.parametrize(
    ("service", "usual", "incident"),
    [
        ("web", 100.0, 150.0),  # not yet double
        ("web", 2.0, 6.0),  # a handful
        ("web", 450.0, 100.0),  # less
        ("api", 100.0, 450.0),  # called by web, which asks no more than usual
        ("batch", 100.0, 450.0),  # has nothing to do with the alert
    ],
)
def test_other_changes_of_demand_are_no_surge(service: str, usual: float, incident: float) -> None:
    assert find_demand_surges(surge(service, usual, incident)) == []


def test_without_counts_there_is_no_demand() -> None:
    latency = MetricSeries("web", "latency", "s", TIMES, [1.0] * 14 + [5.0] * 6)
    assert find_demand_surges(Recording(AlertFacts("slow"), TimeRange(0.0, 1200.0), metrics=[latency])) == []


def test_a_smaller_rise_is_a_hint_where_requests_are_served_slower() -> None:
    rise = surge("web", 100.0, 150.0)
    slower = MetricSeries("web", "latency_average", "s", TIMES, [0.1] * 14 + [0.15] * 6)
    (finding,) = find_demand_surges(replace(rise, metrics=[*(rise.metrics or ()), slower]))
    assert finding.size < 3.0


def test_a_service_inside_is_in_demand_only_beyond_what_its_callers_ask() -> None:
    alone = surge("api", 100.0, 450.0)
    steady = MetricSeries("web", "requests_sum", "count", TIMES, [100.0] * 20)
    busy = MetricSeries("web", "requests_sum", "count", TIMES, [100.0] * 14 + [450.0] * 6)
    assert [
        f.service for f in find_demand_surges(replace(alone, metrics=[*(alone.metrics or ()), steady]))
    ] == ["api"]
    assert [
        f.service for f in find_demand_surges(replace(alone, metrics=[*(alone.metrics or ()), busy]))
    ] == ["web"]


def test_periods_at_rest_are_paired_by_time_and_not_by_place() -> None:
    """The caller's baseline begins later: by place its busy periods would meet the quiet ones of the callee."""
    alone = surge("api", 100.0, 450.0)
    steady = MetricSeries("web", "requests_sum", "count", TIMES, [100.0] * 20)
    at_rest = [
        MetricSeries("api", "requests_sum", "count", TIMES[:8], [100.0] * 4 + [450.0] * 4),
        MetricSeries("web", "requests_sum", "count", TIMES[4:8], [100.0] * 4),
    ]
    metrics = [*(alone.metrics or ()), steady]
    assert [f.service for f in find_demand_surges(replace(alone, metrics=metrics))] == ["api"]
    assert find_demand_surges(replace(alone, metrics=metrics, metrics_baseline=at_rest)) == []
