"""A folder of Markdown files, with those below it, as a source of runbooks."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from opsleuth.analysis.records import Runbook, Span
from opsleuth.analysis.runbooks import parse
from opsleuth.state.folders import expanded
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.settings import RunbookFolder
from opsleuth.tools.spec import Unavailable

MOST_FILES, MOST_BYTES = 1_000, 200_000
"""Files of a folder, and bytes of each, that are looked at."""


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
        text = f"{len(books)} runbooks, {bound} of them with front matter; the others fit by their titles"
        return [Check("runbooks", "ok", text)]


def runbooks_in(folder: Path) -> Iterator[Runbook]:
    """The runbooks of a folder, in the order of their names. Raises Unavailable for a folder that cannot be read."""
    if not folder.is_dir():
        raise Unavailable(f"{folder} is no folder")
    files = sorted(path for path in folder.rglob("*.md") if path.is_file())
    for path in islice(files, MOST_FILES):
        try:
            with path.open("rb") as file:
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise Unavailable(f"the runbook {path} cannot be read: {error.strerror}") from None
        yield parse(path.relative_to(folder).as_posix(), text.replace("\r\n", "\n"))
