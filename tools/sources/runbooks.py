"""A folder of Markdown files, with those below it, as a source of runbooks."""

import asyncio
from collections.abc import Sequence

from opsleuth.analysis.records import Span
from opsleuth.state.folders import expanded
from opsleuth.state.words import counted
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.books import MOST_FILES, runbooks_in
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.settings import RunbookFolder


class RunbookSource(LiveSource):
    """The source of kind `runbooks`."""

    capabilities: frozenset[Capability] = frozenset({"runbooks"})

    def __init__(self, name: str, settings: RunbookFolder, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._folder = expanded(settings.folder)

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        del capability, window
        books = await asyncio.to_thread(lambda: list(runbooks_in(self._folder)))
        note = (f"only the first {MOST_FILES:,} files are looked at",) if len(books) == MOST_FILES else ()
        return Fetched({"runbooks": books}, notes=note)

    async def check(self) -> Sequence[Check]:
        books = await asyncio.to_thread(lambda: list(runbooks_in(self._folder)))
        if not books:
            return [Check("runbooks", "warning", f"{self._folder} holds no .md file")]
        bound = sum(bool(b.services or b.labels or b.alerts) for b in books)
        text = f"{counted(len(books), 'runbook')}, {bound} of them with front matter; the others fit by their titles"
        return [Check("runbooks", "ok", text)]
