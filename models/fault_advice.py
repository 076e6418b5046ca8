"""What to do about each kind of fault: general advice of the trade, worded for the service at hand.

No number and no name stands here but the service's own, so that advice never claims anything.
"""

from collections.abc import Mapping

from opsleuth.analysis.request_fields import name_server
from opsleuth.state.conclusion import Kind
from opsleuth.state.fault_words import FAULT_WORDS

__all__ = [
    "FAULT_ADVICE",
    "FAULT_WORDS",
    "advice_for_external_host",
    "advice_for_fault",
    "advice_for_memory_kill",
    "advice_unanswered",
]

FAULT_ADVICE: Mapping[Kind, tuple[str, ...]] = {
    "cpu": (
        "Look at what {service} computes now (profile, thread dump), and whether a neighbour takes its CPU.",
        "Add instances of {service} or raise its CPU limit until the cause is fixed.",
    ),
    "memory": (
        "Take a heap profile of {service} before anything restarts it.",
        "Raise the memory limit of {service} or restart its instances one by one to gain time.",
    ),
    "disk": (
        "Find what writes or reads on the disk of {service}, and move or pause it.",
        "Give the volume of {service} more throughput.",
    ),
    "storage_full": (
        "Free or add storage for {service} now; find and pause what fills it.",
        "Alert on the free storage of {service} well before it is full.",
    ),
    "network_delay": (
        "Check the network path to {service}: node, interface, policy, and whether only some of its pods are slow.",
        "Move {service} to another node if only this one's path is slow.",
    ),
    "network_loss": (
        "Check drops and retransmissions on the path to {service}.",
        "Move {service} to another node if only this one's path loses packets.",
    ),
    "dns": (
        "Resolve the name that {service} uses from inside its own network.",
        "Correct the name or the resolver that {service} is configured with.",
    ),
    "latency": (
        "Look at what {service} does in a slow request: its own work, its locks, its calls out.",
        "Undo the last change of {service} if it fits the onset.",
    ),
    "errors": (
        "Read the errors of {service} from the onset on, and what changed in it in the hour before.",
        "Undo the last change of {service} if it fits the onset.",
    ),
    "exception": (
        "Read the stack trace in {service} and the input that leads to it.",
        "Undo the last change of {service} if it fits the onset.",
    ),
    "crash": (
        "Read the last lines of {service} before it ended (previous container's log) and its exit code.",
        "Undo the last change of {service} if it fits the onset.",
    ),
    "out_of_memory": (
        "See whether {service} met its own memory limit (raise it) or the host ran out (find what fills it).",
        "Take a heap profile of {service} near its limit.",
    ),
    "image_pull": (
        "Check the image name, tag and registry credentials of {service}.",
        "Go back to the last image of {service} that could be pulled.",
    ),
    "scheduling": (
        "Compare what {service} asks for (resources, selectors, tolerations) with what the nodes offer.",
        "Add a node that fits, or ask for less in {service}.",
    ),
    "probe": (
        "Call the probed endpoint of {service} by hand and compare its time with the probe's limit.",
        "Correct the probe of {service} if the service itself is well.",
    ),
    "quota": (
        "Raise the quota that {service} ran into, or use less of it.",
        "Alert on the use of this quota.",
    ),
    "config": (
        "Compare the configuration of {service} with its last good one, and correct the value named above.",
        "Check the configuration of {service} before it is rolled out.",
    ),
    "deploy": (
        "Roll {service} back to the release before.",
        "Find in the diff of that release what explains the symptom, and test it before the next try.",
    ),
    "dependency": (
        "Check whether the services behind {service} are up and reachable from it.",
        "Make {service} degrade instead of fail while its dependency is down.",
    ),
    "traffic": (
        "Find where the traffic to {service} comes from or went to.",
        "Limit or shift the load, or scale {service}, until it is understood.",
    ),
    "slow_query": (
        "Undo the change that made the statement slow if one fits the onset; else read its plan (EXPLAIN).",
        "Give the statement the index it needs, or bound what it reads.",
    ),
    "locks": (
        "Find the session that holds the lock in {service}, and whose it is.",
        "Shorten the transaction that holds it, or end that session.",
    ),
    "connections": (
        "Find who holds the connections of {service}, and whether a pool changed its size.",
        "Raise the pool or the limit once it is clear that the connections are used.",
    ),
    "replication_lag": (
        "Reduce or spread the writes that the replica of {service} cannot follow.",
        "Send reads that must be fresh to the primary meanwhile.",
    ),
    "failover": (
        "Check that clients of {service} reconnected to the new primary.",
        "Find why the old primary of {service} went away.",
    ),
    "certificate": (
        "Renew the certificate that {service} uses or meets, and reload it.",
        "Alert well before certificates expire.",
    ),
    "permission": (
        "Give {service} the permission that was refused, and only that.",
        "Find what took the permission away.",
    ),
    "other": ("Look closer at {service} with the evidence above.",),
}


