"""Resources that move, and those that only wobble, swing or were always so."""

from dataclasses import replace

import pytest

from opsleuth.analysis.level_shifts import ShiftRule, find_level_shift
from opsleuth.analysis.records import AlertFacts, Finding, MetricSeries, Recording, TimeRange
from opsleuth.analysis.resource_usage import find_resource_shifts

STEP = 60.0
LENGTH = 20
ONSET = 14 * STEP
TIMES = [STEP * place for place in range(LENGTH)]


def recording(metric: str, unit: str, values: list[float], baseline: list[float] | None = None) -> Recording:
    at_rest = (
        None if baseline is None else [MetricSeries("db", metric, unit, TIMES[: len(baseline)], baseline)]
    )
    return Recording(
        AlertFacts("trouble", service="db", onset=ONSET),
        TimeRange(0.0, LENGTH * STEP),
        metrics=[MetricSeries("db", metric, unit, TIMES[: len(values)], values)],
        metrics_baseline=at_rest,
    )


def step(usual: float, incident: float) -> list[float]:
    return [usual * (1 + 0.02 * (place % 3 - 1)) for place in range(14)] + [incident] * 6


def only(metric: str, unit: str, values: list[float]) -> Finding:
    (finding,) = find_resource_shifts(recording(metric, unit, values))
    return finding


@pytest.mark.parametrize(
    ("metric", "unit", "usual", "incident", "kind"),
    [
        ("cpu_usage", "%", 20.0, 95.0, "cpu"),
        ("cpu_usage_cores", "cores", 0.3, 3.0, "cpu"),
        ("memory_usage", "%", 50.0, 97.0, "memory"),
        ("memory_working_set", "MiB", 300.0, 900.0, "memory"),
        ("disk_queue_depth", "count", 0.1, 40.0, "disk"),
        ("disk_used", "%", 70.0, 99.0, "storage_full"),
        ("ReplicaLag", "Seconds", 2.0, 900.0, "replication_lag"),
        ("deadlocks", "count", 0.0, 12.0, "locks"),
        ("container_restarts_total", "count", 3.0, 9.0, "crash"),
    ],
)
def test_a_resource_that_leaves_its_level_is_a_cause_of_its_kind(
    metric: str, unit: str, usual: float, incident: float, kind: str
) -> None:
    finding = only(metric, unit, step(usual, incident))
    assert (finding.kind, finding.direction, finding.onset) == (kind, "cause", ONSET)
    assert finding.figures["incident"] == pytest.approx(incident)
    assert finding.size > 3.0


@pytest.mark.parametrize(
    ("metric", "unit", "usual", "incident"),
    [
        ("write_latency", "ms", 1.0, 90.0),  # a slow device is seen by whatever fills it
        ("database_connections", "count", 100.0, 400.0),  # so are the sessions that pile up
        ("cpu_usage", "%", 5.0, 30.0),  # moved, but nothing waits at a third of the capacity
        ("memory_usage", "%", 40.0, 70.0),
    ],
)
def test_what_suffers_or_hurts_nobody_is_a_victim(
    metric: str, unit: str, usual: float, incident: float
) -> None:
    assert only(metric, unit, step(usual, incident)).direction == "victim"


@pytest.mark.parametrize(
    ("metric", "unit", "values"),
    [
        ("cpu_usage", "%", [60.0] * LENGTH),
        ("cpu_usage", "%", step(20.0, 25.0)),
        ("cpu_usage", "%", step(95.0, 20.0)),
        ("cpu_usage_cores", "cores", step(0.002, 0.006)),
        ("replica_lag", "s", step(0.5, 4.0)),
        ("disk_queue_depth", "count", step(0.01, 0.4)),
        # up and down and up again: a swing goes nowhere
        ("cpu_usage", "%", [41, 49, 56, 63, 68, 71, 69, 64, 58, 52, 49, 55, 61, 68, 72, 69, 66, 59, 55, 51]),
        ("free_storage", "bytes", step(9e9, 8.8e9)),
        ("free_storage", "bytes", step(1e9, 9e9)),
        ("temperature", "C", step(20.0, 90.0)),
        ("cpu_usage", "%", [50.0]),
        ("cpu_usage", "%", []),
    ],
)
def test_wobble_swings_recoveries_and_trifles_are_nothing(
    metric: str, unit: str, values: list[float]
) -> None:
    assert find_resource_shifts(recording(metric, unit, [float(value) for value in values])) == []


