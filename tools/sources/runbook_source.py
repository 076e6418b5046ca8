"""A folder of Markdown files, with those below it, as a source of runbooks."""

import asyncio
from collections.abc import Sequence

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.folders import expand_home
from opsleuth.configuration.source_settings import RunbookSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.runbook_files import MOST_FILES, read_runbooks
from opsleuth.tools.sources.source_protocols import Capability


class RunbookSource(LiveSource):
    """The source of kind `runbooks`."""

    capabilities: frozenset[Capability] = frozenset({"runbooks"})

    def __init__(self, name: str, settings: RunbookSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._folder = expand_home(settings.folder)

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability, window
        books = await asyncio.to_thread(lambda: list(read_runbooks(self._folder)))
        note = (f"only the first {MOST_FILES:,} files are looked at",) if len(books) == MOST_FILES else ()
        return FetchedRows({"runbooks": books}, notes=note)

    async def check(self) -> Sequence[SourceCheck]:
        books = await asyncio.to_thread(lambda: list(read_runbooks(self._folder)))
        if not books:
            return [SourceCheck("runbooks", "warning", f"{self._folder} holds no .md file")]
        bound = sum(bool(b.services or b.labels or b.alerts) for b in books)
        text = f"{format_count(len(books), 'runbook')}, {bound} of them with front matter; the others fit by their titles"
        return [SourceCheck("runbooks", "ok", text)]