UNANSWERED: tuple[str, ...] = (
    "Check the way to {service}: its endpoints, ports and policies, and whether its pods are up and listen.",
    "Call {service} from a pod of its caller by hand, and compare with a call to its pod directly.",
)
"""For a service that does not answer: the generic advice of a dependency looks past it, at what it calls itself."""


_EXTERNAL_HOST_ADVICE: Mapping[str, tuple[str, ...]] = {
    "dependency": (
        "Check whether {host} is up and reachable from {service}.",
        "Make {service} degrade instead of fail while {host} is down.",
    ),
    "network_loss": ("Check drops and retransmissions on the path from {service} to {host}.",),
    "network_delay": ("Check the network path from {service} to {host}.",),
    "certificate": ("Check the certificate that {host} shows to {service}, and renew it if it has expired.",),
    "dns": (
        "Resolve {host} from inside the network of {service}: `nslookup {host}`",
        "Correct the name or the resolver that {service} is configured with.",
    ),
}


def advice_for_external_host(kind: Kind, service: str, host: str) -> tuple[str, ...]:
    """Sentences of advice about the host that the service calls; empty for a fault that is not about the call."""
    return tuple(text.format(service=service, host=host) for text in _EXTERNAL_HOST_ADVICE.get(kind, ()))


_MEMORY_ADVICE: Mapping[str, tuple[str, ...]] = {
    "limit": (
        "Raise the memory limit of {subject}, or find its leak: it was killed at the limit of its own control group, not because the host ran out.",
        "Compare the memory of {subject} with its limit over the last days: a slow rise is a leak, a step came with a change or with load.",
    ),
    "container": (
        "Raise the memory limit of {subject}, or find its leak: the kubelet reports its container as OOMKilled.",
        "See that the node was not out of memory as a whole (event SystemOOM, `kubectl describe node`): then the limit is not the cause.",
    ),
    "host": (
        "Find the biggest process of the host, as the whole host ran out of memory: `ps -eo pid,rss,comm --sort=-rss | head`. {killed} need not be the one that fills it.",
        "Give what may grow a limit of its own (MemoryMax=, a container limit), or the host more memory.",
    ),
    "pressure": (
        "Find what causes the memory pressure that systemd-oomd acted on: `systemd-cgtop -m`, `oomctl`.",
        "Give {subject} a limit of its own (MemoryMax=), or exempt it: ManagedOOMPreference=avoid.",
    ),
    "heap": (
        "Take a heap dump of {subject} and see what fills it.",
        "Raise the heap limit of {subject} only if what fills it is needed.",
    ),
}


def advice_for_memory_kill(scope: str, subject: str, process: str) -> tuple[str, ...]:
    """Sentences of advice by what ran out of memory; empty where that is not known. `process` was killed, if it is named."""
    killed = f"{process}, which was killed," if process else "The process that was killed"
    at_limit = process if scope == "limit" and process else name_server(subject)
    return tuple(text.format(subject=at_limit, killed=killed) for text in _MEMORY_ADVICE.get(scope, ()))


def advice_unanswered(service: str) -> tuple[str, ...]:
    """Sentences of advice for a service that no request reaches."""
    return tuple(text.format(service=service) for text in UNANSWERED)


def advice_for_fault(kind: Kind, service: str) -> tuple[str, ...]:
    """Sentences of advice, the most urgent first."""
    return tuple(text.format(service=name_server(service)) for text in FAULT_ADVICE[kind])
