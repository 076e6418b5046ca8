"""What the alert complains about, and whether it is as usual."""

import pytest

from opsleuth.analysis.calm import find
from opsleuth.analysis.records import AlertFacts, Recording, Series, Span

TIMES = [60.0 * place for place in range(12)]
REST = [100.0, 104.0, 97.0, 101.0, 99.0, 103.0, 98.0, 100.0]


def alerting(
    values: list[float], metric: str | None = "latency", baseline: list[float] | None = None
) -> Recording:
    at_rest = None if baseline is None else [Series("web", "latency", "ms", TIMES[: len(baseline)], baseline)]
    return Recording(
        AlertFacts("web is slow", service="web", metric=metric, onset=8 * 60.0),
        Span(0.0, 720.0),
        metrics=[Series("web", "latency", "ms", TIMES[: len(values)], values)],
        metrics_baseline=at_rest,
    )


def test_a_metric_that_kept_its_level_is_healthy_and_says_its_range() -> None:
    (finding,) = find(alerting([*REST, 102.0, 99.0, 101.0, 100.0]))
    assert (finding.direction, finding.service, finding.metric) == ("healthy", "web", "latency")
    assert (finding.figures["low"], finding.figures["high"]) == (97.0, 104.0)


@pytest.mark.parametrize("incident", [[300.0] * 4, [20.0] * 4, [100.0, 100.0, 250.0, 260.0]])
def test_a_metric_that_moved_either_way_is_not(incident: list[float]) -> None:
    assert find(alerting([*REST, *incident])) == []


def test_a_level_between_its_references_is_calm() -> None:
    busy = [150.0, 155.0, 148.0, 151.0]
    assert find(alerting([*REST, 130.0, 128.0, 131.0, 129.0], baseline=busy)) != []


@pytest.mark.parametrize("values", [[], [100.0], [100.0, 100.0, 100.0]])
def test_too_few_samples_prove_no_calm(values: list[float]) -> None:
    assert find(alerting(values)) == []


def test_an_alert_without_a_metric_can_not_be_judged() -> None:
    assert find(alerting([*REST, 100.0, 100.0], metric=None)) == []
    assert find(alerting([*REST, 100.0, 100.0], metric="errors")) == []
