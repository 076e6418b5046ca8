"""Requests that fail where users come in."""

from dataclasses import replace

from opsleuth.analysis.entry_success_rate import find_entry_failures
from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, ServiceDependency, TimeRange

TIMES = [60.0 * i for i in range(30)]
ONSET = 60.0 * 24


def recording(values: list[float]) -> Recording:
    series = MetricSeries("users", "user_success_rate", "%", TIMES, values)
    return Recording(
        AlertFacts("pages fail", service="front", onset=ONSET),
        TimeRange(0, 1800),
        metrics=[series],
        topology=[ServiceDependency("front", "cart"), ServiceDependency("cart", "db")],
    )


def test_failing_requests_are_laid_at_the_door() -> None:
    found = find_entry_failures(recording([100.0] * 25 + [96, 95, 97, 96, 95]))
    assert [(f.service, f.kind, f.onset) for f in found] == [("front", "errors", 1500.0)]


def test_an_earlier_incident_does_not_make_it_usual() -> None:
    assert find_entry_failures(recording([100.0] * 5 + [60.0] * 3 + [100.0] * 17 + [95.0] * 5))


def test_as_usual_is_no_finding() -> None:
    assert find_entry_failures(recording([100.0] * 30)) == []
    assert find_entry_failures(recording([97.0, 99.0] * 15)) == []


def test_a_single_failing_minute_is_no_finding() -> None:
    assert find_entry_failures(recording([100.0] * 26 + [95.0] + [100.0] * 3)) == []


def test_without_a_single_door_nobody_is_named() -> None:
    failing = recording([100.0] * 25 + [90.0] * 5)
    unknown = replace(failing.alert, service=None)
    two = [ServiceDependency("front", "cart"), ServiceDependency("other", "cart")]
    assert find_entry_failures(replace(failing, topology=None)) == []
    assert find_entry_failures(replace(failing, alert=unknown, topology=two)) == []
    assert find_entry_failures(replace(failing, metrics=None)) == []
    assert [f.service for f in find_entry_failures(replace(failing, alert=unknown))] == ["front"]


def test_a_service_of_the_topology_speaks_for_itself() -> None:
    failing = recording([100.0] * 25 + [90.0] * 5)
    series = [replace(one, service="cart") for one in failing.metrics or ()]
    assert find_entry_failures(replace(failing, metrics=series)) == []
