"""One way in which the cluster is not as it should be, with the commands that show it and that would undo it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.objects import ObjectRef
from opsleuth.analysis.cluster.observed_calls import find_calls
from opsleuth.analysis.records import AlertFacts, PlatformEvent, Recording, ServiceDependency, TimeRange


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What an analyzer looks at: the cluster, its events, who calls whom, and the incident's own facts."""

    cluster: Cluster
    events: Sequence[PlatformEvent]
    topology: Sequence[ServiceDependency]
    alert: AlertFacts
    window: TimeRange

    @classmethod
    def of(cls, recording: Recording) -> "ClusterView":
        cluster = Cluster.of(recording)
        return cls(
            cluster,
            recording.events or (),
            find_calls(recording, cluster),
            recording.alert,
            recording.window,
        )

    def events_of(self, ref: ObjectRef) -> list[PlatformEvent]:
        """The events about one object."""
        return [
            event
            for event in self.events
            if event.object.rpartition("/")[2] == ref.name
            and event.object.partition("/")[0] in {ref.kind, ""}
            and (event.extra or {}).get("namespace") in {None, ref.namespace}
        ]


@dataclass(frozen=True, slots=True)
class Deviation:
    """What one analyzer found.

    `entity` is the object at fault, `service` whom it breaks (None: the entity's own name), `kind` an incident kind,
    `weight` as in `phrases`, `text` one sentence. `since` is when it began as far as the cluster remembers.
    `latent`: it can stand for months without harm, so that it counts only where something else points the same way.
    `victims` are workloads that suffer from it. `show` and `undo` are commands for a person.
    """

    entity: ObjectRef
    kind: str
    weight: float
    text: str
    service: str | None = None
    since: float | None = None
    latent: bool = False
    victims: tuple[str, ...] = ()
    show: str = ""
    undo: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


Analyzer = Callable[[ClusterView], Iterable[Deviation]]


def entity_figure(ref: ObjectRef) -> dict[str, str | None]:
    """An object as findings and records name it; a name that was not recorded is null."""
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name or None}


def format_kubectl(verb: str, ref: ObjectRef, rest: str = "") -> str:
    """A kubectl command about one object, such as `kubectl -n shop get service cart -o yaml`."""
    where = f"-n {ref.namespace} " if ref.namespace else ""
    return f"kubectl {where}{verb} {ref.kind.lower()} {ref.name}{' ' if rest else ''}{rest}"


def show_yaml(ref: ObjectRef) -> str:
    return format_kubectl("get", ref, "-o yaml")


def format_describe_command(ref: ObjectRef) -> str:
    return format_kubectl("describe", ref)


def format_edit_command(ref: ObjectRef) -> str:
    return format_kubectl("edit", ref)
