"""What a metric measures, read from its name and unit as monitoring systems commonly write them.

One table for CloudWatch, Prometheus exporters and service meshes: `CPUUtilization` in Percent, `cpu_usage_rate`
in %, `container_memory_working_set_bytes`, `latency_average` in s. A name that no row knows has no role, and
the detectors leave it alone.
"""

import re
from dataclasses import dataclass

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
    ("disk_queue", r"disk_?queue|io_?queue|io_?wait|queue_?depth"),
    ("write_latency", r"(write|commit|fsync)_?latency"),
    ("read_latency", r"read_?latency"),
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
    # Requests that wait are no demand.
    ("queue", r"(waiting|pending|queued|in_?flight)_?requests|requests_?(waiting|pending|queued|in_?flight)"),
    ("success", r"availability|success"),
    ("failures", r"error|fault|fail|5xx"),
    ("requests", r"requests?(_|$)|workload|calls?(_|$)|qps|rps|hits"),
    ("network_receive", r"(network|net)_?(receive|in|rx)"),
    ("network_transmit", r"(network|net)_?(transmit|out|tx)"),
)
COUNTED = frozenset({"requests", "failures", "restarts", "connections"})
"""Numbers of something: what is measured in seconds (`db_time_per_request` in ms) is none of them."""
_COMPILED = tuple((role, re.compile(pattern)) for role, pattern in _ROLES)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

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
class Role:
    """What a metric measures; `scale` times its value is in the role's unit.

    Seconds for times, bytes and cores for amounts, otherwise as given; where `share` is true a share of a capacity.
    """

    name: str
    scale: float
    share: bool = False


def snake(name: str) -> str:
    """`CPUUtilization` and `cpu-utilization` as `cpuutilization` and `cpu_utilization`: one form for matching."""
    return re.sub(r"\W+", "_", _CAMEL.sub("_", name)).lower()


def role_of(metric: str, unit: str) -> Role | None:
    """The role of a metric, or None where its name says nothing that is known here."""
    name = snake(metric)
    word = unit.strip().lower()
    for role, pattern in _COMPILED:
        if pattern.search(name) and not (role in COUNTED and word in SECONDS):
            return Role(role, _scale(role, word), word in PERCENT or word in SHARES)
    return None


def _scale(role: str, unit: str) -> float:
    if role.endswith("latency") or role == "replication_lag":
        return SECONDS.get(unit, 1.0)
    return 0.01 if unit in PERCENT else AMOUNTS.get(unit.removesuffix("/s").removesuffix("/second"), 1.0)


def statistic_rank(metric: str) -> int:
    """How well a series of this name can stand for the mean of its quantity: 0 is best."""
    words = snake(metric).split("_")
    for rank, names in enumerate(_STATISTICS):
        if any(name in words for name in names):
            return rank
    return 1  # an unnamed statistic is a gauge or a mean more often than a tail
