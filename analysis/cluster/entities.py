"""Which object of the cluster a suspect stands for: the one that would have to be changed to end the trouble."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.analysis.cluster.deviation import (
    format_describe_command,
    format_edit_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.memory import object_of_change, with_memory
from opsleuth.analysis.cluster.model import CONTROLLERS, Cluster, config_uses, is_ready
from opsleuth.analysis.cluster.objects import ObjectRef, get_part, rows_of
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, Recording, ServiceChange, Suspect

_RECENT_SECONDS = 3600.0
_AS_HEAVY = 0.65
# Objects that suffer from what others forbid or lack, where a finding names one of those as well.
_STANDING_STILL = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Rollout", "Pod", "Service"}
)
_ROLLED_OUT = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
# What a person corrects in place; of what runs, holds data or secrets there is no such command.
_EDITED = frozenset(
    {
        "ConfigMap", "Service", "Ingress", "NetworkPolicy", "HorizontalPodAutoscaler", "PodDisruptionBudget", "CronJob",
        "ResourceQuota", "LimitRange", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ClusterPolicy",
        "VirtualService", "DestinationRule", "PeerAuthentication", "AuthorizationPolicy", "Certificate",
        "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
    }
)  # fmt: skip
# Every namespace has these, and every pod may read them.
_OF_EVERY_POD = frozenset({"kube-root-ca.crt", "istio-ca-root-cert", "openshift-service-ca.crt"})
# Changes that leave the template of a workload as it was: no rollout to take back.
_NO_ROLLOUT = frozenset({"config", "flag", "migration"})
# A server that is reached and refuses is not a broken way in.
_REACHED = frozenset(
    {"permission", "certificate", "connections", "storage_full", "out_of_memory", "memory", "quota"}
)

# A pod is placed and its images are pulled before anything reads a ConfigMap: the pod's own template is at fault.
_BEFORE_CONFIG = frozenset({"scheduling", "image_pull"})


class SuspectObject(NamedTuple):
    """The object behind a suspect, and the commands that show its fault and would undo it (empty: not known)."""

    ref: ObjectRef
    show: str
    undo: str


def objects_behind(suspects: Sequence[Suspect], recording: Recording) -> dict[tuple[str, str], SuspectObject]:
    """The object behind each suspect, by its service and kind, where one is known."""
    cluster = Cluster.of(recording)
    pairs = (((s.service, s.kind), object_behind(s, recording, cluster)) for s in suspects)
    return {key: found for key, found in pairs if found is not None}


def object_behind(suspect: Suspect, recording: Recording, cluster: Cluster) -> SuspectObject | None:
    """By what a detector says of an object, by a recent change of one, else the workload or node of that name."""
    found = _find_object_behind(suspect, recording, cluster)
    if found is None or found.undo:
        return found
    undo = _suggest_undo(found.ref, suspect, recording) or _suggest_larger_claim(found.ref, suspect, cluster)
    return found._replace(undo=undo)


def _find_object_behind(suspect: Suspect, recording: Recording, cluster: Cluster) -> SuspectObject | None:
    told = [f for f in suspect.findings if f.figures.get("entity") and f.direction == "cause"]
    same = [f for f in told if f.kind == suspect.kind] or told
    if same:
        return _name_object(_choose_most_telling(same), cluster)
    if changed := _find_changed_object(suspect, recording) or _find_changed_config(
        suspect, recording, cluster
    ):
        return SuspectObject(changed, format_describe_command(changed), "")
    if path := _way_in(suspect, cluster):
        return SuspectObject(path, show_yaml(path), "")
    if ref := _find_workload(suspect.service, cluster):
        return SuspectObject(ref, format_describe_command(ref), "")
    return None


def _choose_most_telling(findings: Sequence[Finding]) -> Finding:
    """Of findings that weigh about the same, the one whose object is not merely what stands still: a policy, a quota."""
    heaviest = max(finding.size for finding in findings)
    close = [f for f in findings if f.size >= _AS_HEAVY * heaviest]
    return min(close, key=lambda f: (f.figures["entity"]["kind"] in _STANDING_STILL, -f.size))


def _name_object(finding: Finding, cluster: Cluster) -> SuspectObject:
    named: Mapping[str, Any] = finding.figures["entity"]
    ref = ObjectRef(str(named["kind"]), named.get("namespace"), str(named.get("name") or ""))
    show = str(finding.figures.get("show", ""))
    if not ref.name:
        alike = [found.ref for found in cluster.of_kind(ref.kind) if found.ref.namespace == ref.namespace]
        if len(alike) == 1:
            ref, show = alike[0], show or show_yaml(alike[0])
    return SuspectObject(ref, show, str(finding.figures.get("undo", "")))


def _suggest_undo(ref: ObjectRef, suspect: Suspect, recording: Recording) -> str:
    """The command that takes the last change of the object back, or opens what somebody has to correct; else nothing."""
    if ref.kind in _EDITED and ref.name:
        return _suggest_edit(ref, suspect, Cluster.of(recording))
    if ref.kind == "Node":
        return f"kubectl cordon {ref.name}"
    if ref.kind not in _ROLLED_OUT or not _was_changed(suspect, recording):
        return ""
    return format_kubectl("rollout undo", ref)


def _suggest_edit(ref: ObjectRef, suspect: Suspect, cluster: Cluster) -> str:
    """What is not there cannot be edited: a Service is recreated from its workload; for other kinds nothing is known."""
    if ref in cluster.by_ref or not cluster.lists(ref.kind, ref.namespace):
        return format_edit_command(ref)
    workload = _find_workload(suspect.service, cluster) if ref.kind == "Service" else None
    return format_kubectl("expose", workload, f"--name={ref.name}") if workload else ""


def _suggest_larger_claim(ref: ObjectRef, suspect: Suspect, cluster: Cluster) -> str:
    """Where the only claim of a workload or pod is full, the command that opens its size."""
    holder = cluster.by_ref.get(ref)
    if suspect.kind != "storage_full" or holder is None:
        return ""
    pods = [holder] if ref.kind == "Pod" else cluster.pods_of(holder)
    volumes = (volume for pod in pods for volume in rows_of(pod.spec, "volumes"))
    named = {get_part(volume, "persistentVolumeClaim").get("claimName") for volume in volumes} - {None}
    claim = ObjectRef("PersistentVolumeClaim", ref.namespace, str(next(iter(named), "")))
    return format_edit_command(claim) if len(named) == 1 else ""


def _was_changed(suspect: Suspect, recording: Recording) -> bool:
    """Whether a rollout of the service shortly before the onset is on record: only then is there one to undo."""
    changes = _list_recent_changes(suspect, with_memory(recording))
    return any(change.kind not in _NO_ROLLOUT for change in changes)


def _list_recent_changes(suspect: Suspect, recording: Recording) -> list[ServiceChange]:
    onset = assumed_onset_of(recording)
    return [
        change
        for change in recording.changes or ()
        if change.service == suspect.service and onset - _RECENT_SECONDS <= change.time <= onset
    ]


def _find_changed_object(suspect: Suspect, recording: Recording) -> ObjectRef | None:
    """The object of the last change of the suspect's service before the onset."""
    found = [
        (change.time, ref)
        for change in _list_recent_changes(suspect, recording)
        if (ref := object_of_change(change))
    ]
    return max(found, default=(0.0, None), key=lambda pair: pair[0])[1]


