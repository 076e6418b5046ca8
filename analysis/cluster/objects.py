"""One object of a cluster, and how to reach into API documents without trusting their shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

Document = Mapping[str, Any]


class ObjectRef(NamedTuple):
    """One object by kind, namespace (None for cluster-wide objects) and name."""

    kind: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ClusterObject:
    """One object of the cluster. `body` holds what stands beside spec and status (`data`, `subsets`, `rules`)."""

    ref: ObjectRef
    metadata: Document = field(default_factory=dict)
    spec: Document = field(default_factory=dict)
    status: Document = field(default_factory=dict)
    body: Document = field(default_factory=dict)
    read_at: float | None = None

    @property
    def labels(self) -> Document:
        return get_part(self.metadata, "labels")

    @property
    def annotations(self) -> Document:
        return get_part(self.metadata, "annotations")

    @property
    def created(self) -> float | None:
        return parse_moment(self.metadata.get("creationTimestamp"))

    @property
    def deleted(self) -> float | None:
        """When its deletion was asked for, or None."""
        return parse_moment(self.metadata.get("deletionTimestamp"))

    @property
    def owners(self) -> Sequence[Document]:
        return rows_of(self.metadata, "ownerReferences")

    def condition(self, kind: str) -> Document:
        """The status condition of that type; empty where there is none."""
        return next((c for c in rows_of(self.status, "conditions") if c.get("type") == kind), {})


def get_part(document: Document | None, *names: str) -> Document:
    """The object at a path of names; empty where there is none."""
    value: Any = document or {}
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def rows_of(document: Document | None, name: str) -> Sequence[Document]:
    """The objects in the list `name`; empty where there is none."""
    value = (document or {}).get(name)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    return [row for row in value if isinstance(row, Mapping)]


def number_of(value: object) -> int | None:
    """A whole number, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def parse_moment(text: object) -> float | None:
    """Seconds since the epoch of an RFC 3339 time, or None."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
