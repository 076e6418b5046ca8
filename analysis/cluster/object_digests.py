"""What changed in a cluster since the run before: digests of what people write into its objects, compared with each other.

A cluster shows who wrote an object last, but not that one was deleted, and a server may keep the time of a manager that
writes the same field again. Digests show both. Of kinds that are listed without content (Secrets among them) the
resource version stands in: nothing is derived from a value.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff
from typing import Any

from opsleuth.analysis.cluster.documents import dump_yaml
from opsleuth.analysis.cluster.memory import MACHINERY, WRITTEN
from opsleuth.analysis.cluster.objects import Document, ObjectRef, get_part, parse_moment, rows_of
from opsleuth.analysis.records import ServiceChange
from opsleuth.state.canonical_json import canonical_sha256

_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Rollout"})
# Revisions report templates, autoscalers write replicas.
_TOLD_OTHERWISE = frozenset({"template", "replicas"})
_NOT_WRITTEN = frozenset({"apiVersion", "kind", "metadata", "status"})
_DIGITS = 16
# The content of changed objects: so many characters of one, so many of all.
BODY_CAP, BODIES_CAP = 20_000, 400_000


@dataclass(frozen=True, slots=True)
class SeenObjects:
    """What one run saw of a cluster: digests by `Kind/namespace/name`, and the content of those that had changed.

    `kinds` are those that were listed completely: only of them a missing object is a deleted one.
    """

    run: str
    captured: float
    digests: Mapping[str, str]
    bodies: Mapping[str, str]
    kinds: Collection[str]


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object as it was just listed: its digest, who wrote it last and when, and what people wrote of it."""

    ref: ObjectRef
    digest: str
    written: tuple[float, str] | None
    content: Mapping[str, Any]

    @property
    def key(self) -> str:
        return f"{self.ref.kind}/{self.ref.namespace or ''}/{self.ref.name}"


def digest_object(kind: str, document: Document, *, with_content: bool) -> ListedObject | None:
    """The object as it is remembered; None for a kind that controllers make, and for one that only they write."""
    metadata = get_part(document, "metadata")
    if kind not in WRITTEN or rows_of(metadata, "ownerReferences"):
        return None
    writes = list(_list_content_writes(metadata))
    if writes and all(MACHINERY.match(manager) for _, manager in writes):
        return None
    ref = ObjectRef(kind, metadata.get("namespace"), str(metadata.get("name", "")))
    written = max(writes, default=None)
    if not with_content:
        return ListedObject(ref, f"version {metadata.get('resourceVersion', '')}", written, {})
    content = _select_written_parts(kind, document)
    return ListedObject(ref, canonical_sha256(content)[:_DIGITS], written, content)


def _list_content_writes(metadata: Document) -> Iterator[tuple[float, str]]:
    for row in rows_of(metadata, "managedFields"):
        time = parse_moment(row.get("time"))
        if time is not None and row.get("subresource") in {None, "", "scale"}:
            yield time, str(row.get("manager", ""))


def _select_written_parts(kind: str, document: Document) -> Mapping[str, Any]:
    content = {name: part for name, part in document.items() if name not in _NOT_WRITTEN}
    if kind in _WORKLOADS:
        spec = get_part(document, "spec")
        content["spec"] = {name: part for name, part in spec.items() if name not in _TOLD_OTHERWISE}
    return content


@dataclass(frozen=True, slots=True)
class ListedObjects:
    """Those of one reading. `kinds` were listed completely; `clean` replaces the secrets in a text."""

    captured: float
    objects: Sequence[ListedObject]
    kinds: Collection[str]
    clean: Callable[[str], str] = lambda text: text


def compare_with_earlier_run(earlier: SeenObjects, listed: ListedObjects) -> list[ServiceChange]:
    """Changes and deletions since an earlier run."""
    changed = _select_changed(earlier, listed.objects)
    changes = [_describe_change(found, earlier, listed) for found in changed]
    whole = {*listed.kinds}.intersection(earlier.kinds)
    gone = earlier.digests.keys() - {found.key for found in listed.objects}
    refs = (_parse_key(key) for key in sorted(gone))
    return [*changes, *(_describe_deletion(ref, earlier, listed) for ref in refs if ref.kind in whole)]


def _select_changed(earlier: SeenObjects, listed: Sequence[ListedObject]) -> Iterator[ListedObject]:
    for found in listed:
        before = earlier.digests.get(found.key)
        if before not in {None, found.digest} and not _is_machinery_write(found, earlier.captured):
            yield found


def _is_machinery_write(found: ListedObject, since: float) -> bool:
    """Whether what was written since then is known to be the cluster's own doing."""
    return found.written is not None and found.written[0] >= since and bool(MACHINERY.match(found.written[1]))


def _parse_key(key: str) -> ObjectRef:
    kind, namespace, name = key.split("/", 2)
    return ObjectRef(kind, namespace or None, name)


def _describe_change(found: ListedObject, earlier: SeenObjects, listed: ListedObjects) -> ServiceChange:
    """At the time that the cluster knows; else between the two runs, which `until` says."""
    written = found.written if found.written and found.written[0] >= earlier.captured else None
    when = (
        f"by {written[1]}"
        if written
        else f"after {_format_time(earlier.captured)}, when {earlier.run} read it"
    )
    return ServiceChange(
        time=written[0] if written else earlier.captured,
        service=found.ref.name,
        kind="deploy" if found.ref.kind in _WORKLOADS else "config",
        summary=f"{found.ref} was changed {when}",
        author=written[1] if written else None,
        diff=_format_difference(earlier.bodies.get(found.key), found, listed),
        extra=_object_columns(found.ref) | ({} if written else {"until": listed.captured}),
    )


def _describe_deletion(ref: ObjectRef, earlier: SeenObjects, listed: ListedObjects) -> ServiceChange:
    return ServiceChange(
        time=earlier.captured,
        service=ref.name,
        kind="deploy" if ref.kind in _WORKLOADS else "config",
        summary=f"{ref} was deleted after {_format_time(earlier.captured)}, when {earlier.run} read it",
        extra=_object_columns(ref) | {"until": listed.captured, "deleted": True},
    )


def _object_columns(ref: ObjectRef) -> dict[str, Any]:
    return {"object_kind": ref.kind, "object_namespace": ref.namespace, "object_name": ref.name}


def _format_difference(before: str | None, found: ListedObject, listed: ListedObjects) -> str | None:
    """What changed, where the earlier run kept the content because the object had changed before."""
    if before is None or not found.content:
        return None
    now = listed.clean(_format_content(found))
    name = f"{found.ref.kind}/{found.ref.name}"
    lines = unified_diff(before.splitlines(), now.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines) or None


def _format_content(found: ListedObject) -> str:
    """What people wrote of an object, as YAML, cut at the end."""
    plain = json.loads(json.dumps(found.content, default=str))
    return dump_yaml(plain)[:BODY_CAP]


def _format_time(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def summarize_listed(run: str, listed: ListedObjects, earlier: SeenObjects | None) -> SeenObjects:
    """What the next run is told: all digests, and the content of what changed since the earlier run, within the cap."""
    bodies: dict[str, str] = {}
    room = BODIES_CAP
    for found in _select_changed(earlier, listed.objects) if earlier else ():
        if found.content and room > 0:
            bodies[found.key] = _format_content(found)
            room -= len(bodies[found.key])
    digests = {found.key: found.digest for found in listed.objects}
    return SeenObjects(run, listed.captured, digests, bodies, sorted(listed.kinds))