def _find_changed_config(suspect: Suspect, recording: Recording, cluster: Cluster) -> ObjectRef | None:
    """The only ConfigMap that a service reads, where its configuration was changed before the onset and nothing else."""
    if suspect.kind in _BEFORE_CONFIG:
        return None
    kinds = {change.kind for change in _list_recent_changes(suspect, recording)}
    ref = _find_workload(suspect.service, cluster)
    if not kinds or not kinds <= {"config", "flag"} or ref is None:
        return None
    read = {
        use.ref
        for workload, template in cluster.templates()
        if workload.ref == ref
        for use in config_uses(workload, template)
        if use.ref.kind == "ConfigMap" and use.ref.name not in _OF_EVERY_POD
    }
    return next(iter(read)) if len(read) == 1 else None


def _way_in(suspect: Suspect, cluster: Cluster) -> ObjectRef | None:
    """The Service of a workload that no request reaches although all its pods are ready: the way to them is broken."""
    if suspect.kind in _REACHED or not any(f.detector == "silence" for f in suspect.findings):
        return None
    if any(f.detector == "new_failures" and f.service == suspect.service for f in suspect.findings):
        return None  # what it writes of its callers since the onset says that they reach it
    ref = _find_workload(suspect.service, cluster)
    workload = cluster.by_ref.get(ref) if ref else None
    pods = cluster.pods_of(workload) if workload else []
    if not pods or not all(map(is_ready, pods)):
        return None
    return ObjectRef("Service", pods[0].ref.namespace, suspect.service)


def _find_workload(service: str, cluster: Cluster) -> ObjectRef | None:
    """The node or workload of that name; where no workload was recorded, the one that its pods say made them."""
    if cluster.get("Node", None, service):
        return ObjectRef("Node", None, service)
    recorded = (f.ref for kind in CONTROLLERS for f in cluster.of_kind(kind) if f.ref.name == service)
    made = (w.ref for pod in cluster.of_kind("Pod") if (w := cluster.workload_of(pod)))
    return next(recorded, None) or next((ref for ref in made if ref.name == service), None)
