"""What a cluster source remembers between runs, and where it is stored."""

from collections.abc import Iterable
from typing import Protocol

from opsleuth.analysis.cluster.object_digests import (
    ListedObject,
    ListedObjects,
    SeenObjects,
    compare_with_earlier_run,
    digest_object,
    summarize_listed,
)
from opsleuth.analysis.cluster.objects import Document
from opsleuth.analysis.records import ServiceChange


class ObjectMemory(Protocol):
    """Keeps what runs saw of a cluster; `run` is the one that sees now."""

    @property
    def run(self) -> str: ...

    def clean(self, text: str) -> str:
        """The text with its secrets replaced, as it is kept."""
        ...

    def find_earlier(self, source: str, before: float) -> SeenObjects | None:
        """What another run saw of the source last before a moment; else what the newest one saw."""
        ...

    def put(self, source: str, seen: SeenObjects) -> None:
        """Keep what this run saw first."""
        ...


class ObjectListing:
    """What one reading of a cluster lists, as it is remembered. Without a memory nothing is kept."""

    def __init__(self, memory: ObjectMemory | None) -> None:
        self._memory = memory
        self._objects: list[ListedObject] = []
        self._kinds: set[str] = set()

    def add(self, kind: str, documents: Iterable[Document], *, with_content: bool, is_complete: bool) -> None:
        """Objects of one kind; whether they are all that there are."""
        if self._memory is None:
            return
        digested = (digest_object(kind, document, with_content=with_content) for document in documents)
        self._objects += [found for found in digested if found is not None]
        if is_complete:
            self._kinds.add(kind)

    def compare(self, source: str, captured: float, before: float) -> list[ServiceChange]:
        """What changed since the run before; what was listed is kept for the run after.

        `source` says which part of which cluster this is, `before` from when on the incident may have begun.
        """
        if self._memory is None:
            return []
        listed = ListedObjects(captured, self._objects, self._kinds, self._memory.clean)
        earlier = self._memory.find_earlier(source, before)
        changes = compare_with_earlier_run(earlier, listed) if earlier else []
        self._memory.put(source, summarize_listed(self._memory.run, listed, earlier))
        return changes
