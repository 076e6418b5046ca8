"""Shrink API documents as they arrive: a large cluster repeats the same text thousands of times."""

from collections.abc import Callable, Mapping
from typing import Any

Document = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The whole object again, as it was last applied."""
_OWNED = frozenset({"f:spec", "f:data", "f:stringData"})


def drop_bulk(document: Document) -> Document:
    """The document without what is large and is never read: details of managed fields, the last applied object.

    Of the fields that a manager owns, names remain down to the second level, such as `f:spec` and `f:template`.
    """
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    fields = metadata.get("managedFields")
    if isinstance(fields, list):
        metadata["managedFields"] = [_shorten_write(row) for row in fields if isinstance(row, Mapping)]
    notes = metadata.get("annotations")
    if isinstance(notes, dict):
        notes.pop(LAST_APPLIED, None)
    return document


def _shorten_write(row: Mapping[str, Any]) -> Document:
    fields = row.get("fieldsV1")
    if not isinstance(fields, Mapping):
        return dict(row)
    owned = {
        name: dict.fromkeys(part, _NOTHING) if isinstance(part, Mapping) else _NOTHING
        for name, part in fields.items()
        if name in _OWNED
    }
    return {**row, "fieldsV1": owned}


_NOTHING: Mapping[str, Any] = {}


def share_parts_of_twins() -> Callable[[Document], Document]:
    """A function that lets an object share equal parts of its spec with the last one of the same owner.

    The pods of one replica set differ in a few words only, and so do the revisions of a deployment.
    """
    twins: dict[tuple[str, str, str], Any] = {}

    def share_parts(document: Document) -> Document:
        metadata, spec = document.get("metadata"), document.get("spec")
        if not isinstance(metadata, dict) or not isinstance(spec, dict):
            return document
        owners = metadata.get("ownerReferences")
        if not isinstance(owners, list) or not owners or not isinstance(owners[0], Mapping):
            return document
        owner = owners[0]
        key = (str(metadata.get("namespace")), str(owner.get("kind")), str(owner.get("name")))
        document["spec"] = twins[key] = _share_equal_parts(spec, twins.get(key))
        return document

    return share_parts


def _share_equal_parts(value: Any, twin: Any) -> Any:  # noqa: ANN401 - any JSON
    """The value, in which each part that equals the twin's is the twin's own."""
    if value == twin:
        return twin
    if isinstance(value, dict) and isinstance(twin, dict):
        return {name: _share_equal_parts(part, twin.get(name)) for name, part in value.items()}
    if isinstance(value, list) and isinstance(twin, list):
        rest = [*twin[: len(value)], *[None] * (len(value) - len(twin))]
        return [_share_equal_parts(part, other) for part, other in zip(value, rest, strict=True)]
    return value
