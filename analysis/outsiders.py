"""Suspects that no request of the incident passes: what is wrong with them is most likely their own affair."""

from collections.abc import Sequence
from dataclasses import replace

from opsleuth.analysis.cluster.model import CONTROLLERS, Cluster
from opsleuth.analysis.fault_kinds import SYMPTOMS
from opsleuth.analysis.namespaces import foreign_namespaces
from opsleuth.analysis.records import Recording, Suspect

OUTSIDER_WEIGHT = 0.5
# What serves every namespace may break any service, whether or not a call leads to it.
_SHARED_KINDS = frozenset({"dns"})
# A service on the path of the requests that is at least so suspect is enough to explain the incident.
_ENOUGH_SCORE = 0.5


def demote_outsiders(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """The suspects, strongest first; one outside the call graph counts half where one inside is suspect as well.

    In a namespace of its own it steps back behind any suspect inside; in theirs only behind one with a named fault,
    since a recorded call graph may lack it.
    """
    inside = {name for edge in recording.topology or () for name in (edge.caller, edge.callee)}
    if recording.alert.service not in inside or not recording.objects:
        return list(suspects)
    strong = [s for s in suspects if s.service in inside and s.score >= _ENOUGH_SCORE]
    if not strong:
        return list(suspects)
    named = any(s.kind not in SYMPTOMS for s in strong)
    cluster, foreign = Cluster.of(recording), foreign_namespaces(recording)
    weighed = [
        replace(s, score=s.score * OUTSIDER_WEIGHT)
        if _is_outsider(s, inside, recording)
        and (named or _namespaces_of(s.service, cluster) <= foreign)
        and not _hosts_any(s.service, inside, cluster)
        else s
        for s in suspects
    ]
    return sorted(weighed, key=lambda s: -s.score)


def _is_outsider(suspect: Suspect, inside: set[str], recording: Recording) -> bool:
    if suspect.service in inside or suspect.kind in _SHARED_KINDS or suspect.service in recording.alert.text:
        return False
    return not any(inside.intersection(f.figures.get("victims", ())) for f in suspect.findings)


def _namespaces_of(name: str, cluster: Cluster) -> set[str | None]:
    """The namespaces of the workloads of that name; where none was recorded, a namespace without an owner."""
    found = {w.ref.namespace for w in cluster.of_kind(*CONTROLLERS) if w.ref.name == name}
    return found or {None}


def _hosts_any(name: str, inside: set[str], cluster: Cluster) -> bool:
    """Whether it is a node that runs a service of the call graph, or whose pods are not known."""
    if cluster.get("Node", None, name) is None:
        return False
    owners = [cluster.workload_of(pod) or pod for pod in cluster.pods_on(name)]
    return not owners or any(owner.ref.name in inside for owner in owners)
