"""Kubernetes objects in one shape, from rows of a recording or from what `kubectl get -o json|yaml` printed.

A recorded row is understood whether it holds the object whole (`apiVersion`, `kind`, `metadata`, `spec`, `status`)
or only the parts that its recorder kept. What a row does not hold is empty, never guessed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from opsleuth.analysis.cluster.described import described_objects
from opsleuth.analysis.cluster.objects import ClusterObject, Document, ObjectRef, get_part
from opsleuth.analysis.records import ObjectState

# A printed list of objects is parsed up to this length: larger ones are read from files, one object a row.
LONGEST_TEXT = 4_000_000
_PARTS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def cluster_objects(states: Iterable[ObjectState]) -> Iterator[ClusterObject]:
    """The objects that the recorded states hold; a list that a tool printed gives each of its items."""
    for state in states:
        if isinstance(state.status, str):
            yield from _read_printed_objects(state)
        else:
            yield _read_recorded_object(state)


def _read_recorded_object(state: ObjectState) -> ClusterObject:
    extra = dict(state.extra or {})
    metadata = {**_flat_metadata(extra), **get_part(extra, "metadata")}
    if state.labels and not metadata.get("labels"):
        metadata["labels"] = state.labels
    spec = state.spec if isinstance(state.spec, Mapping) else {}
    # Some recorders keep what belongs to the metadata in the spec.
    if spec.get("finalizers") and state.kind != "Namespace" and not metadata.get("finalizers"):
        metadata["finalizers"] = spec["finalizers"]
    return ClusterObject(
        ref=ObjectRef(
            state.kind, state.namespace or metadata.get("namespace"), state.name.rpartition("/")[2]
        ),
        metadata=metadata,
        spec=spec,
        status=state.status if isinstance(state.status, Mapping) else {},
        body={k: v for k, v in extra.items() if k not in _PARTS},
        read_at=state.time,
    )


def _flat_metadata(extra: Document) -> dict[str, Any]:
    names = (
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
        "ownerReferences",
        "annotations",
        "generation",
    )
    return {name: extra[name] for name in names if name in extra}


def _read_printed_objects(state: ObjectState) -> Iterator[ClusterObject]:
    text = state.status if isinstance(state.status, str) else ""
    if len(text) > LONGEST_TEXT:
        return
    documents = list(parse_documents(text))
    for document in documents:
        yield from whole_objects(document, state.time)
    if not documents:
        yield from described_objects(state, text)


def parse_documents(text: str) -> Iterator[Document]:
    """The JSON or YAML documents of a text; nothing where it is neither."""
    head = text.lstrip()[:200]
    if head.startswith("{"):
        try:
            found: list[Any] = [json.loads(text)]
        except ValueError:
            return
    elif head.startswith(("apiVersion:", "kind:", "---", "items:", "metadata:")):
        found = list(_yaml_documents(text))
    else:
        return
    yield from (document for document in found if isinstance(document, Mapping))


def dump_yaml(plain: object) -> str:
    """JSON as YAML, keys in the order of the alphabet; a text is not folded."""
    import yaml

    text: str = yaml.safe_dump(plain, sort_keys=True, default_flow_style=False, width=10_000)
    return text


def _yaml_documents(text: str) -> Sequence[Any]:
    import yaml

    # Times stay texts, as the API gives them.
    class PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # chosen at run time
        """Reads every scalar that looks like a time as a text."""

    PlainLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in PlainLoader.yaml_implicit_resolvers.items()
    }
    try:
        return list(yaml.load_all(text, Loader=PlainLoader))
    except yaml.YAMLError:
        return []


def whole_objects(document: Document, read_at: float | None) -> Iterator[ClusterObject]:
    """The objects in an API document: itself, or the items of a list."""
    items = document.get("items")
    if isinstance(items, Sequence) and not isinstance(items, str):
        kind = str(document.get("kind") or "").removesuffix("List")
        for item in items:
            if isinstance(item, Mapping):
                yield from whole_objects({"kind": kind, **item}, read_at)
        return
    metadata = get_part(document, "metadata")
    if metadata.get("name") and document.get("kind"):
        yield ClusterObject(
            ref=ObjectRef(str(document["kind"]), metadata.get("namespace"), str(metadata["name"])),
            metadata=metadata,
            spec=get_part(document, "spec"),
            status=get_part(document, "status"),
            body={k: v for k, v in document.items() if k not in _PARTS},
            read_at=read_at,
        )
