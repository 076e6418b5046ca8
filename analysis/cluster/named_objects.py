"""Objects that the platform's own messages name as the reason why a pod is not made or does not start.

The kubelet, the scheduler and admission word these messages the same in every cluster; they say which object is
absent, used up or in the way, also where that object itself was not recorded.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_edit_command,
)
from opsleuth.analysis.cluster.model import container_states
from opsleuth.analysis.cluster.objects import ClusterObject, ObjectRef, get_part
from opsleuth.analysis.cluster.storage import find_claim_users
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.object_owners import ObjectOwners


class NamedObject(NamedTuple):
    """A message and what it says: the kind of the object at fault, whether it lies in a namespace, the kind of fault.

    The group `name` of the pattern is the object's name; without one only its kind is known.
    """

    pattern: re.Pattern[str]
    kind: str
    fault: str
    namespaced: bool = True


def _make_pattern(pattern: str, kind: str, fault: str = "config", *, namespaced: bool = True) -> NamedObject:
    return NamedObject(re.compile(pattern, re.IGNORECASE), kind, fault, namespaced)


_NAME = r'"?(?P<name>[a-z0-9][a-z0-9.-]*)"?'
_MESSAGES = (
    _make_pattern(rf"configmaps? {_NAME} not found", "ConfigMap"),
    _make_pattern(rf"secrets? {_NAME} not found", "Secret"),
    _make_pattern(rf"couldn't find key \S+ in configmap (?:[\w.-]+/)?{_NAME}", "ConfigMap"),
    _make_pattern(rf"couldn't find key \S+ in secret (?:[\w.-]+/)?{_NAME}", "Secret"),
    _make_pattern(r"references non-existent config key", "ConfigMap"),
    _make_pattern(r"references non-existent secret key", "Secret"),
    _make_pattern(rf"serviceaccounts? {_NAME} not found|error looking up service account [\w.-]+/(?P<other>[\w.-]+)", "ServiceAccount"),
    _make_pattern(rf"persistentvolumeclaims? {_NAME} not found", "PersistentVolumeClaim"),
    _make_pattern(rf"storageclass(?:es)?(?:\.storage\.k8s\.io)? {_NAME} not found", "StorageClass", namespaced=False),
    _make_pattern(rf"priorityclass(?:es)?(?:\.scheduling\.k8s\.io)? {_NAME} not found|no PriorityClass with name (?P<other>[\w.-]+)", "PriorityClass", namespaced=False),
    _make_pattern(rf"exceeded quota: {_NAME}", "ResourceQuota", "quota"),
    _make_pattern(r"(?:maximum|minimum) \S+ usage per (?:container|pod) is", "LimitRange", "quota"),
    _make_pattern(r'violates PodSecurity "', "Namespace", "permission", namespaced=False),
)  # fmt: skip


# Objects that forbid by a figure or a label of theirs, which somebody has to correct there; what is missing has none.
_CORRECTED = frozenset({"ResourceQuota", "LimitRange", "Namespace"})


def find_named_objects(view: ClusterView, known: ObjectOwners) -> Iterator[Deviation]:
    """Deviations of the objects that events in the window, and pods that do not start, name as their reason."""
    for event in view.events:
        if event.type == "Normal" or event.time < view.window.start:
            continue
        kind, _, name = event.object.rpartition("/")
        pod = (
            next((p for p in view.cluster.of_kind("Pod") if p.ref.name == name), None)
            if kind == "Pod"
            else None
        )
        workload = view.cluster.workload_of(pod) if pod else None
        namespace = (event.extra or {}).get("namespace") or (pod.ref.namespace if pod else None)
        users = (
            find_claim_users(ObjectRef(kind, namespace, name), view)
            if kind == "PersistentVolumeClaim"
            else ()
        )
        service = workload.ref.name if workload else next(iter(users), known.of(event.object))
        yield from _find_in_message(event.message, service, namespace, event.first_time or event.time)
    for pod in view.cluster.of_kind("Pod"):
        yield from _of_pod(pod, view, known)


def _of_pod(pod: ClusterObject, view: ClusterView, known: ObjectOwners) -> Iterator[Deviation]:
    workload = view.cluster.workload_of(pod)
    service = workload.ref.name if workload else known.of(pod.ref.name, "Pod")
    for _, row in container_states(pod):
        message = str(get_part(row, "state", "waiting").get("message", ""))
        yield from _find_in_message(message, service, pod.ref.namespace, pod.created)


def _find_in_message(
    message: str, service: str, namespace: str | None, since: float | None
) -> Iterator[Deviation]:
    for said in _MESSAGES:
        found = said.pattern.search(message)
        if found is None:
            continue
        groups = found.groupdict()
        name = (groups.get("name") or groups.get("other") or "").rstrip(".")
        if said.kind == "Namespace":
            name = namespace or ""
        entity = ObjectRef(said.kind, namespace if said.namespaced else None, name)
        yield Deviation(
            entity=entity,
            kind=said.fault,
            weight=NAMES_CAUSE,
            text=f"pods of {service} do not start because of {entity}: {message[:240]}",
            service=service,
            since=since,
            show=format_describe_command(entity) if name else "",
            undo=format_edit_command(entity) if name and said.kind in _CORRECTED else "",
        )
        return
