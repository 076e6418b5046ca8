"""Tables of the case format outside a case: deploys, calls between services, events, spans, statements as rows of a file.

The columns say which table a file holds, never its name.
"""

import asyncio
import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.source_settings import RecordFilesSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.case_rows import stream_records
from opsleuth.tools.sources.case_source import MAX_ROWS, TABLES, CaseTable
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.sources.table_files import SUFFIXES, FileProblems, read_rows
from opsleuth.tools.spec import UnavailableError

COLUMNS: Mapping[str, frozenset[str]] = {
    "traces": frozenset(("trace_id", "span_id", "service", "operation", "start", "duration_ms")),
    "span_stats": frozenset(("window", "service", "operation", "count")),
    "edge_latency": frozenset(("window", "caller", "callee", "count")),
    "topology": frozenset(("caller", "callee")),
    "changes": frozenset(("timestamp", "service", "kind", "summary")),
    "events": frozenset(("timestamp", "object", "type", "reason", "message")),
    "statements": frozenset(("captured_at", "database", "statement")),
}
"""The columns that make a row one of this table; of several that fit, the first."""
NAMES = {
    "traces": "spans",
    "span_stats": "spans by operation",
    "edge_latency": "latency between services",
    "topology": "calls between services",
    "changes": "changes",
    "events": "platform events",
    "statements": "database statements",
}
_TABLES = {name: next(t for t in TABLES if t.name.partition(".")[0] == name) for name in COLUMNS}
_SAMPLE = 5


def find_record_table(path: Path) -> str | None:
    """The table whose rows the file holds; None for any other file. Raises OSError."""
    if not any(path.name.endswith(f"{kind}{more}") for kind in (".jsonl", ".csv") for more in SUFFIXES):
        return None
    rows = [row for _, row in islice(read_rows(path, FileProblems(path.name)), _SAMPLE)]
    fitting = (name for name, needed in COLUMNS.items() if all(needed <= row.keys() for row in rows))
    return next(fitting, None) if rows else None


def read_records(path: Path, table: str, problems: FileProblems) -> Iterator[Any]:
    """The rows of a file as records of the table; broken ones are counted in `problems`."""
    if (parse := _TABLES[table].parse) is not None:
        yield from islice(stream_records(path, parse, problems), MAX_ROWS)


class RecordFilesSource(LiveSource):
    """The source of kind `recordfiles`."""

    def __init__(self, name: str, settings: RecordFilesSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._tables = {path: table for path in _expand(settings.files) if (table := find_record_table(path))}
        self.capabilities = frozenset(_TABLES[table].capability for table in self._tables.values())
        if not self._tables:
            raise UnavailableError(
                f"{name}: no file with rows of the case format fits {', '.join(settings.files)}"
            )

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        """All rows but those of a later time: what lies before the window may bear on it."""
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
            table: CaseTable = _TABLES[name]
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


def _expand(patterns: Sequence[str]) -> list[Path]:
    found = {Path(path) for pattern in patterns for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - absolute ones too  # fmt: skip
    return sorted(path for path in found if path.is_file())
