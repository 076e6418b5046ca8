"""Dumps of a cluster as a source: what `kubectl get -o json|yaml` printed, support bundles, must-gather folders."""

import asyncio
import glob
from collections.abc import Sequence
from pathlib import Path

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.source_settings import ClusterFilesSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.cluster_dumps import ClusterDump, date_dump, read_dump
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import UnavailableError


class ClusterFilesSource(LiveSource):
    """The source of kind `clusterfiles`."""

    capabilities: frozenset[Capability] = frozenset({"objects", "events"})

    def __init__(self, name: str, settings: ClusterFilesSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        """All objects; of the events those of the window and the hour before."""
        dump, asked = await asyncio.to_thread(self._dump)
        if capability == "objects":
            return FetchedRows({"objects": dump.objects}, asked, tuple(dump.notes))
        start = window.start - self._settings.before
        events = [event for event in dump.events if start <= event.time < window.end]
        return FetchedRows({"events": events}, asked, tuple(dump.notes))

    def _dump(self) -> tuple[ClusterDump, tuple[str, ...]]:
        files = self._files()
        captured = max(file.stat().st_mtime for file in files)
        asked = tuple(f"read {path} ({format_count(path.stat().st_size, 'byte')})" for path in files[:50])
        return date_dump(read_dump(files, captured), captured), asked

    def _files(self) -> list[Path]:
        found = {Path(path) for pattern in self._settings.files for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - absolute ones too  # fmt: skip
        files = sorted(path for path in found if path.is_file())
        if not files:
            raise UnavailableError(f"{self.name}: no file fits {', '.join(self._settings.files)}")
        return files

    async def check(self) -> Sequence[SourceCheck]:
        dump, _ = await asyncio.to_thread(self._dump)
        wrong = [SourceCheck("files", "warning", text) for text in dump.notes]
        counts = f"{format_count(len(dump.objects), 'object')}, {format_count(len(dump.events), 'event')}"
        return [*wrong, SourceCheck("objects", "ok" if dump.objects else "warning", counts)]
