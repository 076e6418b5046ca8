"""From the documents of a Kubernetes API to the records that detectors read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from typing import Any, NamedTuple

import yaml

from opsleuth.analysis.records import LogLine, ObjectState, PlatformEvent, ServiceChange
from opsleuth.state.clock import convert_to_utc
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.kube_documents import LAST_APPLIED
from opsleuth.tools.sources.logformat import LogLineReader
from opsleuth.tools.truncation import cut_text

Document = Mapping[str, Any]

WIDEST_DIFF = 20_000
# A template is written, and its replica set made, within moments of each other.
_SAME_SECONDS = 120.0
# What was rolled out longer ago is named without its difference: a large cluster keeps thousands of revisions.
DIFF_SECONDS = 2 * 86_400.0
# A configuration file is read as far as it says what matters; a longer one is cut.
WIDEST_VALUE = 20_000
_USUAL_PARTS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_TOLD_METADATA = (
    "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences",
)  # fmt: skip
_REVISION = "deployment.kubernetes.io/revision"
_HISTORY = "deployment.kubernetes.io/revision-history"
_CAUSE = "kubernetes.io/change-cause"


@dataclass(frozen=True, slots=True)
class ServiceNaming:
    """What a workload's service is called: the first of these labels that it has, else its own name."""

    labels: Sequence[str] = ()

    def of(self, document: Document) -> str:
        meta = _mapping_at(document, "metadata")
        own = _mapping_at(meta, "labels")
        return next((str(own[label]) for label in self.labels if own.get(label)), str(meta.get("name", "")))


def object_state_from_document(kind: str, document: Document, captured: float) -> ObjectState:
    meta = _mapping_at(document, "metadata")
    return ObjectState(
        time=captured,
        kind=kind,
        name=str(meta.get("name", "")),
        status=_mapping_at(document, "status"),
        namespace=meta.get("namespace"),
        spec=_mapping_at(document, "spec") or None,
        labels=_mapping_at(meta, "labels") or None,
        extra=_collect_further_parts(document, meta) or None,
    )


def _collect_further_parts(document: Document, meta: Document) -> dict[str, Any]:
    """What an object holds beside its spec and status (endpoints, data, rules), and the metadata that tells its story."""
    found = {name: value for name, value in document.items() if name not in _USUAL_PARTS}
    if isinstance(found.get("data"), Mapping):
        found["data"] = {key: cut_text(str(value), WIDEST_VALUE) for key, value in found["data"].items()}
    found.pop("binaryData", None)
    if meta.get("creationTimestamp"):
        found["creationTimestamp"] = meta["creationTimestamp"]
    kept: dict[str, Any] = {name: meta[name] for name in _TOLD_METADATA if meta.get(name)}
    if notes := {
        k: v for k, v in _mapping_at(meta, "annotations").items() if k != LAST_APPLIED and len(str(v)) <= 500
    }:
        kept["annotations"] = notes
    if writes := [
        _select_write_fields(row) for row in meta.get("managedFields") or () if isinstance(row, Mapping)
    ]:
        kept["managedFields"] = writes
    return found | ({"metadata": kept} if kept else {})


def _select_write_fields(row: Document) -> dict[str, Any]:
    """Who wrote, when, and which part; not which fields: their names may tell what a value is about."""
    return {name: row[name] for name in ("manager", "operation", "time", "subresource") if row.get(name)}


def event_from_document(document: Document) -> PlatformEvent | None:
    """An event of core v1 or events.k8s.io; None for one that tells no time."""
    about = _mapping_at(document, "involvedObject") or _mapping_at(document, "regarding")
    series = _mapping_at(document, "series")
    last = (
        epoch_from_rfc3339(series.get("lastObservedTime"))
        or epoch_from_rfc3339(document.get("lastTimestamp"))
        or epoch_from_rfc3339(document.get("eventTime"))
        or epoch_from_rfc3339(_mapping_at(document, "metadata").get("creationTimestamp"))
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
        first_time=epoch_from_rfc3339(document.get("firstTimestamp"))
        or epoch_from_rfc3339(document.get("eventTime")),
        extra={"namespace": about["namespace"]} if about.get("namespace") else None,
    )


