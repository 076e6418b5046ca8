"""How the objects of a cluster are related: who owns, selects, serves, hosts, mounts and guards whom."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from opsleuth.analysis.cluster.documents import cluster_objects
from opsleuth.analysis.cluster.objects import (
    ClusterObject,
    Document,
    ObjectRef,
    get_part,
    number_of,
    rows_of,
)
from opsleuth.analysis.records import ObjectState, Recording

CONTROLLERS = ("Deployment", "StatefulSet", "DaemonSet", "Rollout", "Job", "CronJob", "ReplicationController")
"""Kinds that make pods, Argo's Rollout among them."""
_MAKERS = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
_TEMPLATED = (*CONTROLLERS, "ReplicaSet")


Label = tuple[str | None, str, str]
"""Namespace, key and value of a label."""


class Address(NamedTuple):
    """One endpoint of a service: where it is, which pod it is, and whether it takes traffic."""

    ip: str
    pod: str | None
    ready: bool


class ConfigUse(NamedTuple):
    """A pod template's use of a ConfigMap or Secret; `key` is None for all of it."""

    ref: ObjectRef
    key: str | None
    optional: bool


class Cluster:
    """The objects of a recording with the edges between them. Nothing in it changes after it is built."""

    _latest: ClassVar[tuple[Sequence[ObjectState], "Cluster | None"]] = ((), None)

    def __init__(self, objects: Iterable[ClusterObject]) -> None:
        self.by_ref: dict[ObjectRef, ClusterObject] = {}
        for found in objects:
            self.by_ref[found.ref] = found
        self._by_kind: dict[str, list[ClusterObject]] = defaultdict(list)
        for found in self.by_ref.values():
            self._by_kind[found.ref.kind].append(found)
        self._places = {(found.ref.kind, found.ref.namespace) for found in self.by_ref.values()}
        self._pods: dict[str | None, list[ClusterObject]] = defaultdict(list)
        self._labelled: dict[Label, list[ClusterObject]] = defaultdict(list)
        for pod in self._by_kind.get("Pod", ()):
            self._pods[pod.ref.namespace].append(pod)
            for key, value in pod.labels.items():
                self._labelled[pod.ref.namespace, str(key), str(value)].append(pod)
        self._makers = self._workloads_by_label()
        self._slices = self._slices_by_service()
        self._workloads: dict[ObjectRef, ClusterObject | None] = {}
        self._users: dict[ObjectRef, list[ClusterObject]] | None = None
        self._owned = self._pods_by_owner()

    @classmethod
    def of(cls, recording: Recording) -> "Cluster":
        """The model of a recording's objects; of the same objects it is built once."""
        objects = recording.objects or ()
        held, built = cls._latest
        if held is not objects or built is None:
            built = cls(cluster_objects(objects))
            cls._latest = objects, built
        return built

    def __bool__(self) -> bool:
        return bool(self.by_ref)

    def of_kind(self, *kinds: str) -> Iterator[ClusterObject]:
        """All objects of the kinds, in the order of the recording."""
        for kind in kinds:
            yield from self._by_kind.get(kind, ())

    def get(self, kind: str, namespace: str | None, name: str) -> ClusterObject | None:
        return self.by_ref.get(ObjectRef(kind, namespace, name))

    def lists(self, kind: str, namespace: str | None) -> bool:
        """Whether any object of the kind was recorded there: only then absence of another says something."""
        return (kind, namespace) in self._places

    # --- pods ------------------------------------------------------------------------------------------------

    def pods_in(self, namespace: str | None) -> Sequence[ClusterObject]:
        return self._pods.get(namespace, ())

    def selected(self, namespace: str | None, selector: Document) -> list[ClusterObject]:
        """The pods whose labels a selector (plain labels, or matchLabels and matchExpressions) matches."""
        plain = get_part(selector, "matchLabels") if _is_structured(selector) else selector
        lists = [self._labelled.get((namespace, str(k), str(v)), []) for k, v in plain.items()]
        candidates = min(lists, key=len) if lists else self.pods_in(namespace)
        return [pod for pod in candidates if matches_selector(selector, pod.labels)]

    def pods_of(self, workload: ClusterObject) -> list[ClusterObject]:
        """The pods of a workload: by owner, else by its selector."""
        if owned := self._owned.get(workload.ref):
            return owned
        selector = get_part(workload.spec, "selector")
        return self.selected(workload.ref.namespace, selector) if selector else []

    def workload_of(self, pod: ClusterObject) -> ClusterObject | None:
        """The topmost recorded workload behind a pod, by owners, else by the selector that matches it.

        Where none was recorded, the one that the pod's own owner reference names, known by name alone.
        """
        if pod.ref not in self._workloads:
            self._workloads[pod.ref] = self._find_workload(pod)
        return self._workloads[pod.ref]

    def derived_workloads(self) -> list[ClusterObject]:
        """Workloads that were not recorded, of which owner references of recorded pods speak."""
        found = (workload for workload in self._workloads.values() if workload)
        return list({w.ref: w for w in found if w.ref not in self.by_ref}.values())

    def _find_workload(self, pod: ClusterObject) -> ClusterObject | None:
        seen, found = pod, None
        while owner := self._owner(seen):
            seen = found = owner
        if found is not None:
            return found
        near = (
            w
            for k, v in pod.labels.items()
            for w in self._makers.get((pod.ref.namespace, str(k), str(v)), ())
        )
        fitting = next((w for w in near if matches_selector(get_part(w.spec, "selector"), pod.labels)), None)
        return fitting or _derive_maker(pod)

    def _owner(self, found: ClusterObject) -> ClusterObject | None:
        return next(
            (
                owner
                for row in found.owners
                if (owner := self.get(str(row.get("kind")), found.ref.namespace, str(row.get("name"))))
                and owner.ref != found.ref
            ),
            None,
        )

    def _workloads_by_label(self) -> dict[Label, list[ClusterObject]]:
        """Workloads by one label that their selector asks for: a pod is looked up by its labels."""
        found: dict[Label, list[ClusterObject]] = defaultdict(list)
        for workload in self.of_kind(*CONTROLLERS):
            selector = get_part(workload.spec, "selector")
            wanted = get_part(selector, "matchLabels") if _is_structured(selector) else selector
            for key, value in list(wanted.items())[:1]:
                found[workload.ref.namespace, str(key), str(value)].append(workload)
        return found

    def _slices_by_service(self) -> dict[tuple[str | None, str], list[ClusterObject]]:
        found: dict[tuple[str | None, str], list[ClusterObject]] = defaultdict(list)
        for piece in self.of_kind("EndpointSlice"):
            owners = [str(o.get("name")) for o in piece.owners if o.get("kind") == "Service"]
            name = piece.labels.get("kubernetes.io/service-name") or next(iter(owners), None)
            if name:
                found[piece.ref.namespace, str(name)].append(piece)
        return found

    def _pods_by_owner(self) -> dict[ObjectRef, list[ClusterObject]]:
        owned: dict[ObjectRef, list[ClusterObject]] = defaultdict(list)
        for pod in self._by_kind.get("Pod", ()):
            seen, steps = pod, 0
            while (owner := self._owner(seen)) and steps < 5:
                owned[owner.ref].append(pod)
                seen, steps = owner, steps + 1
            maker = None if steps else self.workload_of(pod)
            if maker is not None and maker.ref not in self.by_ref:
                owned[maker.ref].append(pod)
        return owned

    # --- templates -------------------------------------------------------------------------------------------

    def templates(self) -> Iterator[tuple[ClusterObject, Document]]:
        """Workloads with the spec of the pods they make; pods that no recorded workload makes, with their own."""
        for workload in self.of_kind(*_TEMPLATED):
            if template := template_of(workload):
                yield workload, template
        derived: set[ObjectRef] = set()
        for pod in self.of_kind("Pod"):
            maker = self.workload_of(pod) or pod
            if pod.spec and maker.ref not in derived and (maker is pod or maker.ref not in self.by_ref):
                derived.add(maker.ref)
                yield maker, pod.spec

    def users_of(self, ref: ObjectRef) -> list[ClusterObject]:
        """The workloads whose templates read the ConfigMap or Secret."""
        if self._users is None:
            self._users = defaultdict(list)
            for workload, template in self.templates():
                for used in dict.fromkeys(use.ref for use in config_uses(workload, template)):
                    self._users[used].append(workload)
        return self._users.get(ref, [])

    def guarded_by(self, ref: ObjectRef) -> list[ClusterObject]:
        """The workloads whose pods a policy selects by labels, or that a route or destination rule has as its host."""
        policy = self.by_ref.get(ref)
        if policy is None:
            return []
        selector = get_part(policy.spec, "podSelector") or get_part(policy.spec, "selector")
        if selector and ref.kind in {"NetworkPolicy", "PeerAuthentication", "AuthorizationPolicy"}:
            owners = [self.workload_of(pod) for pod in self.selected(ref.namespace, selector)]
            return list({owner.ref: owner for owner in owners if owner}.values())
        hosts = [policy.spec.get("host"), *(policy.spec.get("hosts") or ())]
        names = {str(host).partition(".")[0] for host in hosts if host}
        return [
            w for w in self.of_kind(*CONTROLLERS) if w.ref.namespace == ref.namespace and w.ref.name in names
        ]

    # --- services --------------------------------------------------------------------------------------------

    def backends(self, service: ClusterObject) -> list[ClusterObject]:
        """The pods that the selector of a Service matches; empty for one without selector."""
        selector = get_part(service.spec, "selector")
        return self.selected(service.ref.namespace, selector) if selector else []

    def endpoints(self, service: ClusterObject) -> list[Address] | None:
        """The addresses behind a Service from its slices or Endpoints; None where neither was recorded."""
        slices = self._slices.get((service.ref.namespace, service.ref.name))
        if slices:
            return [
                a for found in slices for row in _rows_anywhere(found, "endpoints") for a in _of_slice(row)
            ]
        older = self.get("Endpoints", service.ref.namespace, service.ref.name)
        if older is None:
            return None
        return [address for row in _rows_anywhere(older, "subsets") for address in _of_subset(row)]

    def services_for(self, pod: ClusterObject) -> list[ClusterObject]:
        return [
            service
            for service in self.of_kind("Service")
            if service.ref.namespace == pod.ref.namespace
            and (selector := get_part(service.spec, "selector"))
            and matches_selector(selector, pod.labels)
        ]

    def names_of_ips(self) -> dict[str, str]:
        """Cluster IPs to Service names, and pod IPs to the names of their workloads."""
        names: dict[str, str] = {}
        for pod in self.of_kind("Pod"):
            if ip := pod.status.get("podIP"):
                workload = self.workload_of(pod)
                names[str(ip)] = workload.ref.name if workload else pod.ref.name
        for service in self.of_kind("Service"):
            for ip in (service.spec.get("clusterIP"), *(service.spec.get("clusterIPs") or ())):
                if ip and ip != "None":
                    names[str(ip)] = service.ref.name
        return names

    def pods_on(self, node: str) -> list[ClusterObject]:
        return [pod for pod in self.of_kind("Pod") if pod.spec.get("nodeName") == node]


