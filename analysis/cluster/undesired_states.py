"""Objects not in their desired state: those whose status differs from their spec."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from opsleuth.analysis.argocd_delivery import read_delivery_state
from opsleuth.analysis.cluster.documents import cluster_objects
from opsleuth.analysis.cluster.objects import ClusterObject, get_part, number_of, rows_of
from opsleuth.analysis.records import ObjectState
from opsleuth.analysis.workload_diagnosis import diagnose_workload
from opsleuth.analysis.workloads import Workload, read_workload

# Conditions that are well when True; of others it is not known which way is well.
_WELL_WHEN_TRUE = frozenset(
    {
        "Ready", "Available", "ContainersReady", "PodScheduled", "Initialized", "Established", "NamesAccepted",
        "Synced", "Healthy", "Reconciled", "Accepted", "Programmed", "ResolvedRefs", "AbleToScale",
        "ScalingActive", "Bound", "Issued", "Valid", "Progressing",
    }
)  # fmt: skip
_ILL_WHEN_TRUE = frozenset(
    {
        "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Failed", "Degraded", "Stalled",
        "ReplicaFailure", "FailureTarget", "NamespaceDeletionDiscoveryFailure", "NamespaceContentRemaining",
        "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionGroupVersionParsingFailure",
    }
)  # fmt: skip
_WELL_PHASES = frozenset(
    {"", "running", "succeeded", "active", "bound", "available", "ready", "complete", "completed", "healthy"}
)
_FINISHED = frozenset({"succeeded", "completed", "complete"})
_PHASE_FIELDS = ("phase", "DBInstanceStatus", "DBClusterStatus", "CacheClusterStatus", "Status")


@dataclass(frozen=True, slots=True)
class UndesiredState:
    """One object that is not as it should be, with everything that says so."""

    state: ObjectState
    reasons: tuple[str, ...]


def find_undesired_states(states: Iterable[ObjectState]) -> list[UndesiredState]:
    """The objects that are not in their desired state, in the order given; of several snapshots the last counts."""
    latest: dict[tuple[str, str | None, str], ObjectState] = {}
    for state in states:
        key = (state.kind, state.namespace, state.name)
        known = latest.get(key)
        if known is None or (state.time or 0.0) >= (known.time or 0.0):
            latest[key] = state
    found = ((state, tuple(dict.fromkeys(explain_state(state)))) for state in latest.values())
    return [UndesiredState(state, reasons) for state, reasons in found if reasons]


def explain_state(state: ObjectState) -> Iterator[str]:
    """Each way in which an object is not as it should be, in words with its figures."""
    workload = read_workload(state)
    if workload is not None and not _is_finished(workload):
        yield from _explain_workload(workload)
    delivery = read_delivery_state(state)
    if delivery is not None and (delivery.failed or delivery.sync not in {"Synced", "unknown"}):
        yield delivery.summary[:300]
    for found in cluster_objects([state]):
        if str(found.status.get("phase", "")).lower() in _FINISHED:
            continue
        for check in _CHECKS:
            yield from check(found)


def _is_finished(workload: Workload) -> bool:
    return workload.status.rpartition(":")[2].lower() in _FINISHED


def _explain_workload(workload: Workload) -> Iterator[str]:
    if workload.desired is not None and workload.ready is not None and workload.ready < workload.desired:
        yield f"{workload.ready} of {workload.desired} ready"
    diagnosis = diagnose_workload(workload)
    if diagnosis is not None and diagnosis[2] != "is not ready":
        yield diagnosis[2]


def _check_deletion(found: ClusterObject) -> Iterator[str]:
    if found.deleted is not None:
        held = ", ".join(map(str, found.metadata.get("finalizers") or ()))
        since = found.metadata.get("deletionTimestamp")
        yield f"being deleted since {since}" + (f", held by finalizer {held}" if held else "")


def _check_generation(found: ClusterObject) -> Iterator[str]:
    wanted, seen = (
        number_of(found.metadata.get("generation")),
        number_of(found.status.get("observedGeneration")),
    )
    if wanted is not None and seen is not None and seen < wanted:
        yield f"its controller has seen generation {seen}, the object is at {wanted}"


def _check_rollout(found: ClusterObject) -> Iterator[str]:
    replicas = number_of(found.spec.get("replicas"))
    updated = number_of(found.status.get("updatedReplicas"))
    if (
        found.ref.kind in {"Deployment", "StatefulSet"}
        and replicas
        and updated is not None
        and updated < replicas
    ):
        yield f"{updated} of {replicas} replicas have the new template"
    wanted = number_of(found.status.get("desiredNumberScheduled"))
    ready = number_of(found.status.get("numberReady"))
    if wanted is not None and (ready or 0) < wanted:
        yield f"{ready or 0} of {wanted} scheduled pods ready"


def _check_conditions(found: ClusterObject) -> Iterator[str]:
    for row in rows_of(found.status, "conditions"):
        kind, status = str(row.get("type", "")), str(row.get("status", ""))
        ill = (kind in _WELL_WHEN_TRUE and status in {"False", "Unknown"}) or (
            kind in _ILL_WHEN_TRUE and status in {"True", "Unknown"}
        )
        if ill and row.get("reason") not in ("PodCompleted", "ScalingDisabled"):
            why = ": ".join(str(row[part]) for part in ("reason", "message") if row.get(part))
            yield f"{kind} is {status}" + (f" ({why[:300]})" if why else "")


def _check_phase(found: ClusterObject) -> Iterator[str]:
    for name in _PHASE_FIELDS:
        phase = found.status.get(name)
        if isinstance(phase, str) and phase.lower() not in _WELL_PHASES and "=" not in phase:
            yield f"{name} {phase}"


def _check_node(found: ClusterObject) -> Iterator[str]:
    if found.ref.kind != "Node":
        return
    if found.spec.get("unschedulable"):
        yield "cordoned: takes no new pods"
    for taint in rows_of(found.spec, "taints"):
        if str(taint.get("key", "")).startswith("node.kubernetes.io/") or taint.get("effect") == "NoExecute":
            yield f"taint {taint.get('key')}:{taint.get('effect')}"


def _check_load_balancer(found: ClusterObject) -> Iterator[str]:
    if (
        found.ref.kind == "Service"
        and found.spec.get("type") == "LoadBalancer"
        and "loadBalancer" in found.status
        and not get_part(found.status, "loadBalancer").get("ingress")
    ):
        yield "has no address of a load balancer"


def _check_autoscaler(found: ClusterObject) -> Iterator[str]:
    if found.ref.kind != "HorizontalPodAutoscaler":
        return
    now, wanted = (
        number_of(found.status.get("currentReplicas")),
        number_of(found.status.get("desiredReplicas")),
    )
    if now is not None and wanted is not None and now != wanted:
        yield f"{now} replicas, {wanted} wanted"
    limited = found.condition("ScalingLimited")
    if limited.get("status") == "True" and limited.get("reason") == "TooManyReplicas":
        yield f"wants more than its maximum of {found.spec.get('maxReplicas')} replicas"


def _check_job(found: ClusterObject) -> Iterator[str]:
    if found.ref.kind == "Job" and (failed := number_of(found.status.get("failed"))):
        yield f"{failed} failed pods"


_CHECKS: tuple[Callable[[ClusterObject], Iterable[str]], ...] = (
    _check_deletion,
    _check_generation,
    _check_rollout,
    _check_conditions,
    _check_phase,
    _check_node,
    _check_load_balancer,
    _check_autoscaler,
    _check_job,
)


def count_by_kind(states: Iterable[ObjectState]) -> Mapping[str, int]:
    """How many different objects of each kind there are, the most frequent first."""
    names = {(state.kind, state.namespace, state.name) for state in states}
    counts: dict[str, int] = {}
    for kind, _, _ in names:
        counts[kind] = counts.get(kind, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
