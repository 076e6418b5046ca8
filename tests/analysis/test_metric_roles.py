"""Metric names of common monitoring systems and what they are taken for."""

import pytest

from opsleuth.analysis.metric_roles import find_metric_role, statistic_rank


@pytest.mark.parametrize(
    ("metric", "unit", "role", "scale"),
    [
        ("CPUUtilization", "Percent", "cpu", 0.01),
        ("node_cpu_usage", "ratio", "cpu", 1.0),
        ("container_memory_working_set_bytes", "bytes", "memory", 1.0),
        ("FreeableMemory", "Bytes", "memory_free", 1.0),
        ("node_memory_MemAvailable_bytes", "bytes", "memory_free", 1.0),
        ("FreeStorageSpace", "Bytes", "storage_free", 1.0),
        ("node_filesystem_avail_bytes", "bytes", "storage_free", 1.0),
        ("DiskQueueDepth", "Count", "disk_queue", 1.0),
        ("WriteLatency", "Milliseconds", "write_latency", 1e-3),
        ("ReplicaLag", "Seconds", "replication_lag", 1.0),
        ("DatabaseConnections", "Count", "connections", 1.0),
        ("latency_average", "ms", "latency", 1e-3),
        ("http_request_duration_seconds", "s", "latency", 1.0),
        ("availability", "%", "success", 0.01),
        ("http_5xx_count", "count", "failures", 1.0),
        ("requests_sum", "count/5min", "requests", 1.0),
    ],
)
def test_common_names_have_their_role(metric: str, unit: str, role: str, scale: float) -> None:
    found = find_metric_role(metric, unit)
    assert found is not None
    assert (found.name, found.scale) == (role, scale)


def test_requests_that_wait_are_no_demand() -> None:
    found = find_metric_role("db_pool_waiting_requests", "")
    assert found is not None
    assert found.name == "queue"


@pytest.mark.parametrize("metric", ["", "temperature", "build_info", "MaximumUsedTransactionIDs"])
def test_a_name_that_says_nothing_has_no_role(metric: str) -> None:
    assert find_metric_role(metric, "") is None


def test_means_stand_before_middles_before_tails() -> None:
    names = ["latency_max", "latency_p99", "latency_p50", "latency_average", "latency_p95"]
    ordered = sorted(names, key=statistic_rank)
    assert ordered == ["latency_average", "latency_p50", "latency_p95", "latency_p99", "latency_max"]


def test_a_time_is_no_count() -> None:
    assert find_metric_role("db_time_per_request", "ms") is None
    assert find_metric_role("requests", "count/5min") is not None


@pytest.mark.parametrize(("metric", "role"), [
    ("write_latency_p95_us", "latency"), ("p99_write_latency_ms", "latency"), ("cassandra_read_latency_p999", "latency"),
    ("WriteLatency", "write_latency"), ("disk_write_latency_p99_ms", "write_latency"), ("volume_read_latency", "read_latency"),
    ("ReadLatency", "read_latency"), ("wal_fsync_latency_p99", "write_latency"),
])  # fmt: skip
def test_a_percentile_of_writes_is_a_disk_only_where_it_names_one(metric: str, role: str) -> None:
    found = find_metric_role(metric, "ms", [1.0, 2.0])
    assert found is not None
    assert found.name == role
