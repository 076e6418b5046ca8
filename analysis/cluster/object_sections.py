"""One object of the platform by section, as people read `kubectl get -o yaml` and `kubectl describe`.

A section is whole or it is left out and named with its size: nothing is cut in the middle.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from opsleuth.analysis.cluster.documents import cluster_objects
from opsleuth.analysis.cluster.objects import ClusterObject, get_part, rows_of
from opsleuth.analysis.records import ObjectState
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON

_POD_LISTS = ("initContainers", "containers", "ephemeralContainers")
_STATUS_LISTS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_POD_TEMPLATES = (("template", "spec"), ("jobTemplate", "spec", "template", "spec"))
_HEADING = re.compile(r"^(?P<title>[A-Za-z][\w() /-]*?):\s*(?P<value>.*)$")


class FittedParts(NamedTuple):
    """The parts that fit whole, and the bytes of each that was left out, by its path."""

    shown: JSON
    left_out: dict[str, int]


def split_into_sections(state: ObjectState) -> dict[str, JSON]:
    """The sections of an object by name, what it is and how it is first; empty ones are left out."""
    if isinstance(state.status, str):
        found = [one for one in cluster_objects([state]) if one.ref.name == state.name.rpartition("/")[2]]
        if found and (found[0].body or found[0].metadata.get("creationTimestamp")):
            return _drop_empty(dict(_list_document_sections(found[0])))
        return _drop_empty(dict(_list_text_sections(state.status)))
    one = next(iter(cluster_objects([state])))
    return _drop_empty(dict(_list_document_sections(one)))


def _drop_empty(sections: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in sections.items() if value not in (None, "", [], {})}


def _list_document_sections(found: ClusterObject) -> Iterator[tuple[str, JSON]]:
    status = {name: value for name, value in found.status.items() if name not in _STATUS_LISTS}
    yield "status", {name: value for name, value in status.items() if name != "conditions"}
    yield "conditions", status.get("conditions")
    pod = _find_pod_spec(found.spec)
    containers = [row for name in _POD_LISTS for row in rows_of(pod, name)]
    states = {str(row.get("name")): row for name in _STATUS_LISTS for row in rows_of(found.status, name)}
    for row in containers:
        name = str(row.get("name", ""))
        wanted = {key: value for key, value in row.items() if key not in ("env", "envFrom", "name")}
        yield f"container/{name}", {**wanted, **({"state": states.pop(name)} if name in states else {})}
        yield f"env/{name}", [*(row.get("env") or ()), *(row.get("envFrom") or ())]
    for name, row in states.items():  # the spec was not recorded
        yield f"container/{name}", {"state": row}
    yield "taints", found.spec.get("taints")
    yield "tolerations", pod.get("tolerations")
    yield "volumes", pod.get("volumes")
    yield "spec", _without_split_parts(found.spec)
    yield from ((str(name), value) for name, value in found.body.items() if name != "status")
    yield "metadata", dict(found.metadata)


def _find_pod_spec(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec of the pods that an object is or makes; empty where it makes none."""
    if any(name in spec for name in _POD_LISTS):
        return spec
    return next((part for path in _POD_TEMPLATES if (part := get_part(spec, *path))), {})


def _without_split_parts(value: JSON) -> JSON:
    """A spec without what appears in sections of its own."""
    own = {*_POD_LISTS, "taints", "tolerations", "volumes"}
    if not isinstance(value, Mapping):
        return value
    kept: dict[str, Any] = {}
    for name, part in value.items():
        if name in own:
            continue
        smaller = _without_split_parts(part) if name in ("template", "spec", "jobTemplate") else part
        if smaller not in ({}, None):
            kept[str(name)] = smaller
    return kept


def _list_text_sections(text: str) -> Iterator[tuple[str, JSON]]:
    """The sections of a printed description: single lines together, each indented block by its heading."""
    summary: dict[str, str] = {}
    blocks: dict[str, list[str]] = {}
    open_block: list[str] | None = None
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            title = heading["title"]
            open_block = blocks.setdefault(title, [])
            if heading["value"].strip():
                summary[title] = heading["value"].strip()
        elif line.strip():
            open_block = blocks.setdefault("text", []) if open_block is None else open_block
            open_block.append(line)
    yield "summary", summary
    for title, lines in blocks.items():
        yield title.lower(), lines


def find_section(sections: Mapping[str, JSON], path: str) -> dict[str, JSON]:
    """The sections that a path asks for, by their full paths: one section, all of a group (`env`), or a part inside one."""
    if path in sections:
        return {path: sections[path]}
    if group := {name: value for name, value in sections.items() if name.startswith(f"{path}/")}:
        return group
    for name in sorted(sections, key=len, reverse=True):
        if path.startswith(f"{name}."):
            found, part = _walk_to_part(sections[name], path.removeprefix(f"{name}."))
            return {path: part} if found else {}
    return {}


def _walk_to_part(value: JSON, path: str) -> tuple[bool, JSON]:
    """The part at a dotted path; names may hold dots themselves, as labels and files do."""
    if not path:
        return True, value
    if isinstance(value, Mapping):
        for name in sorted(map(str, value), key=len, reverse=True):
            if path == name or path.startswith(f"{name}."):
                return _walk_to_part(value[name], path[len(name) + 1 :])
    if isinstance(value, list | tuple):
        head, _, rest = path.partition(".")
        named = [row for row in value if isinstance(row, Mapping) and str(row.get("name")) == head]
        if named:
            return _walk_to_part(named[0], rest)
        if head.isdigit() and int(head) < len(value):
            return _walk_to_part(value[int(head)], rest)
    return False, None


def fit_whole_parts(parts: Mapping[str, JSON], room: int) -> FittedParts:
    """As many parts as fit into `room` bytes, each whole; what does not fit is opened, and named where it still does not."""
    shown: dict[str, JSON] = {}
    left_out: dict[str, int] = {}
    waiting: dict[str, JSON] = {}
    for path, part in parts.items():
        size = measure_part(part)
        if size <= room:
            shown[path] = part
            room -= size
        else:
            waiting[path] = part
    for path, part in waiting.items():
        inner = _fit_inside(path, part, room) if len(parts) == 1 else FittedParts(None, {})
        if inner.shown in (None, {}, []):
            left_out[path] = measure_part(part)
            continue
        shown[path] = inner.shown
        left_out |= inner.left_out
    return FittedParts(shown, left_out)


def _fit_inside(path: str, part: JSON, room: int) -> FittedParts:
    """What of one large part fits: whole entries of an object, whole items of a list, whole lines of a text."""
    if isinstance(part, Mapping):
        fitted: dict[str, JSON] = {}
        missing: dict[str, int] = {}
        for name, value in part.items():
            size = measure_part(value) + len(str(name))
            if size <= room:
                fitted[str(name)] = value
                room -= size
            else:
                missing[f"{path}.{name}"] = size
        return FittedParts(fitted, missing)
    items = part.splitlines() if isinstance(part, str) else part
    if not isinstance(items, list | tuple):
        return FittedParts(None, {})
    head: list[JSON] = []
    for item in items:
        size = measure_part(item)
        if size > room:
            break
        head.append(item)
        room -= size
    rest = sum(map(measure_part, items[len(head) :]))
    unit = "lines" if isinstance(part, str) else "items"
    return FittedParts(head, {f"{path}: {unit} {len(head)} to {len(items) - 1}": rest} if rest else {})


def measure_part(part: JSON) -> int:
    """Bytes of a part as JSON."""
    return len(to_canonical_json(part).encode("utf-8", "replace"))