def test_an_earlier_disturbance_does_not_hide_the_incident() -> None:
    values = step(10.0, 95.0)
    values[2:5] = [97.0, 98.0, 96.0]
    assert only("cpu_usage", "%", values).onset == ONSET


def test_a_climb_from_before_the_alert_is_seen_from_its_start() -> None:
    ramp = [float(10 * place) for place in range(LENGTH)]
    finding = only("replica_lag", "s", ramp)
    assert finding.onset is not None
    assert finding.onset < ONSET


def test_what_a_faultless_day_shows_as_well_is_usual() -> None:
    assert (
        find_resource_shifts(recording("cpu_usage", "%", step(20.0, 95.0), baseline=[94.0, 95.0, 96.0, 95.0]))
        == []
    )


def test_a_store_that_empties_is_found_and_says_how_much_is_gone() -> None:
    falling = [10e9 - 0.49e9 * place for place in range(LENGTH)]
    finding = only("FreeStorageSpace", "Bytes", falling)
    assert finding.kind == "storage_full"
    assert finding.figures["lost"] == pytest.approx(0.88, abs=0.02)
    assert finding.onset == 3 * STEP


def test_at_its_limit_a_busy_resource_need_not_stand_out_as_far() -> None:
    noisy = [60.0, 75.0, 68.0, 82.0, 71.0, 58.0, 77.0, 66.0, 73.0, 84.0, 62.0, 79.0, 70.0, 65.0]
    assert only("cpu_usage", "%", [*noisy, *[101.0] * 6]).kind == "cpu"
    assert find_resource_shifts(recording("cpu_usage", "%", [*noisy, *[92.0] * 6])) == []


def test_instances_are_told_apart() -> None:
    base = recording("cpu_usage", "%", step(20.0, 95.0))
    hot = MetricSeries("db", "cpu_usage", "%", TIMES, step(20.0, 95.0), instance="db-1")
    cool = MetricSeries("db", "cpu_usage", "%", TIMES, step(20.0, 20.0), instance="db-2")
    (finding,) = find_resource_shifts(Recording(base.alert, base.window, metrics=[hot, cool]))
    assert "db-1" in finding.text


def test_no_metrics_no_findings() -> None:
    assert find_resource_shifts(Recording(AlertFacts("trouble"), TimeRange(0.0, 60.0))) == []


def test_less_can_be_the_bad_side() -> None:
    rule = ShiftRule("other", -1, 0.01, 0.0)
    series = MetricSeries("api", "success", "ratio", TIMES, step(1.0, 0.6))
    move = find_level_shift(series, 1.0, rule, ONSET)
    assert move is not None
    assert (move.incident, move.onset) == (0.6, ONSET)
    assert (
        find_level_shift(MetricSeries("api", "success", "ratio", TIMES, step(0.6, 1.0)), 1.0, rule, ONSET)
        is None
    )


def busier(latency: float, requests: float) -> Recording:
    """CPU goes from 30 to 40 percent; latency and requests are that many times the usual ones."""
    usual = recording("cpu_usage", "%", step(30.0, 40.0))
    wobble = [1.0 + 0.02 * (place % 3 - 1) for place in range(LENGTH)]
    times = [1.0] * 14 + [latency] * 6
    counts = [1.0] * 14 + [requests] * 6
    more = [
        MetricSeries(
            "db", "latency_average", "s", TIMES, [0.1 * w * t for w, t in zip(wobble, times, strict=True)]
        ),
        MetricSeries("db", "requests", "count", TIMES, [100.0 * count for count in counts]),
    ]
    return replace(usual, metrics=[*(usual.metrics or ()), *more])


@pytest.mark.parametrize(
    ("latency", "requests", "direction"),
    [(1.3, 1.0, "cause"), (1.0, 1.0, "victim"), (1.3, 1.5, "victim")],  # slower; as fast; more to do
)
def test_a_small_move_is_a_hint_where_answers_are_slower_and_load_is_not_higher(
    latency: float, requests: float, direction: str
) -> None:
    (finding,) = find_resource_shifts(busier(latency, requests))
    assert finding.direction == direction
    if direction == "cause":
        assert finding.size < 3.0  # a hint, not a strong finding


def test_what_leaks_is_judged_by_where_it_has_got_to() -> None:
    values = [40.0 + 0.3 * (place % 3 - 1) for place in range(14)] + [41.0, 43.0, 45.0, 48.0, 51.0, 54.0]
    finding = only("memory_usage", "%", values)
    assert (finding.kind, finding.direction) == ("memory", "victim")  # nobody is slower yet
    assert finding.figures["incident"] > 45.0
