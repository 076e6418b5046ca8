"""The change history that the cluster itself keeps: who wrote which object when, revisions, releases, deliveries.

These are read from the objects as they stand; nothing has to watch the cluster for it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.objects import (
    ClusterObject,
    Document,
    ObjectRef,
    get_part,
    parse_moment,
    rows_of,
)
from opsleuth.analysis.cluster.touched import find_workloads_touched
from opsleuth.analysis.records import Recording, ServiceChange

# A day before the window: what is older set nothing off.
_LOOK_BACK_SECONDS = 86_400.0
# Two records of one change: the pipeline's time and the cluster's.
_SAME_SECONDS = 120.0
# Managers that write on behalf of the cluster itself.
MACHINERY = re.compile(
    r"^(kube-controller-manager|kubelet|kube-scheduler|kube-apiserver|cloud-controller-manager|endpoint\S*|coredns"
    r"|cluster-autoscaler|\S*-controller|node-problem-detector)$"
)
# Kinds that people and pipelines write; the rest is made by controllers.
WRITTEN = frozenset(
    {
        "Service", "ConfigMap", "Secret", "NetworkPolicy", "Ingress", "HorizontalPodAutoscaler", "PodDisruptionBudget",
        "Deployment", "StatefulSet", "DaemonSet", "CronJob", "ResourceQuota", "LimitRange", "Role", "RoleBinding",
        "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "StorageClass", "PersistentVolumeClaim",
        "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "PriorityClass", "IngressClass",
        "PeerAuthentication", "AuthorizationPolicy", "VirtualService", "DestinationRule", "Rollout",
    }
)  # fmt: skip
_KIND_OF_CHANGE: Mapping[str, str] = {
    "Deployment": "deploy",
    "StatefulSet": "deploy",
    "DaemonSet": "deploy",
    "Rollout": "deploy",
}
# Kinds that change how calls are sent from the moment they exist. Policies and quotas, which do as well, are held
# against what they bind by an analyzer of their own.
_BINDING = frozenset({"PeerAuthentication", "VirtualService", "DestinationRule"})
# What was installed together is made within minutes.
_SETTLED_SECONDS = 1800.0
_SCALED = re.compile(r"from (\d+) to (\d+)")
_NAMED_OBJECT = re.compile(r"\b([A-Z][A-Za-z]{2,40}) (?:([a-z0-9][a-z0-9.-]*)/)?([a-z0-9][a-z0-9.-]*)\b")
_HELM_TYPE = "helm.sh/release.v1"


class LastWrite(NamedTuple):
    """The last write of an object's own content: when, and by which manager (a tool or a person's client)."""

    time: float
    manager: str


def last_write(found: ClusterObject) -> LastWrite | None:
    """Who wrote the object last besides the cluster's own machinery, by managedFields; None where nothing says so."""
    writes = [
        LastWrite(time, str(row.get("manager", "")))
        for row in rows_of(found.metadata, "managedFields")
        if row.get("subresource") in {None, "", "scale"}
        and not MACHINERY.match(str(row.get("manager", "")))
        and (time := parse_moment(row.get("time"))) is not None
    ]
    return max(writes, default=None)


def with_memory(recording: Recording) -> Recording:
    """The recording with what its objects and events remember of changes among the changes."""
    if not recording.objects:
        return recording
    fresh = remembered_changes(recording, Cluster.of(recording))
    return replace(recording, changes=[*(recording.changes or ()), *fresh]) if fresh else recording


def remembered_changes(recording: Recording, cluster: Cluster) -> list[ServiceChange]:
    """Changes that the cluster's objects and events report and that no change record holds yet, by time."""
    since = recording.window.start - _LOOK_BACK_SECONDS
    known: dict[str, list[float]] = defaultdict(list)
    for change in recording.changes or ():
        known[change.service].append(change.time)
    found = [
        *_derive_from_writes(cluster),
        *_derive_from_revisions(cluster),
        *_derive_from_releases(cluster),
        *_derive_from_deliveries(cluster),
        *_derive_from_scalings(recording),
    ]
    fresh = [
        change
        for change in found
        if since <= change.time < recording.window.end
        and not any(abs(time - change.time) <= _SAME_SECONDS for time in known.get(change.service, ()))
    ]
    return sorted(
        (add_workloads_touched(change, cluster) for change in fresh),
        key=lambda change: (change.time, change.service, change.summary),
    )


