"""What `kubectl describe` printed, as rows of a cluster dump: one object for each description, and its events."""

import re
from collections.abc import Iterator

from opsleuth.analysis import kubectl_output
from opsleuth.analysis.records import ObjectState, PlatformEvent

_BEGIN = re.compile(r"^Name:[ \t]{2,}\S", re.MULTILINE)
# The labels that only descriptions of one kind have, the more telling first.
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Node", frozenset(("Allocatable", "System Info"))),
    ("HorizontalPodAutoscaler", frozenset(("Reference", "Max replicas"))),
    ("CronJob", frozenset(("Schedule", "Concurrency Policy"))),
    ("Job", frozenset(("Parallelism", "Completions"))),
    ("Deployment", frozenset(("StrategyType", "Pod Template"))),
    ("StatefulSet", frozenset(("Update Strategy", "Volume Claims"))),
    ("DaemonSet", frozenset(("Desired Number of Nodes Scheduled",))),
    ("ReplicaSet", frozenset(("Pods Status", "Pod Template"))),
    ("PersistentVolume", frozenset(("Reclaim Policy", "Claim"))),
    ("PersistentVolumeClaim", frozenset(("Access Modes", "StorageClass"))),
    ("Ingress", frozenset(("Rules", "Default backend"))),
    ("PodDisruptionBudget", frozenset(("Allowed disruptions",))),
    ("Service", frozenset(("Session Affinity", "Type"))),
    ("Pod", frozenset(("Containers", "Status"))),
)


def is_description(text: str) -> bool:
    """Whether the text is what `kubectl describe` prints, of an object of a kind that is known here."""
    head = text.removeprefix("\ufeff").lstrip()
    return _BEGIN.match(head) is not None and any(_kind_of(part) for part in _split_descriptions(head))


def read_descriptions(text: str, captured: float) -> Iterator[ObjectState | PlatformEvent]:
    """Each described object, and its events with their ages counted back from `captured`."""
    for part in _split_descriptions(text.removeprefix("\ufeff")):
        kind, top = _kind_of(part), _top_fields(part)
        if not kind:
            continue
        namespace = top.get("Namespace") or None
        yield ObjectState(captured, kind, top["Name"], part, namespace)
        for event in kubectl_output.read_events_table(part, f"{kind}/{top['Name']}", captured):
            extra = {"from_age": True} | ({"namespace": namespace} if namespace else {})
            yield PlatformEvent(
                event.time, event.source, event.object, event.type, event.reason, event.message,
                event.count, event.first_time, extra,
            )  # fmt: skip


def _split_descriptions(text: str) -> Iterator[str]:
    starts = [found.start() for found in _BEGIN.finditer(text)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield text[begin:end]


def _kind_of(part: str) -> str:
    labels = _top_fields(part).keys()
    return next((kind for kind, needed in _KINDS if needed <= labels), "")


def _top_fields(part: str) -> dict[str, str]:
    return {label: value for indent, label, value in kubectl_output.read_label_fields(part) if indent == 0}