def rollout_changes(
    deployments: Sequence[Document],
    replica_sets: Sequence[Document],
    naming: ServiceNaming,
    since: float = 0.0,
) -> Iterator[ServiceChange]:
    """What each deployment rolled out, by its replica sets: they are its history. Those since `since` have a difference."""
    owned: dict[str, list[Document]] = {}
    for document in replica_sets:
        for owner in _mapping_at(document, "metadata").get("ownerReferences") or ():
            if owner.get("kind") == "Deployment":
                owned.setdefault(str(owner.get("uid") or owner.get("name")), []).append(document)
    for deployment in deployments:
        meta = _mapping_at(deployment, "metadata")
        history = owned.get(str(meta.get("uid"))) or owned.get(str(meta.get("name"))) or []
        yield from _deployment_changes(deployment, sorted(history, key=_revision_number), naming, since)


class _RolloutStep(NamedTuple):
    """A replica set came into use: as which revision, when, and whether it was used before."""

    revision: int
    time: float | None
    kind: str
    document: Document


def _deployment_changes(
    deployment: Document, history: Sequence[Document], naming: ServiceNaming, since: float
) -> Iterator[ServiceChange]:
    before: Document | None = None
    for step in sorted(_rollout_steps(deployment, history), key=lambda step: step.revision):
        if step.time is not None:
            change = _rollout_change(deployment, step, step.time, before, naming)
            diff = _template_diff(before, step.document) if before and step.time >= since else None
            yield replace(change, diff=diff, author=_template_author(deployment, step.time))
        before = step.document


def _rollout_steps(deployment: Document, history: Sequence[Document]) -> Iterator[_RolloutStep]:
    """A reused one keeps its creation time and gets the next revision; only the last reuse has a known time."""
    for document in history:
        former = [
            int(number)
            for number in _annotation_value(document, _HISTORY).split(",")
            if number.strip().isdigit()
        ]
        first = former[0] if former else _revision_number(document)
        yield _RolloutStep(first, _creation_time(document), "deploy", document)
        if former and document is history[-1]:
            after = max((time for d in history if (time := _creation_time(d)) is not None), default=0.0)
            yield _RolloutStep(
                _revision_number(document), _template_change_time(deployment, after), "rollback", document
            )


def _rollout_change(
    deployment: Document, step: _RolloutStep, time: float, before: Document | None, naming: ServiceNaming
) -> ServiceChange:
    document = step.document
    new, old = _container_images(document), _container_images(before) if before else ()
    name = _mapping_at(deployment, "metadata").get("name", "")
    images = ", ".join(image for image in new if image not in old) or "the same images"
    summary = f"{step.kind} of {name}, revision {step.revision}: {images}"
    versions = [tag for image in new if (tag := _image_tag(image))]
    cause = _annotation_value(document, _CAUSE)
    return ServiceChange(
        time=time,
        service=naming.of(deployment),
        kind=step.kind,
        summary=f"{summary} ({cause})" if cause else summary,
        version=versions[0] if versions else None,
        extra={"revision": step.revision, "replica_set": _mapping_at(document, "metadata").get("name")},
    )


def controller_revision_changes(
    revisions: Sequence[Document], naming: ServiceNaming
) -> Iterator[ServiceChange]:
    """What stateful sets and daemon sets rolled out."""
    before: dict[str, Document] = {}
    for document in sorted(revisions, key=lambda d: d.get("revision") or 0):
        owner: Document = next(iter(_mapping_at(document, "metadata").get("ownerReferences") or ()), {})
        time, name = _creation_time(document), str(owner.get("name", ""))
        body = {"spec": _mapping_at(_mapping_at(document, "data"), "spec")}
        if time is None or not name:
            continue
        new = _container_images(body)
        yield ServiceChange(
            time=time,
            service=naming.of({"metadata": {**_mapping_at(document, "metadata"), "name": name}}),
            kind="deploy",
            summary=f"deploy of {name}, revision {document.get('revision')}: {', '.join(new) or 'no images'}",
            version=next((tag for image in new if (tag := _image_tag(image))), None),
            diff=_template_diff(before[name], body) if name in before else None,
            extra={"revision": document.get("revision")},
        )
        before[name] = body


def rank_pod_by_trouble(pod: Document) -> tuple[bool, int]:
    """Where a pod stands among those whose logs are read: first those that are not ready, then by restarts."""
    states = [s for s in _mapping_at(pod, "status").get("containerStatuses") or () if isinstance(s, Mapping)]
    restarts = sum(int(s.get("restartCount") or 0) for s in states)
    return all(s.get("ready") for s in states), -restarts


def parse_log_lines(text: str, service: str, pod: Document, *, previous: bool) -> Iterator[LogLine]:
    """Lines as the kubelet gives them: its own time, then what the container wrote."""
    meta = _mapping_at(pod, "metadata")
    node = _mapping_at(pod, "spec").get("nodeName")
    for line in text.splitlines():
        stamp, _, message = line.partition(" ")
        written = _READER.read(message, 0.0) if message else None
        yield LogLine(
            time=epoch_from_rfc3339(stamp),
            service=service,
            message=written.message if written else line,
            level=written.level if written else None,
            pod=meta.get("name"),
            namespace=meta.get("namespace"),
            host=node,
            trace_id=written.trace_id if written else None,
            previous=previous,
        )