def add_workloads_touched(change: ServiceChange, cluster: Cluster) -> ServiceChange:
    """The change with the workloads that its object affects, if others than its own service."""
    ref = object_of_change(change)
    found = cluster.by_ref.get(ref) if ref else None
    touched = find_workloads_touched(found, cluster) if found else ()
    if not touched or touched == (change.service,):
        return change
    return replace(change, extra={**(change.extra or {}), "workloads": list(touched)})


def _derive_from_writes(cluster: Cluster) -> Iterator[ServiceChange]:
    for found in cluster.by_ref.values():
        write = last_write(found) if found.ref.kind in WRITTEN else None
        made = write is not None and found.created is not None and write.time - found.created < 1.0
        if write is None or (made and not _binds_what_was_there(found, cluster)):
            continue
        yield ServiceChange(
            time=write.time,
            service=_service_of(found),
            kind=_KIND_OF_CHANGE.get(found.ref.kind, "config"),
            summary=f"{found.ref} was {'created' if made else 'written'} by {write.manager}",
            author=write.manager,
            extra=_object_columns(found.ref),
        )


def _binds_what_was_there(found: ClusterObject, cluster: Cluster) -> bool:
    """Whether a new object rules over workloads that ran without it before."""
    if found.ref.kind not in _BINDING or found.created is None:
        return False
    return any(
        workload.created is not None and workload.created < found.created - _SETTLED_SECONDS
        for workload in cluster.of_kind("Deployment", "StatefulSet", "DaemonSet", "Rollout")
        if found.ref.namespace in {None, workload.ref.namespace}
    )


def _service_of(found: ClusterObject) -> str:
    """What an object belongs to, by the labels that charts and people give, else its own name."""
    if found.ref.kind in _KIND_OF_CHANGE:
        return found.ref.name
    labels = (found.labels.get(name) for name in ("app.kubernetes.io/name", "app", "k8s-app"))
    return next((str(label) for label in labels if label), found.ref.name)


def _object_columns(ref: ObjectRef) -> dict[str, str | None]:
    return {"object_kind": ref.kind, "object_namespace": ref.namespace, "object_name": ref.name}


def _derive_from_revisions(cluster: Cluster) -> Iterator[ServiceChange]:
    """Replica sets and controller revisions are the history of what made them."""
    history: dict[tuple[str | None, ...], list[ClusterObject]] = defaultdict(list)
    for found in cluster.of_kind("ReplicaSet", "ControllerRevision"):
        for owner in found.owners[:1]:
            history[
                found.ref.kind, found.ref.namespace, str(owner.get("kind")), str(owner.get("name"))
            ].append(found)
    for revisions in history.values():
        first = min(found.created or 0.0 for found in revisions)
        yield from (
            _describe_revision(r, r.owners[0], r.created)
            for r in revisions
            if r.created and r.created > first
        )


def _describe_revision(found: ClusterObject, owner: Document, created: float) -> ServiceChange:
    revision = found.annotations.get("deployment.kubernetes.io/revision") or found.body.get("revision")
    cause = found.annotations.get("kubernetes.io/change-cause")
    name = str(owner.get("name"))
    return ServiceChange(
        time=created,
        service=name,
        kind="deploy",
        summary=f"{owner.get('kind')} {found.ref.namespace}/{name} rolled out revision {revision or found.ref.name}"
        + (f" ({cause})" if cause else ""),
        extra=_object_columns(ObjectRef(str(owner.get("kind")), found.ref.namespace, name)),
    )


def _derive_from_releases(cluster: Cluster) -> Iterator[ServiceChange]:
    """Helm keeps each revision of a release in a Secret; name, revision and status are its labels."""
    for secret in cluster.of_kind("Secret"):
        if secret.body.get("type") != _HELM_TYPE and secret.labels.get("owner") != "helm":
            continue
        modified = str(secret.labels.get("modifiedAt", ""))
        time = float(modified) if modified.isdigit() else secret.created
        if time is not None:
            name = str(secret.labels.get("name", secret.ref.name))
            yield ServiceChange(
                time=time,
                service=name,
                kind="rollback" if "rollback" in str(secret.labels.get("status")) else "deploy",
                summary=f"Helm release {name} revision {secret.labels.get('version')}: {secret.labels.get('status')}",
                author="helm",
            )


