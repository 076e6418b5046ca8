"""From the documents of a Kubernetes API to the records that detectors read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import unified_diff
from typing import Any, NamedTuple

import yaml

from opsleuth.analysis.records import Change, LogLine, ObjectState, PlatformEvent
from opsleuth.state.clock import in_utc
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.sources.logformat import LineReader

Document = Mapping[str, Any]

WIDEST_DIFF = 20_000
_REVISION = "deployment.kubernetes.io/revision"
_HISTORY = "deployment.kubernetes.io/revision-history"
_CAUSE = "kubernetes.io/change-cause"


@dataclass(frozen=True, slots=True)
class Naming:
    """What a workload's service is called: the first of these labels that it has, else its own name."""

    labels: Sequence[str] = ()

    def of(self, document: Document) -> str:
        meta = _part(document, "metadata")
        own = _part(meta, "labels")
        return next((str(own[label]) for label in self.labels if own.get(label)), str(meta.get("name", "")))


def object_state(kind: str, document: Document, captured: float) -> ObjectState:
    meta = _part(document, "metadata")
    created = {"creationTimestamp": meta["creationTimestamp"]} if meta.get("creationTimestamp") else {}
    return ObjectState(
        time=captured,
        kind=kind,
        name=str(meta.get("name", "")),
        status=_part(document, "status"),
        namespace=meta.get("namespace"),
        spec=_part(document, "spec") or None,
        labels=_part(meta, "labels") or None,
        extra=created or None,
    )


def platform_event(document: Document) -> PlatformEvent | None:
    """An event of core v1 or events.k8s.io; None for one that tells no time."""
    about = _part(document, "involvedObject") or _part(document, "regarding")
    series = _part(document, "series")
    last = (
        moment(series.get("lastObservedTime"))
        or moment(document.get("lastTimestamp"))
        or moment(document.get("eventTime"))
        or moment(_part(document, "metadata").get("creationTimestamp"))
    )
    if last is None:
        return None
    return PlatformEvent(
        time=last,
        source="kubernetes",
        object=f"{about.get('kind', 'Object')}/{about.get('name', '')}",
        type=str(document.get("type") or "Normal"),
        reason=str(document.get("reason") or ""),
        message=str(document.get("message") or document.get("note") or ""),
        count=series.get("count") or document.get("count"),
        first_time=moment(document.get("firstTimestamp")) or moment(document.get("eventTime")),
        extra={"namespace": about["namespace"]} if about.get("namespace") else None,
    )


def rollouts(
    deployments: Sequence[Document], replica_sets: Sequence[Document], naming: Naming
) -> Iterator[Change]:
    """What each deployment rolled out, by its replica sets: they are its history."""
    owned: dict[str, list[Document]] = {}
    for document in replica_sets:
        for owner in _part(document, "metadata").get("ownerReferences") or ():
            if owner.get("kind") == "Deployment":
                owned.setdefault(str(owner.get("uid") or owner.get("name")), []).append(document)
    for deployment in deployments:
        meta = _part(deployment, "metadata")
        history = owned.get(str(meta.get("uid"))) or owned.get(str(meta.get("name"))) or []
        yield from _of_deployment(deployment, sorted(history, key=_revision), naming)


class _Step(NamedTuple):
    """A replica set came into use: as which revision, when, and whether it was used before."""

    revision: int
    time: float | None
    kind: str
    document: Document


def _of_deployment(deployment: Document, history: Sequence[Document], naming: Naming) -> Iterator[Change]:
    before: Document | None = None
    for step in sorted(_steps(deployment, history), key=lambda step: step.revision):
        if step.time is not None:
            yield _rollout(deployment, step, step.time, before, naming)
        before = step.document


def _steps(deployment: Document, history: Sequence[Document]) -> Iterator[_Step]:
    """One that is used again keeps the time of its making and is given the next revision; when that was is known of the last one alone."""
    for document in history:
        former = [int(number) for number in _note(document, _HISTORY).split(",") if number.strip().isdigit()]
        first = former[0] if former else _revision(document)
        yield _Step(first, _created(document), "deploy", document)
        if former and document is history[-1]:
            after = max((time for d in history if (time := _created(d)) is not None), default=0.0)
            yield _Step(_revision(document), _moved(deployment, after), "rollback", document)


def _rollout(
    deployment: Document, step: _Step, time: float, before: Document | None, naming: Naming
) -> Change:
    document = step.document
    new, old = _images(document), _images(before) if before else ()
    name = _part(deployment, "metadata").get("name", "")
    images = ", ".join(image for image in new if image not in old) or "the same images"
    summary = f"{step.kind} of {name}, revision {step.revision}: {images}"
    versions = [tag for image in new if (tag := _tag(image))]
    cause = _note(document, _CAUSE)
    return Change(
        time=time,
        service=naming.of(deployment),
        kind=step.kind,
        summary=f"{summary} ({cause})" if cause else summary,
        version=versions[0] if versions else None,
        diff=_diff(before, document) if before else None,
        extra={"revision": step.revision, "replica_set": _part(document, "metadata").get("name")},
    )