_READER = LogLineReader()


def epoch_from_rfc3339(text: JSON) -> float | None:
    """Seconds since the epoch of an RFC 3339 time, or None."""
    if not isinstance(text, str) or "T" not in text:
        return None
    try:
        return convert_to_utc(datetime.fromisoformat(text)).timestamp()
    except ValueError:
        return None


def _mapping_at(document: Document | None, name: str) -> Document:
    value = (document or {}).get(name)
    return value if isinstance(value, Mapping) else {}


def _annotation_value(document: Document, name: str) -> str:
    return str(_mapping_at(_mapping_at(document, "metadata"), "annotations").get(name) or "")


def _revision_number(document: Document) -> int:
    text = _annotation_value(document, _REVISION)
    return int(text) if text.isdigit() else 0


def _creation_time(document: Document) -> float | None:
    return epoch_from_rfc3339(_mapping_at(document, "metadata").get("creationTimestamp"))


def _template_writes(deployment: Document) -> Sequence[Document]:
    """What managedFields hold of those who own the template."""
    fields = _mapping_at(deployment, "metadata").get("managedFields") or ()
    return [f for f in fields if "f:template" in _mapping_at(_mapping_at(f, "fieldsV1"), "f:spec")]


def _template_author(deployment: Document, time: float) -> str | None:
    """Whose write of the template set off the rollout that began at `time`; None where nothing says so."""
    for row in _template_writes(deployment):
        written = epoch_from_rfc3339(row.get("time"))
        if written is not None and abs(written - time) <= _SAME_SECONDS and row.get("manager"):
            return str(row["manager"])
    return None


def _template_change_time(deployment: Document, after: float) -> float | None:
    """When its template was last changed: before its last progress, and when one of the template's owners wrote.

    Some servers leave the time of an owner as it was at his first word: `after` is a moment before which it was not.
    """
    rows = [
        c for c in _mapping_at(deployment, "status").get("conditions") or () if c.get("type") == "Progressing"
    ]
    told = [epoch_from_rfc3339(row.get("lastUpdateTime")) for row in rows] + [
        epoch_from_rfc3339(f.get("time")) for f in _template_writes(deployment)
    ]
    return min((time for time in told if time is not None and time >= after), default=None)


def _pod_spec(document: Document | None) -> Document:
    return _mapping_at(_mapping_at(_mapping_at(document, "spec"), "template"), "spec")


def _container_images(document: Document | None) -> Sequence[str]:
    containers = _pod_spec(document).get("containers") or ()
    return [str(c["image"]) for c in containers if isinstance(c, Mapping) and c.get("image")]


def _image_tag(image: str) -> str:
    name, _, _ = image.partition("@")
    return name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else ""


def _template_diff(before: Document, after: Document) -> str | None:
    """What changed of the pods' template."""
    return cut_text("\n".join(_template_diff_lines(before, after, context=2)), WIDEST_DIFF) or None


def changed_template_lines(before: Document, after: Document) -> Sequence[str]:
    """The lines of the pods' template that come and go, such as `+CACHE_MB=256`."""
    lines = [line for line in _template_diff_lines(before, after, context=0) if not line.startswith("@@")]
    return [line[0] + line[1:].strip(" -") for line in lines]


def _template_diff_lines(before: Document, after: Document, context: int) -> Sequence[str]:
    earlier, later = _pod_spec(before), _pod_spec(after)
    if earlier == later:
        return []
    old, new = (
        yaml.dump(_inline_variables(spec), Dumper=_TemplateDumper, width=1_000).splitlines()
        for spec in (earlier, later)
    )
    return list(unified_diff(old, new, lineterm="", n=context))[2:]


class _TemplateDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # chosen at run time
    """Writes what a template holds twice twice: aliases would differ where nothing does."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _inline_variables(template: Document) -> Document:
    """The template with variables as NAME=value on one line: so whoever redacts sees by the name what is a secret."""
    containers = [
        {**c, "env": [_variable_text(v) for v in c.get("env") or ()]}
        for c in template.get("containers") or ()
    ]
    return {**template, "containers": containers}


def _variable_text(entry: Document) -> str:
    value = entry.get("value") if "value" in entry else f"from {entry.get('valueFrom')}"
    return f"{entry.get('name')}={value}"
