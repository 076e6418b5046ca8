"""Let the sources of a run compare a cluster with what the previous run stored of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from opsleuth.analysis.cluster.object_digests import SeenObjects
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.seen_objects import SeenObjectsRow
from opsleuth.checkpoints.store import Store
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.sources.source_protocols import Source


@dataclass(frozen=True, slots=True)
class StoredObjectMemory:
    """The memory of one run, in its database."""

    store: Store
    run: str
    project: str

    def clean(self, text: str) -> str:
        return self.store.seen_objects.clean(text)

    def find_earlier(self, source: str, before: float) -> SeenObjects | None:
        row = self.store.seen_objects.find_earlier(self.run, self.project, source, before)
        return SeenObjects(*row) if row else None

    def put(self, source: str, seen: SeenObjects) -> None:
        row = SeenObjectsRow(seen.run, seen.captured, seen.digests, seen.bodies, list(seen.kinds))
        self.store.seen_objects.put(source, row)


def attach_object_memory(sources: Iterable[Source], store: Store, row: RunRow) -> None:
    """Give the live sources of a run the memory of its project."""
    for source in sources:
        live = getattr(source, "source", source)
        if isinstance(live, LiveSource):
            live.memory = StoredObjectMemory(store, row.id, row.project)