def _derive_maker(pod: ClusterObject) -> ClusterObject | None:
    """The workload that a pod's owner reference names: a replica set's name is its deployment's and a hash."""
    row = next((row for row in pod.owners if row.get("kind") in _MAKERS), None)
    if row is None:
        return None
    kind, name = str(row["kind"]), str(row.get("name", ""))
    if kind == "ReplicaSet":
        name, _, digest = name.rpartition("-")
        if not name or digest not in {"", *map(str, pod.labels.values())}:
            return None
        kind = "Rollout" if "rollouts-pod-template-hash" in pod.labels else "Deployment"
    return ClusterObject(ref=ObjectRef(kind, pod.ref.namespace, name), read_at=pod.read_at)


def _is_structured(selector: Document) -> bool:
    """Whether a selector is of the later form, with matchLabels or matchExpressions."""
    return "matchLabels" in selector or "matchExpressions" in selector


def matches_selector(selector: Document, labels: Document) -> bool:
    """Whether labels fit a selector; an empty selector fits everything."""
    if not _is_structured(selector):
        return all(labels.get(key) == value for key, value in selector.items())
    wanted = get_part(selector, "matchLabels")
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _fits_expression(row, labels) for row in rows_of(selector, "matchExpressions")
    )


def _fits_expression(row: Document, labels: Document) -> bool:
    value, values = labels.get(str(row.get("key"))), row.get("values") or ()
    operator = row.get("operator")
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return value in values if operator == "In" else value not in values


