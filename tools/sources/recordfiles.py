"""Tables of the case format outside a case: deploys, calls between services, events, spans, statements as rows of a file.

The columns say which table a file holds, never its name.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.source_settings import RecordFilesSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.file_patterns import find_matching_paths
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.record_tables import COLUMNS, TABLES_BY_NAME, find_record_table, read_records
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.sources.table_files import FileProblems
from opsleuth.tools.spec import UnavailableError


class RecordFilesSource(LiveSource):
    """The source of kind `recordfiles`."""

    def __init__(self, name: str, settings: RecordFilesSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        files = sorted(path for path in find_matching_paths(settings.files) if path.is_file())
        self._patterns = ", ".join(settings.files)
        self._tables = {path: table for path in files if (table := find_record_table(path))}
        served = self._tables.values() or COLUMNS  # none yet: which tables the files will hold is not known
        self.capabilities = frozenset(TABLES_BY_NAME[table].capability for table in served)

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        """All rows but those of a later time: what lies before the window may bear on it."""
        if not self._tables:
            raise UnavailableError(f"{self.name}: no file with rows of the case format fits {self._patterns}")
        found = await asyncio.to_thread(self._read, capability)
        rows = {
            name: [row for row in table if _begins_before(row, window.end)]
            for name, table in found.rows.items()
        }
        return replace(found, rows=rows)

    def _read(self, capability: Capability) -> FetchedRows:
        rows: dict[str, list[Any]] = {}
        asked, notes = list[str](), list[str]()
        for path, name in self._tables.items():
            table = TABLES_BY_NAME[name]
            if table.capability != capability:
                continue
            problems = FileProblems(path.name)
            found = list(read_records(path, name, problems))
            rows.setdefault(table.field, []).extend(found)
            asked.append(f"read {path} ({format_count(len(found), 'row')})")
            notes += problems.sentences()
        return FetchedRows(rows, tuple(asked), tuple(notes))

    async def check(self) -> Sequence[SourceCheck]:
        found = [await asyncio.to_thread(self._read, capability) for capability in sorted(self.capabilities)]
        wrong = [SourceCheck("rows", "warning", note) for one in found for note in one.notes]
        count = sum(len(rows) for one in found for rows in one.rows.values())
        return [*wrong, SourceCheck("rows", "ok" if count else "warning", format_count(count, "row"))]


def _begins_before(row: object, end: float) -> bool:
    time = getattr(row, "time", None) or getattr(row, "start", None)
    return time is None or time < end
