"""Each kind of fault in everyday words; a test holds the keys against the kinds that there are."""

from collections.abc import Mapping

FAULT_WORDS: Mapping[str, str] = {
    "cpu": "CPU saturation",
    "memory": "memory pressure",
    "disk": "disk saturation",
    "storage_full": "storage running full",
    "network_delay": "network delay",
    "network_loss": "network loss",
    "dns": "failing name resolution",
    "latency": "added latency",
    "errors": "failing requests",
    "exception": "an exception in its code",
    "crash": "crashing",
    "out_of_memory": "running out of memory",
    "image_pull": "an image that cannot be pulled",
    "scheduling": "pods that cannot be scheduled",
    "probe": "failing health probes",
    "quota": "an exhausted quota",
    "config": "a configuration fault",
    "deploy": "a bad release",
    "dependency": "a dependency that does not answer",
    "traffic": "a change of traffic",
    "slow_query": "a slow database statement",
    "locks": "lock contention",
    "connections": "exhausted connections",
    "replication_lag": "replication lag",
    "failover": "a failover",
    "certificate": "a certificate fault",
    "permission": "missing permissions",
    "other": "a fault of unknown kind",
}