def controller_revisions(revisions: Sequence[Document], naming: Naming) -> Iterator[Change]:
    """What stateful sets and daemon sets rolled out."""
    before: dict[str, Document] = {}
    for document in sorted(revisions, key=lambda d: d.get("revision") or 0):
        owner: Document = next(iter(_part(document, "metadata").get("ownerReferences") or ()), {})
        time, name = _created(document), str(owner.get("name", ""))
        body = {"spec": _part(_part(document, "data"), "spec")}
        if time is None or not name:
            continue
        new = _images(body)
        yield Change(
            time=time,
            service=naming.of({"metadata": {**_part(document, "metadata"), "name": name}}),
            kind="deploy",
            summary=f"deploy of {name}, revision {document.get('revision')}: {', '.join(new) or 'no images'}",
            version=next((tag for image in new if (tag := _tag(image))), None),
            diff=_diff(before[name], body) if name in before else None,
            extra={"revision": document.get("revision")},
        )
        before[name] = body


def log_lines(text: str, service: str, pod: Document, *, previous: bool) -> Iterator[LogLine]:
    """Lines as the kubelet gives them: its own time, then what the container wrote."""
    meta = _part(pod, "metadata")
    node = _part(pod, "spec").get("nodeName")
    for line in text.splitlines():
        stamp, _, message = line.partition(" ")
        written = _READER.read(message, 0.0) if message else None
        yield LogLine(
            time=moment(stamp),
            service=service,
            message=written.message if written else line,
            level=written.level if written else None,
            pod=meta.get("name"),
            namespace=meta.get("namespace"),
            host=node,
            trace_id=written.trace_id if written else None,
            previous=previous,
        )


_READER = LineReader()


def moment(text: Any) -> float | None:  # noqa: ANN401 - any JSON value
    """Seconds since the epoch of an RFC 3339 time, or None."""
    if not isinstance(text, str) or "T" not in text:
        return None
    try:
        return in_utc(datetime.fromisoformat(text)).timestamp()
    except ValueError:
        return None


def _part(document: Document | None, name: str) -> Document:
    value = (document or {}).get(name)
    return value if isinstance(value, Mapping) else {}


def _note(document: Document, name: str) -> str:
    return str(_part(_part(document, "metadata"), "annotations").get(name) or "")


def _revision(document: Document) -> int:
    text = _note(document, _REVISION)
    return int(text) if text.isdigit() else 0


def _created(document: Document) -> float | None:
    return moment(_part(document, "metadata").get("creationTimestamp"))


def _moved(deployment: Document, after: float) -> float | None:
    """When its template was last changed: before its last progress, and when one of the template's owners wrote.

    Some servers leave the time of an owner as it was at his first word: `after` is a moment before which it was not.
    """
    rows = [c for c in _part(deployment, "status").get("conditions") or () if c.get("type") == "Progressing"]
    fields = _part(deployment, "metadata").get("managedFields") or ()
    owners = [f for f in fields if "f:template" in _part(_part(f, "fieldsV1"), "f:spec")]
    told = [moment(row.get("lastUpdateTime")) for row in rows] + [moment(f.get("time")) for f in owners]
    return min((time for time in told if time is not None and time >= after), default=None)


def _template(document: Document | None) -> Document:
    return _part(_part(_part(document, "spec"), "template"), "spec")


def _images(document: Document | None) -> Sequence[str]:
    containers = _template(document).get("containers") or ()
    return [str(c["image"]) for c in containers if isinstance(c, Mapping) and c.get("image")]


def _tag(image: str) -> str:
    name, _, _ = image.partition("@")
    return name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else ""


def _diff(before: Document, after: Document) -> str | None:
    """What changed of the pods' template."""
    return cut_text("\n".join(_compared(before, after, context=2)), WIDEST_DIFF) or None


def changed_lines(before: Document, after: Document) -> Sequence[str]:
    """The lines of the pods' template that come and go, such as `+CACHE_MB=256`."""
    lines = [line for line in _compared(before, after, context=0) if not line.startswith("@@")]
    return [line[0] + line[1:].strip(" -") for line in lines]


def _compared(before: Document, after: Document, context: int) -> Sequence[str]:
    old, new = (yaml.safe_dump(_plainly(_template(d)), width=1_000).splitlines() for d in (before, after))
    return list(unified_diff(old, new, lineterm="", n=context))[2:]


def _plainly(template: Document) -> Document:
    """The template with variables as NAME=value on one line: so whoever redacts sees by the name what is a secret."""
    containers = [
        {**c, "env": [_variable(v) for v in c.get("env") or ()]} for c in template.get("containers") or ()
    ]
    return {**template, "containers": containers}


def _variable(entry: Document) -> str:
    value = entry.get("value") if "value" in entry else f"from {entry.get('valueFrom')}"
    return f"{entry.get('name')}={value}"
