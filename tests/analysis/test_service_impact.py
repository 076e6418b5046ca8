"""What the users of one service feel is measured whether or not its harm is its own."""

import pytest

from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, TimeRange
from opsleuth.analysis.service_impact import measure_service_impact

STEP = 60.0
TIMES = [STEP * place for place in range(15)]


def _record(metric: str | None, **series: tuple[str, float, float]) -> Recording:
    rows = [
        MetricSeries("web", name, unit, TIMES, [usual * (1 + 0.01 * (i % 3)) for i in range(10)] + [now] * 5)
        for name, (unit, usual, now) in series.items()
    ]
    rows.append(MetricSeries("db", "latency_ms", "ms", TIMES, [5.0] * 10 + [900.0] * 5))
    alert = AlertFacts("web is in trouble", service="web", metric=metric, onset=10 * STEP)
    return Recording(alert, TimeRange(0.0, 15 * STEP), metrics=rows)


@pytest.mark.parametrize("metric", [None, "latency_ms", "error_ratio"])
def test_both_are_measured_whichever_alarmed(metric: str | None) -> None:
    found = measure_service_impact(
        _record(metric, latency_ms=("ms", 100, 900), error_ratio=("ratio", 0.002, 0.12)), "web"
    )
    assert [(one.measure, one.unit, one.onset is not None) for one in found] == [
        ("failed requests", "%", True),
        ("latency_ms", "s", True),
    ]
    assert found[0].usual == pytest.approx(0.2, rel=0.1)
    assert found[0].now == pytest.approx(12, rel=0.1)
    assert (round(found[1].usual, 1), round(found[1].now, 1)) == (0.1, 0.9)


def test_what_did_not_move_has_no_onset() -> None:
    [found] = measure_service_impact(_record("latency_ms", latency_ms=("ms", 100, 101)), "web")
    assert found.onset is None
    assert found.now == pytest.approx(found.usual, rel=0.1)


def test_a_service_without_requests_has_no_impact() -> None:
    assert measure_service_impact(_record(None, memory=("bytes", 100, 900)), "web") == []