def _derive_from_deliveries(cluster: Cluster) -> Iterator[ServiceChange]:
    for application in cluster.of_kind("Application"):
        author = get_part(application.status, "operationState", "operation", "initiatedBy").get("username")
        for row in rows_of(application.status, "history"):
            time = parse_moment(row.get("deployedAt"))
            if time is not None:
                yield ServiceChange(
                    time=time,
                    service=application.ref.name,
                    kind="deploy",
                    summary=f"Argo CD synced {application.ref.name} to {str(row.get('revision'))[:12]}",
                    version=str(row.get("revision"))[:12],
                    author=str(author) if author else None,
                )


def _derive_from_scalings(recording: Recording) -> Iterator[ServiceChange]:
    """Deployments that were scaled by hand or by an autoscaler, outside a rollout: the last pods went."""
    for event in recording.events or ():
        steps = _SCALED.search(event.message) if event.reason == "ScalingReplicaSet" else None
        if steps and steps[2] == "0" and steps[1] != "0" and event.object.startswith("Deployment/"):
            name = event.object.rpartition("/")[2]
            if not _rolled_out(recording, name, event.time):
                yield ServiceChange(
                    time=event.time,
                    service=name,
                    kind="scale",
                    summary=f"Deployment {name} was scaled from {steps[1]} to {steps[2]}",
                    extra=_object_columns(
                        ObjectRef("Deployment", (event.extra or {}).get("namespace"), name)
                    ),
                )


def _rolled_out(recording: Recording, name: str, time: float) -> bool:
    """Whether another replica set of the deployment was scaled up about then: a rollout, no scaling."""
    return any(
        event.object == f"Deployment/{name}"
        and "Scaled up" in event.message
        and abs(event.time - time) <= 600.0
        for event in recording.events or ()
        if event.reason == "ScalingReplicaSet"
    )


def object_of_change(change: ServiceChange) -> ObjectRef | None:
    """The object that a change record names, in columns of its own or in the words of its summary."""
    extra = change.extra or {}
    if extra.get("object_kind") and extra.get("object_name"):
        namespace = extra.get("object_namespace")
        return ObjectRef(
            str(extra["object_kind"]), str(namespace) if namespace else None, str(extra["object_name"])
        )
    for kind, namespace, name in _NAMED_OBJECT.findall(change.summary):
        if kind in WRITTEN:
            return ObjectRef(kind, namespace or None, name)
    return None


def find_flag_map(change: ServiceChange, cluster: Cluster) -> ObjectRef | None:
    """The ConfigMap that holds the flag which a change of kind `flag` names."""
    if change.kind != "flag":
        return None
    words = {w for w in re.findall(r"[A-Za-z][\w.-]{5,}", change.summary) if w != change.service}
    for found in cluster.of_kind("ConfigMap"):
        text = json.dumps(found.body.get("data") or {})
        if any(f'"{word}\\"' in text or f'"{word}"' in text for word in words):
            return found.ref
    return None


def services_touched(change: ServiceChange, cluster: Cluster, known: Iterable[str]) -> tuple[str, ...]:
    """Whom a change of an object concerns: who mounts or owns it, whom its text names, and the record's own service.

    A key such as `paymentFailure` names the service `payment`.
    """
    ref = object_of_change(change)
    users = [w.ref.name for w in (*cluster.users_of(ref), *cluster.guarded_by(ref))] if ref else []
    text = f"{change.summary}\n{change.diff or ''}"
    if ref:
        text = text.replace(ref.name, " ").replace(f"{ref.namespace}/", " ")
    parts = {
        p.lower()
        for word in re.findall(r"[A-Za-z][\w-]*", text)
        for p in (word, *_list_word_beginnings(word))
    }
    named = [name for name in sorted(known) if name.lower() in parts]
    return tuple(dict.fromkeys((*named, *users, change.service)))


def _list_word_beginnings(word: str) -> Iterator[str]:
    """The first one, two and three humps of a camel-case word, joined by hyphens: `productCatalogFailure`."""
    humps = re.findall(r"[A-Z]?[a-z0-9]+", word)
    for count in (1, 2, 3):
        if len(humps) > count:
            yield "-".join(humps[:count])
