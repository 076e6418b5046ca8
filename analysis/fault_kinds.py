"""The words for kinds of fault, and which kind usually shows itself as which other.

A full disk also blocks writers, fails requests and restarts a database: several kinds are seen on one
service, and one of them is the reason for the rest. The relation here is one-directional knowledge of
operating systems, runtimes and databases; nothing in it knows a system or a service.
"""

from collections.abc import Collection, Mapping

# What any fault of a process looks like from outside; alone it names no cause.
SYMPTOMS = frozenset({"latency", "errors", "exception", "crash", "probe", "dependency", "other"})

_SHOWS_AS: Mapping[str, frozenset[str]] = {
    # A process that starts again and again warms up again and again.
    "out_of_memory": frozenset(
        {"memory", "cpu", "crash", "probe", "errors", "exception", "latency", "dependency", "network_loss"}
    ),
    # Where replicas are missing, the rest carry their load.
    "image_pull": frozenset(
        {"crash", "deploy", "dns", "permission", "probe", "cpu", "errors", "latency", "dependency"}
    ),
    "scheduling": frozenset({"deploy", "probe", "crash", "cpu", "errors", "latency", "dependency"}),
    "quota": frozenset(
        {"scheduling", "deploy", "errors", "exception", "permission", "cpu", "latency", "dependency"}
    ),
    "config": frozenset({"crash", "deploy", "exception", "errors", "probe", "dependency"}),
    # New code may also work more, or keep more, than the old.
    "deploy": frozenset({"crash", "exception", "errors", "latency", "probe", "dependency", "cpu", "memory"}),
    "certificate": frozenset({"crash", "exception", "errors", "dependency", "probe"}),
    "permission": frozenset({"crash", "exception", "errors", "dependency", "probe"}),
    "dns": frozenset({"crash", "exception", "errors", "dependency", "latency", "probe"}),
    # A database out of space stops accepting writes: lock queues, dead I/O and refused sessions follow.
    "storage_full": frozenset(
        {
            "disk",
            "locks",
            "connections",
            "crash",
            "errors",
            "exception",
            "latency",
            "failover",
            "dependency",
            "replication_lag",
        }
    ),
    # Time spent waiting for the device is booked as busy CPU by many exporters.
    "disk": frozenset({"cpu", "locks", "connections", "latency", "errors", "replication_lag"}),
    "locks": frozenset({"connections", "latency", "errors", "exception"}),
    "slow_query": frozenset(
        {"cpu", "disk", "locks", "connections", "latency", "errors", "dependency", "replication_lag"}
    ),
    "connections": frozenset({"dependency", "errors", "exception", "latency"}),
    "traffic": frozenset({"cpu", "memory", "connections", "latency", "errors", "replication_lag"}),
    # A starved server picks up its calls late: the wait lies between the client's span and its own. It seldom fails.
    "cpu": frozenset({"latency", "probe", "network_delay"}),
    "memory": frozenset({"latency", "cpu"}),
    "replication_lag": frozenset({"latency"}),
    # Who goes away resets the connections it had.
    "failover": frozenset(
        {"connections", "dependency", "errors", "exception", "latency", "crash", "network_loss"}
    ),
    "network_delay": frozenset({"latency", "dependency"}),
    "network_loss": frozenset({"latency", "errors", "dependency"}),
    "dependency": frozenset({"crash", "exception", "errors", "latency", "probe"}),
    "crash": frozenset(
        {"errors", "exception", "latency", "probe", "deploy", "cpu", "dependency", "network_loss"}
    ),
    "probe": frozenset({"crash", "errors", "latency"}),
    "exception": frozenset({"errors", "latency"}),
}


def symptoms_of_kind(kind: str) -> frozenset[str]:
    """The kinds that a fault of `kind` usually shows itself as, `kind` itself left out."""
    return _SHOWS_AS.get(kind, frozenset())


def explains_symptom(cause: str, symptom: str) -> bool:
    """Whether a fault of kind `cause` would by itself make `symptom` appear on the same service."""
    return symptom in symptoms_of_kind(cause) and cause not in symptoms_of_kind(symptom)


def drop_explained_kinds(kinds: Collection[str]) -> list[str]:
    """Those of `kinds`, in the given order, that none of the others explains."""
    return [kind for kind in kinds if not any(explains_symptom(other, kind) for other in kinds)]
