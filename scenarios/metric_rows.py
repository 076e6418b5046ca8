"""Metrics of a scene, in the words of one of three monitoring systems, with noise, seasons and gaps."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc, round_figure
from opsleuth.scenarios.fault_propagation import (
    BURSTS,
    MEMORY_LIMIT_BYTES,
    SPREAD,
    Disturbances,
    ServiceLevels,
    compute_levels,
)
from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import STATEFUL, SyntheticService

Read = Callable[[ServiceLevels], float]


@dataclass(frozen=True, slots=True)
class DialectMetric:
    """One metric of a dialect: how it is called, its unit, how it follows from a level, its relative noise.

    A `noise` of None means the service's own latency noise; `counted` draws the number of failures instead;
    `of_process` marks what a system with a series per pod measures of each pod.
    """

    name: str
    unit: str
    read: Read
    noise: float | None
    counted: bool = False
    of_process: bool = False


def _latency_p95(level: ServiceLevels) -> float:
    return level.latency_ms * level.tail


def _app_metrics(
    names: tuple[tuple[str, str], ...], ms: float, memory: float, *, share: bool
) -> tuple[DialectMetric, ...]:
    """The metrics of a service with requests: names and units in fixed order, `ms` and `memory` per unit."""
    p50, p95, requests, errors, cpu, mem, retransmits = names
    return (
        DialectMetric(*p50, lambda v: v.latency_ms * ms, None),
        DialectMetric(*p95, lambda v: _latency_p95(v) * ms, None),
        DialectMetric(*requests, lambda v: v.rps, SPREAD["rps"]),
        DialectMetric(
            *errors, (lambda v: 100 / max(v.rps, 1e-9)) if share else (lambda _: 1.0), 0.0, counted=True
        ),
        DialectMetric(*cpu, lambda v: v.cpu, SPREAD["cpu"], of_process=True),
        DialectMetric(*mem, lambda v: v.memory * memory, SPREAD["memory"], of_process=True),
        DialectMetric(*retransmits, lambda v: v.retransmits, SPREAD["retransmits"]),
    )


def _database_metrics(names: tuple[tuple[str, str], ...], ms: float) -> tuple[DialectMetric, ...]:
    """The metrics that only a database has, names and units in fixed order."""
    connections, sessions, free, queue, read, write, iops, lag = names
    return (
        DialectMetric(*connections, lambda v: round(v.connections), SPREAD["connections"]),
        DialectMetric(*sessions, lambda v: v.sessions, SPREAD["sessions"]),
        DialectMetric(*free, lambda v: v.free_bytes, 0.0005),
        DialectMetric(*queue, lambda v: v.queue, SPREAD["queue"]),
        DialectMetric(*read, lambda v: v.read_ms * ms, SPREAD["read_ms"]),
        DialectMetric(*write, lambda v: v.write_ms * ms, SPREAD["write_ms"]),
        DialectMetric(*iops, lambda v: v.iops, SPREAD["iops"]),
        DialectMetric(*lag, lambda v: v.lag_s, SPREAD["lag_s"]),
    )


@dataclass(frozen=True, slots=True)
class MetricDialect:
    """How one monitoring system names what it measures. The last of `store` is only there for replicas."""

    name: str
    app: tuple[DialectMetric, ...]
    store: tuple[DialectMetric, ...]


_BYTES_PER_POINT = MEMORY_LIMIT_BYTES / 100
DIALECTS: Mapping[str, MetricDialect] = {
    "plain": MetricDialect(
        "plain",
        _app_metrics(
            (
                ("latency_p50", "ms"),
                ("latency_p95", "ms"),
                ("requests", "req/s"),
                ("errors", "req/s"),
                ("cpu", "%"),
                ("memory", "%"),
                ("tcp_retransmits", "1/s"),
            ),
            ms=1,
            memory=1,
            share=False,
        ),
        _database_metrics(
            (
                ("connections", "count"),
                ("active_sessions", "count"),
                ("storage_free", "bytes"),
                ("disk_queue", "count"),
                ("read_latency", "ms"),
                ("write_latency", "ms"),
                ("disk_iops", "ops/s"),
                ("replication_lag", "s"),
            ),
            ms=1,
        ),
    ),
    "prometheus": MetricDialect(
        "prometheus",
        _app_metrics(
            (
                ("http_server_duration_seconds_p50", "s"),
                ("http_server_duration_seconds_p95", "s"),
                ("http_server_requests_per_second", "req/s"),
                ("http_server_error_ratio", "%"),
                ("container_cpu_utilization", "%"),
                ("container_memory_working_set_bytes", "bytes"),
                ("node_netstat_tcp_retrans_segs", "1/s"),
            ),
            ms=1e-3,
            memory=_BYTES_PER_POINT,
            share=True,
        ),
        _database_metrics(
            (
                ("pg_stat_activity_connections", "count"),
                ("pg_stat_activity_active_sessions", "count"),
                ("node_filesystem_avail_bytes", "bytes"),
                ("node_disk_queue_depth", "count"),
                ("node_disk_read_latency_seconds", "s"),
                ("node_disk_write_latency_seconds", "s"),
                ("node_disk_io_completed", "ops/s"),
                ("pg_replication_lag_seconds", "s"),
            ),
            ms=1e-3,
        ),
    ),
    "cloudwatch": MetricDialect(
        "cloudwatch",
        _app_metrics(
            (
                ("LatencyP50", "Seconds"),
                ("LatencyP95", "Seconds"),
                ("RequestRate", "Count/Second"),
                ("ErrorRate", "Percent"),
                ("CPUUtilization", "Percent"),
                ("MemoryUtilization", "Percent"),
                ("TCPRetransmits", "Count/Second"),
            ),
            ms=1e-3,
            memory=1,
            share=True,
        ),
        _database_metrics(
            (
                ("DatabaseConnections", "Count"),
                ("DBLoad", "Count"),
                ("FreeStorageSpace", "Bytes"),
                ("DiskQueueDepth", "Count"),
                ("ReadLatency", "Milliseconds"),
                ("WriteLatency", "Milliseconds"),
                ("IOPS", "Count/Second"),
                ("ReplicaLag", "Seconds"),
            ),
            ms=1,
        ),
    ),
}


def metrics_of_service(dialect: MetricDialect, service: SyntheticService) -> tuple[DialectMetric, ...]:
    """What this system measures of a service: a third party shows its requests only, a database its devices too."""
    if service.role == "external":
        return dialect.app[:4]
    if service.role == "replica":
        return dialect.app + dialect.store
    return dialect.app + (dialect.store[:-1] if service.role in STATEFUL else ())


@dataclass(frozen=True, slots=True)
class MonitoringSetup:
    """Which dialect a system speaks, whether it measures each pod, whether a fault-free period is kept."""

    dialect: MetricDialect
    per_pod: bool
    baseline: bool


def write_metrics(scene: Scene, monitoring: MonitoringSetup, case: CaseFolderWriter) -> None:
    """Add `metrics.csv` and, if a fault-free period is kept, `metrics_baseline.csv`."""
    timing = scene.timing
    count = int((timing.end - timing.start) / timing.step) + 1
    times = [timing.start + i * timing.step for i in range(count)]
    _write_metrics_table(scene, monitoring, case, "metrics.csv", times, scene.effects)
    if monitoring.baseline:
        steps = range(int(timing.baseline_minutes * 60 / timing.step))
        calm = [timing.baseline + i * timing.step for i in steps]
        _write_metrics_table(scene, monitoring, case, "metrics_baseline.csv", calm, Disturbances())


def _write_metrics_table(
    scene: Scene,
    monitoring: MonitoringSetup,
    case: CaseFolderWriter,
    file: str,
    times: list[float],
    effects: Disturbances,
) -> None:
    states = [compute_levels(scene.world, effects, moment) for moment in times]
    stamps = [format_utc(moment) for moment in times]
    for service in scene.world.services:
        missing = _draw_gap(scene.random, len(times))
        states_of = [state[service.name] for state in states]
        for metric, instance in _list_series(monitoring, service):
            values = _draw_values(scene.random, metric, service, states_of, scene.timing.step)
            row = {"service": service.name, "metric": metric.name, "unit": metric.unit, "instance": instance}
            for i, value in enumerate(values):
                if i not in missing and scene.random.random() > 0.003:
                    case.add(file, timestamp=stamps[i], value=round_figure(value), **row)


def _list_series(
    monitoring: MonitoringSetup, service: SyntheticService
) -> Iterator[tuple[DialectMetric, str | None]]:
    for metric in metrics_of_service(monitoring.dialect, service):
        each = monitoring.per_pod and metric.of_process and service.pods
        yield from ((metric, instance) for instance in (service.pods if each else (None,)))


def _draw_gap(random: Random, count: int) -> range:
    """A stretch in which a service reported nothing: one in six has one, of 2 to 5 samples."""
    if random.random() > 1 / 6:
        return range(0)
    start = random.randrange(count)
    return range(start, start + random.randrange(2, 6))


def _draw_values(
    random: Random, metric: DialectMetric, service: SyntheticService, states: list[ServiceLevels], step: int
) -> Iterator[float]:
    noise = service.noise if metric.noise is None else metric.noise
    drift = 0.0
    for level in states:
        # Neighbouring samples resemble each other: half of the deviation carries over.
        drift = 0.5 * drift + math.sqrt(0.75) * random.gauss(0, noise)
        if metric.counted:
            failed = _draw_poisson_count(
                random, level.rps * level.fail_share * step * random.gammavariate(BURSTS, 1 / BURSTS)
            )
            yield failed / step * metric.read(level)
        else:
            value = metric.read(level) * math.exp(drift)
            yield min(value, 100.0) if metric.unit in {"%", "Percent"} else value


def _draw_poisson_count(random: Random, mean: float) -> int:
    """A Poisson draw; the normal approximation above 50."""
    if mean > 50:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    limit, product, count = math.exp(-mean), random.random(), 0
    while product > limit:
        product *= random.random()
        count += 1
    return count
