"""Calls between workloads that nobody recorded, but that their own log lines show: a URL, or an address that is dialled."""

import re
from collections.abc import Collection, Sequence

from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.records import Recording, ServiceDependency

_MOST_LINES = 20_000
_MOST_CHARACTERS = 2_000
_CALLED = re.compile(
    r"://([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(?=[.:/\s\"']|$)|\b(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}\b",
    re.IGNORECASE,
)


def find_calls(recording: Recording, cluster: Cluster) -> Sequence[ServiceDependency]:
    """The recorded calls; where none are, those that lines of one workload show to a Service or workload of the cluster."""
    if recording.topology or not cluster or not recording.logs:
        return recording.topology or ()
    addresses = cluster.names_of_ips()
    known = {
        obj.ref.name for kind in ("Service", "Deployment", "StatefulSet") for obj in cluster.of_kind(kind)
    }
    found: dict[tuple[str, str], None] = {}
    for line in recording.logs[:_MOST_LINES]:
        if line.service in known:
            found |= dict.fromkeys(
                (line.service, callee) for callee in _callees_in(line.message, addresses, known)
            )
    return [ServiceDependency(caller, callee) for caller, callee in found if caller != callee]


def _callees_in(message: str, addresses: dict[str, str], known: Collection[str]) -> set[str]:
    found = _CALLED.findall(message[:_MOST_CHARACTERS])
    return {name for host, ip in found if (name := addresses.get(ip, "") if ip else host) in known}
