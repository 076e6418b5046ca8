"""What a metric measures, read from its name and unit as monitoring systems commonly write them.

One table for CloudWatch, Prometheus exporters and service meshes: `CPUUtilization` in Percent, `cpu_usage_rate`
in %, `container_memory_working_set_bytes`, `latency_average` in s. A name that no row knows has no role, and
the detectors leave it alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opsleuth.analysis.metric_units import infer_unit, seconds_of_rate, to_snake_case

__all__ = ["AMOUNTS", "SECONDS", "MetricRole", "find_metric_role", "statistic_rank", "to_snake_case"]

SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
}
AMOUNTS = {"kb": 1e3, "kib": 1024.0, "kilobytes": 1e3, "mb": 1e6, "mib": 1024.0**2, "megabytes": 1e6}
AMOUNTS |= {
    "gb": 1e9,
    "gib": 1024.0**3,
    "gigabytes": 1e9,
    "millicores": 1e-3,
    "mcores": 1e-3,
    "millicpu": 1e-3,
}
SECONDS |= {"us": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9}
SHARES = {"ratio", "fraction", "share"}
PERCENT = {"%", "percent", "pct"}

_NO_PERCENTILE = r"^(?!.*(?:p\d{2,3}|quantile|percentile)(?:_|$)).*"
_OF_DISK = r"(?:disk|volume|device|ebs|nvme|block|(?:^|_)io)\w*?_?"

# First match wins: the specific before the general (replica lag is a time too, free memory is memory too).
_ROLES: tuple[tuple[str, str], ...] = (
    ("replication_lag", r"replica(tion)?_?lag|lag_?(seconds|bytes)|seconds_behind"),
    (
        "storage_free",
        r"(free|avail\w*)_?(local_?)?(storage|disk|space|bytes_fs)|(storage|disk|filesystem)\w*_?(free|avail)",
    ),
    ("storage_used", r"(disk|storage|filesystem|volume)_?(space_?)?(used|usage|utili[sz]ation)"),
    ("memory_free", r"(free|available)(able)?_?mem|mem\w*_(free|available)"),
    ("swap", r"swap"),
    ("disk_queue", r"(disk|volume|device|nvme|ebs)\w*queue|(^|_)io_?queue|io_?wait"),
    # A percentile is of requests to a store, unless it names the disk: what disks report is a mean.
    (
        "write_latency",
        rf"{_NO_PERCENTILE}(write|commit)_?latency|{_OF_DISK}(write|commit)_?latency|fsync_?latency",
    ),
    ("read_latency", rf"{_NO_PERCENTILE}read_?latency|{_OF_DISK}read_?latency"),
    ("write_ops", r"write_?(iops|ops|throughput)|transaction_?logs?_?gen|wal_?(bytes|rate)|disk_?writes?"),
    ("read_ops", r"read_?(iops|ops|throughput)|disk_?reads?"),
    (
        "locks",
        r"(row_?)?locks?_?wait|waiting_?locks?|blocked_?(sessions|transactions|queries|processes)|deadlock",
    ),
    ("restarts", r"restarts?(_|$)"),
    ("connections", r"connections?\b|connections?_?(count|used|open|active)|sessions_(open|active)"),
    ("db_load", r"db_?load|active_?sessions"),
    ("cpu", r"cpu"),
    ("memory", r"mem(ory)?(_|$)|heap|working_?set|rss\b"),
    ("latency", r"latency|duration|response_?time"),
    # Requests that wait are not demand.
    (
        "queue",
        (
            r"(waiting|pending|queued|in_?flight)_?requests|requests_?(waiting|pending|queued|in_?flight)"
            r"|queue\w*_?(depth|length|len|size)|backlog|queue_?(depth|length|len|size)"
            r"|(consumer|group|topic|partition|records?|offsets?|kafka)\w*_?lag(_|$)"
        ),
    ),
    ("success", r"availability|success"),
    ("failures", r"error|fault|fail|5xx"),
    ("requests", r"requests?(_|$)|workload|calls?(_|$)|qps|rps|hits"),
    ("network_receive", r"(network|net)_?(receive|in|rx)"),
    ("network_transmit", r"(network|net)_?(transmit|out|tx)"),
)
COUNTED = frozenset({"requests", "failures", "restarts", "connections"})
"""Numbers of something: what is measured in seconds (`db_time_per_request` in ms) does not count."""
_COMPILED = tuple((role, re.compile(pattern)) for role, pattern in _ROLES)
# What exporters say of the machine, the runtime or themselves is not traffic of a service: `node_disk_flush_requests`
# counts flushes, `kube_pod_container_resource_requests` what was asked of the scheduler.
_OF_SERVICES = frozenset({"requests", "failures", "success", "latency", "queue"})
_OF_MACHINES = re.compile(
    r"^(node|machine|windows|system|host|process|container|kube|kubelet|cadvisor|go|jvm|python|nodejs|dotnet|scrape"
    r"|prometheus|otelcol)_|(^|_)(disk|block|flush\w*|page_?faults?|irqs?|interrupts?|syscalls?|gc|filesystem|network)_"
    r"|(resource|cpu|memory|limits?)_requests?(_|$)|_?per_(request|call|query)(_|$)"
)

# Means first: only a mean times a count is a sum. Then the middle, then the tails.
_STATISTICS: tuple[tuple[str, ...], ...] = (
    ("average", "avg", "mean"),
    ("p50", "median"),
    ("p90",),
    ("p95",),
    ("p99",),
    ("max", "maximum"),
)


@dataclass(frozen=True, slots=True)
class MetricRole:
    """What a metric measures; `scale` times its value is in the role's unit.

    Seconds for times, bytes and cores for amounts, otherwise as given; where `share` is true a share of a capacity.
    `unit` is the one that it was found to have, in lower case; empty where nothing says so.
    """

    name: str
    scale: float
    share: bool = False
    unit: str = ""

    @property
    def is_time(self) -> bool:
        """Whether the value is known to be a time."""
        return self.unit in SECONDS


def find_metric_role(metric: str, unit: str, values: Sequence[float] = ()) -> MetricRole | None:
    """The role of a metric, or None where its name says nothing that is known here.

    The unit is the metric's own, else the one in its name; `values` tell percent from ratio where neither does.
    """
    name = to_snake_case(metric)
    word = infer_unit(metric, unit, values)
    for named, pattern in _COMPILED:
        if not pattern.search(name) or (named in COUNTED - {"requests"} and word in SECONDS):
            continue
        # `http_server_requests_seconds_max` is the time that they take.
        role = "latency" if named == "requests" and word in SECONDS else named
        if role not in _OF_SERVICES or not _OF_MACHINES.search(name):
            scale = _scale_to_base_unit(role, word)
            return MetricRole(role, scale, word in PERCENT or word in SHARES, word)
    return None


def _scale_to_base_unit(role: str, unit: str) -> float:
    if role.endswith("latency") or role == "replication_lag":
        return SECONDS.get(unit, 1.0)
    if unit in PERCENT:
        return 0.01
    return (
        1.0
        if seconds_of_rate(unit) and unit.startswith("count")
        else AMOUNTS.get(_per_second_amount(unit), 1.0)
    )


def _per_second_amount(unit: str) -> str:
    return unit.removesuffix("/s").removesuffix("/second")


def statistic_rank(metric: str) -> int:
    """How well a series of this name can stand for the mean of its quantity: 0 is best."""
    words = to_snake_case(metric).split("_")
    for rank, names in enumerate(_STATISTICS):
        if any(name in words for name in names):
            return rank
    return 1  # an unnamed statistic is a gauge or a mean more often than a tail


_PERCENTILE = re.compile(
    r"(^|_)(p\d{2,3}|\d{2}(th|pct)?_?percentile|quantile|median|max|maximum|min|minimum)(_|$)"
)


def is_mean(metric: str) -> bool:
    """Whether a series of this name can be a mean: a name with a percentile or an extreme cannot."""
    return _PERCENTILE.search(to_snake_case(metric)) is None
