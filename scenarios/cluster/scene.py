"""One cluster incident in the making: the objects, what disturbs the requests, and the rows that both leave."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.state import ClusterState, EntityRef, Manifest, record_edit, ref_of
from opsleuth.scenarios.invented_names import choose_person, draw_letters
from opsleuth.scenarios.scene import Scene

EVENT_LIFETIME = 3600.0  # seconds after which the API server forgets an event
Text = Callable[[Random], str]
# Objects that no single service owns; who changes one does not say whom it will hit.
_PLATFORM_KINDS = frozenset({"LimitRange", "Namespace", "Node", "PersistentVolume", "ResourceQuota"})


@dataclass(frozen=True, slots=True)
class Target:
    """The workload that an oddity is put on. `live`: requests pass through it; `since`: when the oddity began."""

    name: str
    namespace: str
    since: float
    live: bool


@dataclass(frozen=True, slots=True)
class ServiceLogLines:
    """Log lines of one service from `since` on; `pod` None means any of its pods."""

    service: str
    namespace: str
    level: str
    text: Text
    per_minute: float
    since: float
    pod: str | None = None


@dataclass(slots=True)
class ClusterScene:
    """`base` holds the services, the times and what disturbs the requests.

    `gone` maps a service to the time from which nothing of it runs, `renamed` a pod to its successor.
    `spare` are a node and a namespace that no request touches.
    """

    base: Scene
    state: ClusterState
    label: str
    namespace: str
    ports: dict[str, int]
    nodes: list[str]
    spare_node: str
    spare_namespace: str
    mesh: bool
    events: list[Manifest] = field(default_factory=list)
    changes: list[Manifest] = field(default_factory=list)
    lines: list[ServiceLogLines] = field(default_factory=list)
    gone: dict[str, float] = field(default_factory=dict)
    renamed: dict[str, tuple[float, str]] = field(default_factory=dict)
    addresses: int = 10
    culprit: str | None = None
    keeps_changes: bool = True
    idle: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def random(self) -> Random:
        return self.base.random

    def next_address(self) -> str:
        """A pod address that nothing else has."""
        self.addresses += 1
        return f"10.244.{self.addresses // 200}.{self.addresses % 200 + 10}"

    def service_address(self) -> str:
        """A cluster address that nothing else has."""
        self.addresses += 1
        return f"10.96.{self.addresses // 200 + 40}.{self.addresses % 200 + 11}"

    # Objects of a target.

    def workload(self, target: Target) -> Manifest:
        """The Deployment or StatefulSet of a target."""
        for kind in ("Deployment", "StatefulSet"):
            found = self.state.find(EntityRef(kind, target.namespace, target.name))
            if found:
                return found
        raise KeyError(f"no workload {target.namespace}/{target.name} in this cluster")

    def pod_spec(self, target: Target) -> Manifest:
        spec: Manifest = self.workload(target)["spec"]["template"]["spec"]
        return spec

    def container(self, target: Target) -> Manifest:
        container: Manifest = self.pod_spec(target)["containers"][0]
        return container

    def service(self, target: Target) -> Manifest:
        return self.state.get("Service", target.name, target.namespace)

    def pods(self, target: Target) -> list[Manifest]:
        """The pods of a target's current revision, and whatever of the old ones is left."""
        workload = self.workload(target)
        sets = self.state.owned_by(workload, "ReplicaSet")
        return [p for owner in (workload, *sets) for p in self.state.owned_by(owner, "Pod")]

    def ref(self, kind: str, target: Target, name: str | None = None) -> EntityRef:
        """An entity in the target's namespace, by default of the target's own name."""
        return EntityRef(kind, target.namespace, name or target.name)

    def workload_ref(self, target: Target) -> EntityRef:
        return ref_of(self.workload(target))

    # What people and the platform leave behind.

    def edit(self, manifest: Manifest, target: Target, summary: str, diff: str | None = None) -> Manifest:
        """Someone edits an object when the oddity begins: its own metadata says so, often a change record too."""
        manager = self.random.choice(("kubectl-edit", "kubectl-patch", "helm", "argocd-controller"))
        record_edit(manifest, target.since, manager)
        about = "platform" if manifest["kind"] in _PLATFORM_KINDS else None
        self.record_change(target, summary, diff, about=about)
        return manifest

    def record_change(
        self,
        target: Target,
        summary: str,
        diff: str | None = None,
        *,
        kind: str = "config",
        about: str | None = None,
    ) -> None:
        """A row of the change record; the first one of a live target is the guilty one."""
        if not self.keeps_changes:
            return
        name = f"CHG-{self.random.randrange(10**4, 10**5)}"
        row = {"timestamp": format_utc(target.since), "service": about or target.name, "kind": kind}
        self.changes.append(
            row | {"id": name, "author": choose_person(self.random), "summary": summary, "diff": diff}
        )
        if target.live and self.culprit is None:
            self.culprit = name

    def event(
        self,
        about: EntityRef | Manifest,
        reason: str,
        message: str,
        target: Target,
        *,
        kind: str = "Warning",
        repeats: bool = True,
    ) -> None:
        """A platform event since the oddity began; one that does not repeat is forgotten after its lifetime."""
        timing = self.base.timing
        first = target.since + self.random.uniform(3, 40)
        last = timing.end - self.random.uniform(5, 200) if repeats else first
        if last < timing.end - EVENT_LIFETIME:
            return
        last = max(first, last)
        ref = about if isinstance(about, EntityRef) else ref_of(about)
        count = max(1, round((last - first) / self.random.uniform(60, 160))) if repeats else 1
        row = {"timestamp": format_utc(last), "first_timestamp": format_utc(first), "source": "kubernetes"}
        row |= {"object": f"{ref.kind}/{ref.name}", "namespace": ref.namespace or "default"}
        self.events.append(row | {"type": kind, "reason": reason, "message": message, "count": count})

    def log(
        self, target: Target, level: str, text: Text, per_minute: float = 4.0, *, pod: str | None = None
    ) -> None:
        """Lines of the target itself, whether requests pass through it or not."""
        since = max(target.since, self.base.timing.start)
        self.lines.append(ServiceLogLines(target.name, target.namespace, level, text, per_minute, since, pod))

    def log_of(
        self, service: str, level: str, text: Text, since: float, per_minute: float = 4.0, namespace: str = ""
    ) -> None:
        """Lines of another service or of a component of the platform."""
        start = max(since, self.base.timing.start)
        self.lines.append(
            ServiceLogLines(service, namespace or self.namespace, level, text, per_minute, start)
        )

    def suffix(self, count: int = 5) -> str:
        return draw_letters(self.random, count)

    def choose(self, *options: Any) -> Any:  # noqa: ANN401 - whatever is offered
        return self.random.choice(options)


def label_pods(pods: Iterable[Manifest], labels: dict[str, str]) -> None:
    """Add labels to pods."""
    for pod in pods:
        pod["metadata"]["labels"].update(labels)