def template_of(workload: ClusterObject) -> Document:
    """The spec of the pods that a workload makes; a pod's own; empty where it was not recorded."""
    if workload.ref.kind == "Pod":
        return workload.spec
    if workload.ref.kind == "CronJob":
        return get_part(workload.spec, "jobTemplate", "spec", "template", "spec")
    return get_part(workload.spec, "template", "spec")


def labels_of_template(workload: ClusterObject) -> Document:
    """The labels of the pods that a workload makes: by its template, else by its selector."""
    return get_part(workload.spec, "template", "metadata", "labels") or get_part(
        workload.spec, "selector", "matchLabels"
    )


def containers_of(template: Document) -> list[Document]:
    """Init containers first, then the others."""
    return [*rows_of(template, "initContainers"), *rows_of(template, "containers")]


def container_states(pod: ClusterObject) -> Iterator[tuple[str, Document]]:
    """Name and status of each container of a pod, init containers first."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for row in rows_of(pod.status, name):
            yield str(row.get("name", "")), row


def config_uses(workload: ClusterObject, template: Document) -> Iterator[ConfigUse]:
    """Every ConfigMap and Secret that a template reads: volumes, variables, pull secrets."""
    for container in containers_of(template):
        for source in rows_of(container, "envFrom"):
            yield from _find_config_uses(workload, source, "configMapRef", "secretRef")
        for variable in rows_of(container, "env"):
            yield from _find_config_uses(
                workload, get_part(variable, "valueFrom"), "configMapKeyRef", "secretKeyRef"
            )
    for volume in rows_of(template, "volumes"):
        for source in (volume, *rows_of(get_part(volume, "projected"), "sources")):
            yield from _find_config_uses(workload, source, "configMap", "secret")


def _find_config_uses(
    workload: ClusterObject, source: Document, config: str, secret: str
) -> Iterator[ConfigUse]:
    for kind, name in (("ConfigMap", config), ("Secret", secret)):
        found = get_part(source, name)
        called = found.get("name") or found.get("secretName")
        if called:
            keys = [str(item["key"]) for item in rows_of(found, "items") if item.get("key")]
            if found.get("key"):
                keys.append(str(found["key"]))
            ref = ObjectRef(kind, workload.ref.namespace, str(called))
            wanted: Sequence[str | None] = keys or (None,)
            for key in wanted:
                yield ConfigUse(ref, key, bool(found.get("optional")))


def _rows_anywhere(found: ClusterObject, name: str) -> Sequence[Document]:
    """Rows that the API keeps at the top of an object and recorders also below spec or status."""
    return rows_of(found.body, name) or rows_of(found.spec, name) or rows_of(found.status, name)


def _of_slice(row: Document) -> Iterator[Address]:
    ready = get_part(row, "conditions").get("ready")
    for ip in row.get("addresses") or ():
        yield Address(str(ip), get_part(row, "targetRef").get("name"), ready is not False)


def _of_subset(row: Document) -> Iterator[Address]:
    for name, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in rows_of(row, name):
            yield Address(str(address.get("ip", "")), get_part(address, "targetRef").get("name"), ready)


def service_ports(service: ClusterObject) -> list[Document]:
    return list(rows_of(service.spec, "ports"))


def desired_replicas(workload: ClusterObject) -> int | None:
    """How many pods a workload is asked to have; 1 where its spec was recorded and does not say."""
    asked = number_of(workload.spec.get("replicas"))
    if asked is not None:
        return asked
    if workload.ref.kind == "DaemonSet":
        return number_of(workload.status.get("desiredNumberScheduled"))
    return 1 if template_of(workload) else None


def ready_replicas(workload: ClusterObject) -> int | None:
    """How many of its pods are ready; the API leaves out a count that is zero. None where no status was recorded."""
    names = ("numberReady",) if workload.ref.kind == "DaemonSet" else ("readyReplicas",)
    for name in names:
        if (count := number_of(workload.status.get(name))) is not None:
            return count
    unavailable = number_of(workload.status.get("unavailableReplicas"))
    total = number_of(workload.status.get("replicas"))
    if unavailable is not None and total is not None:
        return max(total - unavailable, 0)
    available = number_of(workload.status.get("availableReplicas"))
    return available if available is not None else 0 if workload.status else None


def is_ready(pod: ClusterObject) -> bool:
    """Whether a pod runs, is ready and is not being deleted."""
    states = list(rows_of(pod.status, "containerStatuses"))
    ready = pod.condition("Ready").get("status")
    if pod.deleted is not None or pod.status.get("phase") in {"Failed", "Succeeded"}:
        return False
    return ready == "True" and all(row.get("ready") is not False for row in states)


def quoted_labels(labels: Mapping[str, Any]) -> str:
    """Labels as kubectl writes them: `app=cart,tier=web`."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
