"""Units from names, rates as rates, and host metrics that are no traffic."""

import pytest

from opsleuth.analysis.harm_attribution import find_service_harm
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.metric_units import infer_unit, seconds_of_rate
from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, TimeRange
from opsleuth.analysis.request_metrics import traffic_by_service

TIMES = [60.0 * place for place in range(40)]


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("http_server_duration_p99_ms", "ms"),
        ("http_request_duration_seconds", "s"),
        ("requestDurationMillis", "ms"),
        ("rpc_latency_us", "us"),
        ("go_memstats_alloc_bytes", "bytes"),
        ("http_5xx_ratio", "ratio"),
        ("charge_error_rate_pct", "percent"),
        ("disk_used_percent", "percent"),
        ("requests_per_sec", "count/s"),
        ("request_rate_rps", "count/s"),
        ("envelopes_flushed_per_min", "count/min"),
        ("http_requests_total", "count"),
        ("temperature", ""),
        ("latency", ""),
    ],
)
def test_the_name_says_the_unit(metric: str, unit: str) -> None:
    assert infer_unit(metric, "") == unit
    assert infer_unit(metric, "Widgets") == "widgets"


@pytest.mark.parametrize(
    ("values", "unit"), [((0.1, 0.99), "ratio"), ((3.0, 94.0), "percent"), ((3.0, 940.0), "")]
)
def test_a_share_without_a_unit_is_read_from_its_values(values: tuple[float, ...], unit: str) -> None:
    assert infer_unit("cpu_utilization", "", values) == unit


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("req/s", 1.0), ("count/min", 60.0), ("requests/hour", 3600.0), ("count/5min", None), ("count", None)],
)
def test_a_rate_is_told_from_a_number_of_events(unit: str, seconds: float | None) -> None:
    assert seconds_of_rate(unit) == seconds


@pytest.mark.parametrize(
    "metric",
    [
        "node_disk_flush_requests_total",
        "node_disk_flush_requests_time_seconds_total",
        "kube_pod_container_resource_requests",
        "go_gc_duration_seconds",
        "node_vmstat_pgmajfault",
        "scrape_duration_seconds",
        "db_query_count_per_request",
        "process_network_receive_errors_total",
    ],
)
def test_what_machines_say_of_themselves_is_no_traffic(metric: str) -> None:
    assert traffic_by_service([MetricSeries("web", metric, "", TIMES, [1.0] * 40)]) == {}


@pytest.mark.parametrize(
    "metric", ["request_queue_depth", "worker_queue_length", "orders_backlog", "tasks_queue_size"]
)
def test_a_queue_of_requests_is_no_disk(metric: str) -> None:
    role = find_metric_role(metric, "")
    assert role is not None
    assert role.name == "queue"


@pytest.mark.parametrize("per_second", [3.0, 100.0, 250.0])
def test_rates_are_integrated_over_time(per_second: float) -> None:
    series = MetricSeries("web", "requests_per_sec", "", TIMES, [per_second] * 40)
    samples = traffic_by_service([series])["web"].samples
    assert sum(s.requests for s in samples) == pytest.approx(per_second * 60 * 40)


@pytest.mark.parametrize("metric", ["latency_p99_ms", "duration_p95_ms", "response_time_max_ms"])
def test_a_percentile_is_told_in_its_unit_and_is_no_sum_over_samples(metric: str) -> None:
    series = MetricSeries("web", metric, "", TIMES, [200.0] * 30 + [4000.0] * 10)
    recording = Recording(
        AlertFacts("slow", "web", metric, onset=1800.0), TimeRange(0.0, 2400.0), metrics=[series]
    )
    (finding,) = find_service_harm(recording)
    assert finding.text == f"{metric} of web was 4 s, usually 0.2 s."
    assert not {"requests", "own", "total"} & finding.figures.keys()


def test_a_time_of_unknown_unit_is_no_harm() -> None:
    series = MetricSeries("web", "latency", "", TIMES, [200.0] * 30 + [4000.0] * 10)
    recording = Recording(AlertFacts("slow", "web", onset=1800.0), TimeRange(0.0, 2400.0), metrics=[series])
    assert find_service_harm(recording) == []


@pytest.mark.parametrize(("metric", "most", "unit"), [
    ("instance:node_cpu_utilisation:rate5m", 1.02, "ratio"), ("cpu_utilization", 1.08, "ratio"), ("disk_saturation", 1.0, "ratio"),
    ("cpu_utilization", 31.0, "percent"), ("error_rate", 1.05, "percent"), ("cpu_utilisation", 140.0, ""),
])  # fmt: skip
def test_what_is_fully_used_may_overshoot_by_a_little_and_stay_a_ratio(
    metric: str, most: float, unit: str
) -> None:
    assert infer_unit(metric, "", [0.3, most]) == unit
