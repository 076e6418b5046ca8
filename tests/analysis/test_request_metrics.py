"""Requests, latency and failures read from loose metric series."""

import pytest

from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, TimeRange
from opsleuth.analysis.request_metrics import split_samples_at, traffic_by_service

TIMES = (0.0, 60.0, 120.0)


def series(
    metric: str, unit: str, *values: float, times: tuple[float, ...] = TIMES, instance: str | None = None
) -> MetricSeries:
    return MetricSeries("api", metric, unit, times, values, instance)


def test_the_mean_latency_is_taken_before_the_tails() -> None:
    traffic = traffic_by_service(
        [series("latency_p95", "ms", 900, 900, 900), series("latency_average", "ms", 100, 110, 120)]
    )["api"]
    assert traffic.latency_metric == "latency_average"
    assert [sample.latency for sample in traffic.samples] == pytest.approx([0.1, 0.11, 0.12])


def test_what_a_service_measures_of_others_comes_last() -> None:
    traffic = traffic_by_service(
        [series("client_latency_p90", "s", 9, 9, 9), series("server_latency_p90", "s", 1, 1, 1)]
    )
    assert traffic["api"].latency_metric == "server_latency_p90"


def test_a_success_rate_becomes_a_share_of_failures() -> None:
    traffic = traffic_by_service(
        [series("availability", "%", 100, 97, 80), series("requests_sum", "count", 50, 50, 50)]
    )
    assert [sample.failed for sample in traffic["api"].samples] == pytest.approx([0.0, 0.03, 0.2])


def test_failures_are_counted_against_the_requests() -> None:
    traffic = traffic_by_service(
        [series("errors_total", "count", 0, 5, 50), series("requests_total", "count", 50, 50, 0)]
    )
    assert [sample.failed for sample in traffic["api"].samples] == [0.0, 0.1, None]


def test_a_rate_counts_as_events_in_its_period() -> None:
    traffic = traffic_by_service([series("requests", "req/s", 2, 3, 4)])["api"]
    assert [sample.requests for sample in traffic.samples] == [120, 180, 240]
    assert traffic.counted


def test_instances_add_up_their_requests_and_share_their_latency() -> None:
    traffic = traffic_by_service(
        [
            series("requests", "count", 10, 10, 10, instance="a"),
            series("requests", "count", 30, 30, 30, instance="b"),
            series("latency", "s", 1, 1, 1, instance="a"),
            series("latency", "s", 3, 3, 3, instance="b"),
        ]
    )["api"]
    assert [(sample.requests, sample.latency) for sample in traffic.samples] == [(40, 2)] * 3


def test_a_lost_count_is_taken_as_usual_and_no_count_as_one() -> None:
    lost = traffic_by_service(
        [series("requests", "count", 8, 8, times=(0.0, 60.0)), series("latency", "s", 1, 1, 1)]
    )
    assert [sample.requests for sample in lost["api"].samples] == [8, 8, 8]
    uncounted = traffic_by_service([series("latency", "s", 1, 1, 1)])["api"]
    assert [sample.requests for sample in uncounted.samples] == [1, 1, 1]
    assert not uncounted.counted


def test_metrics_of_nothing_in_particular_make_no_traffic() -> None:
    assert traffic_by_service(None) == {}
    assert traffic_by_service([series("cpu_usage", "%", 1, 2, 3)]) == {}


def test_a_period_belongs_to_the_incident_from_the_moment_that_it_touches_it() -> None:
    recording = Recording(AlertFacts("slow"), TimeRange(0.0, 180.0))
    traffic = traffic_by_service([series("latency", "s", 1, 2, 3)])["api"]
    before, incident = split_samples_at(traffic, 61.0, recording)
    assert [sample.time for sample in before] == [0.0]
    assert [sample.time for sample in incident] == [60.0, 120.0]
    assert split_samples_at(traffic, None, recording)[0] == []


def test_answers_of_one_status_are_never_all_requests() -> None:
    classes = [
        series("requests with status 2xx", "count/60s", 40, 40, 10),
        series("requests with status 4xx", "count/60s", 5, 5, 5),
        series("requests with status 5xx", "count/60s", 5, 5, 35),
    ]
    traffic = traffic_by_service(classes)["api"]
    assert [sample.requests for sample in traffic.samples] == [50, 50, 50]
    assert [sample.failed for sample in traffic.samples] == pytest.approx([0.1, 0.1, 0.7])


def test_a_count_of_all_requests_goes_before_the_sum_of_its_statuses() -> None:
    traffic = traffic_by_service(
        [
            series("requests_total", "count", 60, 60, 60),
            series("requests_2xx_total", "count", 40, 40, 10),
            series("requests_5xx_total", "count", 6, 6, 30),
        ]
    )["api"]
    assert [sample.requests for sample in traffic.samples] == [60, 60, 60]
    assert [sample.failed for sample in traffic.samples] == pytest.approx([0.1, 0.1, 0.5])
