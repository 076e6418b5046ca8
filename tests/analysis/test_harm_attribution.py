"""Who costs the users what: causes, victims, twins, gaps and quiet hours on small made-up shops."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from opsleuth.analysis.harm_attribution import find_service_harm, users_wait
from opsleuth.analysis.records import (
    AlertFacts,
    Finding,
    MetricSeries,
    Recording,
    ServiceDependency,
    TimeRange,
)

STEP = 60.0
ONSET = 10 * STEP
TIMES = [STEP * place for place in range(15)]
# web calls api, api calls db through a proxy; cache is called by web as well
CALLS = [
    ServiceDependency("web", "api"),
    ServiceDependency("api", "proxy"),
    ServiceDependency("proxy", "db"),
    ServiceDependency("web", "cache"),
]


def level(usual: float, incident: float) -> list[float]:
    """Ten minutes of rest with a little wobble, five of incident."""
    return [usual * (1 + 0.01 * (place % 3 - 1)) for place in range(10)] + [incident] * 5


def shop(
    latency: Mapping[str, Sequence[float]],
    success: Mapping[str, Sequence[float]] | None = None,
    *,
    metric: str | None = "latency",
    requests: float = 100,
) -> Recording:
    rows = [MetricSeries(name, "latency", "ms", TIMES, values) for name, values in latency.items()]
    rows += [
        MetricSeries(name, "success_rate", "%", TIMES, values) for name, values in (success or {}).items()
    ]
    rows += [
        MetricSeries(name, "requests", "count", TIMES, [requests] * 15)
        for name in {**latency, **(success or {})}
    ]
    alert = AlertFacts("web is in trouble", service="web", metric=metric, onset=ONSET)
    return Recording(alert, TimeRange(0.0, 15 * STEP), metrics=rows, topology=CALLS)


def causes(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.service, finding.kind) for finding in findings if finding.direction == "cause"]


SLOW_DB = {
    "web": level(100, 400),
    "api": level(60, 360),
    "proxy": level(31, 331),
    "db": level(30, 330),
    "cache": level(0.5, 1.5),
}


def test_the_last_of_a_chain_that_carries_one_harm_is_the_cause() -> None:
    findings = find_service_harm(shop(SLOW_DB))
    assert causes(findings)[0] == ("db", "latency")
    assert {f.service for f in findings if f.direction == "victim"} == {"web", "api", "proxy"}


def test_a_tiny_call_that_tripled_is_no_match_for_what_users_wait_for() -> None:
    sizes = {finding.service: finding.size for finding in find_service_harm(shop(SLOW_DB))}
    assert sizes["db"] > 100 * sizes.get("cache", 0.0)


def test_the_finding_says_since_when_and_in_what_metric() -> None:
    first = find_service_harm(shop(SLOW_DB))[0]
    assert (first.onset, first.metric, first.signal) == (ONSET, "latency", "metrics")
    assert first.figures["usual"] == pytest.approx(0.03, rel=0.02)
    assert first.figures["incident"] == pytest.approx(0.33, rel=0.02)


def test_a_caller_that_is_slow_by_itself_is_the_cause() -> None:
    latency = {
        **SLOW_DB,
        "web": level(100, 400),
        "api": level(60, 360),
        "proxy": level(31, 31),
        "db": level(30, 30),
    }
    assert causes(find_service_harm(shop(latency)))[0] == ("api", "latency")


def test_failures_that_callees_hand_up_are_theirs() -> None:
    # The proxy between the api and the database records nothing: it is looked through.
    success = {"web": level(100, 80), "api": level(100, 70), "db": level(100, 70)}
    findings = find_service_harm(shop({}, success, metric="success_rate"))
    assert causes(findings) == [("db", "errors")]


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("%", "30 % of the requests to web failed, usually 0.999 %; 100 % of all failures begin there."),
        (
            "",
            "web had 30 failures a period, usually 0.999, over 5 periods; 145 of 145 extra failures are its own,",
        ),
    ],
)
def test_failures_where_nobody_counts_requests_are_told_in_the_unit_they_came_in(
    unit: str, text: str
) -> None:
    series = MetricSeries("web", "errors", unit, TIMES, level(1, 30))
    recording = replace(shop({}), alert=AlertFacts("it fails", "web", onset=ONSET), metrics=[series])
    assert find_service_harm(recording)[0].text.startswith(text)


def test_failures_that_no_user_sees_are_no_cause() -> None:
    success = {"web": [100.0] * 15, "cache": level(100, 40)}
    assert causes(find_service_harm(shop({}, success, metric="success_rate"))) == []


def test_a_callee_that_nobody_called_before_explains_nothing() -> None:
    quiet = shop({"web": level(100, 400), "api": level(60, 360)})
    new = MetricSeries("proxy", "latency", "ms", TIMES[10:], [300.0] * 5)
    recording = Recording(quiet.alert, quiet.window, metrics=[*(quiet.metrics or ()), new], topology=CALLS)
    assert causes(find_service_harm(recording))[0] == ("api", "latency")


def test_services_out_of_reach_of_the_alert_are_left_out() -> None:
    batch = MetricSeries("batch", "latency", "ms", TIMES, level(100, 5000))
    recording = shop(SLOW_DB)
    with_batch = Recording(
        recording.alert, recording.window, metrics=[*(recording.metrics or ()), batch], topology=CALLS
    )
    assert "batch" not in {finding.service for finding in find_service_harm(with_batch)}


def test_nothing_is_blamed_where_users_wait_no_longer() -> None:
    recording = shop({**SLOW_DB, "web": level(100, 101)})
    assert find_service_harm(recording) == []
    assert users_wait(recording) is False
    assert users_wait(shop(SLOW_DB)) is True


def test_a_level_that_either_reference_shows_is_usual() -> None:
    recording = shop(SLOW_DB)
    busy = [
        MetricSeries(s.service, s.metric, s.unit, [t - 1e6 for t in TIMES], list(s.values)[10:] * 3)
        for s in recording.metrics or ()
    ]
    with_busy = Recording(
        recording.alert, recording.window, metrics=recording.metrics, metrics_baseline=busy, topology=CALLS
    )
    assert find_service_harm(with_busy) == []


def test_a_gap_in_a_callee_does_not_make_its_caller_the_cause() -> None:
    recording = shop(SLOW_DB)
    rows = []
    for series in recording.metrics or ():
        keep = [place for place in range(15) if series.service != "db" or place not in (11, 13)]
        rows.append(
            MetricSeries(
                series.service,
                series.metric,
                series.unit,
                [TIMES[k] for k in keep],
                [series.values[k] for k in keep],
            )
        )
    gappy = Recording(recording.alert, recording.window, metrics=rows, topology=CALLS)
    assert causes(find_service_harm(gappy))[0] == ("db", "latency")


@pytest.mark.parametrize("metrics", [None, []])
def test_without_metrics_nothing_is_said(metrics: list[MetricSeries] | None) -> None:
    recording = Recording(AlertFacts("slow", service="web"), TimeRange(0.0, 900.0), metrics=metrics)
    assert find_service_harm(recording) == []
    assert users_wait(recording) is None


def test_constant_series_and_a_single_sample_are_borne() -> None:
    assert find_service_harm(shop({"web": [100.0] * 15, "api": [60.0] * 15})) == []
    lonely = MetricSeries("web", "latency", "ms", [0.0], [5.0])
    assert (
        find_service_harm(
            Recording(AlertFacts("slow", service="web", onset=0.0), TimeRange(0.0, 60.0), metrics=[lonely])
        )
        == []
    )
