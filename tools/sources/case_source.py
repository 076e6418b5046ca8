"""A case folder as a source: a recorded incident behind the same capabilities as a live backend.

Nothing but `incident.json` is read when the folder is opened; each table is read once, when it is first
asked for. A missing file is a capability that the source does not have.
"""

import asyncio
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from opsleuth.analysis.records import LogLine, Recording, TimeRange
from opsleuth.state.nearest_name import find_nearest_names
from opsleuth.tools.sources import case_rows as rows
from opsleuth.tools.sources.case_tables import TABLES, CaseTable
from opsleuth.tools.sources.cluster_dumps import (
    DUMP_FILES,
    DUMP_FOLDERS,
    ClusterDump,
    dump_paths,
    read_dump,
)
from opsleuth.tools.sources.incident_file import (
    INCIDENT_FILE,
    NotACaseError,
    RecordedIncident,
    read_incident,
)
from opsleuth.tools.sources.runbook_files import read_runbooks
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.sources.table_files import (
    MAX_ROWS,
    PARQUET_REMEDY,
    FileProblems,
    can_read_parquet,
    find_table_files,
)
from opsleuth.tools.sources.time_seek import SLACK, find_time_offset

__all__ = ["CaseSource", "NotACaseError", "RecordedIncident"]

# A log of more bytes is looked through line by line and never held for a search.
HELD_BYTES = 64_000_000
HELD_BEFORE = 3600.0


CASE_CAPABILITIES: frozenset[Capability] = frozenset({table.capability for table in TABLES} | {"runbooks"})


class CaseSource:
    """The source behind `--case DIR`. Safe to read from several threads; a table is read once."""

    name = "case"

    def __init__(
        self, path: Path, incident: RecordedIncident, files: dict[str, Path], notes: Sequence[str]
    ) -> None:
        self.path = path
        self.incident = incident
        self._files = files
        self._notes = list(notes)
        self._tables: dict[str, list[Any]] = {}
        self._troubles: dict[str, FileProblems] = {}
        self._lock = threading.Lock()
        self._dumps = dump_paths(path)
        self._dump: ClusterDump | None = None

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The case in folder `path`. Raises NotACaseError, whose text says what is missing or broken."""
        folder = Path(path)
        incident = read_incident(folder)
        files, notes = _find_tables(folder)
        return cls(folder, incident, files, [*incident.notes, *notes])

    @property
    def capabilities(self) -> frozenset[Capability]:
        served: set[Capability] = {table.capability for table in TABLES if table.name in self._files}
        if self._dumps:
            served |= {"objects", "events"}
        if any((self.path / "runbooks").glob("*.md")):
            served.add("runbooks")
        return frozenset(served)

    @property
    def services(self) -> frozenset[str]:
        alert = self.incident.alert
        named = (alert.service,) if alert and alert.service else ()
        return frozenset((*self.incident.services, *named))

    @property
    def sampling(self) -> str | None:
        return self.incident.sampling

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the data read so far: first the files that lost the largest part of their rows."""
        troubles = [self._troubles[table.name] for table in TABLES if table.name in self._troubles]
        worst = sorted(troubles, key=lambda trouble: -trouble.lost)
        return (*(text for trouble in worst for text in trouble.sentences()), *self._notes)

    async def read(self, capabilities: Iterable[Capability], window: TimeRange) -> Recording:
        return await asyncio.to_thread(self.recording, frozenset(capabilities), window)

    def recording(
        self, capabilities: Iterable[Capability] = CASE_CAPABILITIES, window: TimeRange | None = None
    ) -> Recording:
        """All recorded rows of the capabilities, also those before the window: what came before may bear on it."""
        wanted = frozenset(capabilities)
        tables: dict[str, Any] = {
            t.field: self._table(t) for t in TABLES if t.capability in wanted and t.name in self._files
        }
        if self._dumps and wanted & {"objects", "events"}:
            self._add_dump(tables, wanted)
        if "runbooks" in wanted and "runbooks" in self.capabilities:
            tables["runbooks"] = list(read_runbooks(self.path / "runbooks"))
        return Recording(alert=self.incident.alert_facts, window=window or self.incident.span, **tables)

    def _add_dump(self, tables: dict[str, Any], wanted: frozenset[Capability]) -> None:
        """What dumps of the cluster hold, beside the rows of the tables; their state is that of the window's end."""
        with self._lock:
            if self._dump is None:
                self._dump = read_dump(self._dumps, self.incident.span.end)
                self._notes += self._dump.notes
        for name, rows_read in (("objects", self._dump.objects), ("events", self._dump.events)):
            if name in wanted:
                tables[name] = [*tables.get(name, ()), *rows_read]

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        """Every log line in the file's order, however many there are, in bounded memory.

        Of a long log that is in order of time, only the lines around `span`.
        """
        table = next(t for t in TABLES if t.field == ("logs_baseline" if baseline else "logs"))
        path = self._files.get(table.name)
        if path is None:
            return
        if _estimate_text_bytes(path) <= HELD_BYTES:
            held = self._table(table)
            if not self._troubles[table.name].left_out:
                yield from held
                return
        yield from self._stream_logs(table.name, path, span)

    def _stream_logs(self, name: str, path: Path, span: TimeRange | None) -> Iterator[LogLine]:
        trouble = self._troubles.setdefault(name, FileProblems(path.name))
        start = find_time_offset(path, span.start) if span and path.suffix == ".jsonl" else None
        if start is None or span is None:
            yield from rows.stream_records(path, rows.parse_log_line, trouble)
        else:
            yield from _take_until(
                rows.stream_records(path, rows.parse_log_line, trouble, start), span.end + SLACK
            )

    def _around_window(self, path: Path, trouble: FileProblems) -> Iterator[LogLine]:
        """A long log as detectors see it: the window and the hours before it, where the order of lines allows that."""
        window = self.incident.span
        start = find_time_offset(path, window.start - HELD_BEFORE) if path.suffix == ".jsonl" else None
        if start is None:
            return rows.stream_records(path, rows.parse_log_line, trouble)
        trouble.note = f"a long log: detectors see it from {HELD_BEFORE / 3600:g} h before the window, log search sees all"
        return _take_until(rows.stream_records(path, rows.parse_log_line, trouble, start), window.end + SLACK)

    def _table(self, table: CaseTable) -> list[Any]:
        with self._lock:
            if table.name not in self._tables:
                trouble = self._troubles[table.name] = FileProblems(self._files[table.name].name)
                self._tables[table.name] = self._read(table, trouble)
            return self._tables[table.name]

    def _read(self, table: CaseTable, trouble: FileProblems) -> list[Any]:
        path = self._files[table.name]
        try:
            if table.parse is None:
                return rows.read_metric_series(path, trouble)
            if table.parse is rows.parse_log_line and _estimate_text_bytes(path) > HELD_BYTES:
                return self._held(self._around_window(path, trouble), trouble)
            return self._held(rows.stream_records(path, table.parse, trouble), trouble)
        except OSError as error:
            trouble.ended = f"cannot be read ({error.strerror or error}): check its permissions"
            return []

    def _held(self, records: Iterator[Any], trouble: FileProblems) -> list[Any]:
        """The records that are held: those of the incident window first in number, half as many of other times."""
        window = self.incident.span
        room = {True: MAX_ROWS, False: MAX_ROWS // 2}
        held = []
        for record in records:
            time = getattr(record, "time", None) or getattr(record, "start", None)
            inside = time is None or window.start <= time < window.end
            if room[inside]:
                room[inside] -= 1
                held.append(record)
            else:
                trouble.left_out += 1
        return held


def _take_until(lines: Iterator[LogLine], end: float) -> Iterator[LogLine]:
    for line in lines:
        if line.time is not None and line.time > end:
            return
        yield line


def _estimate_text_bytes(path: Path) -> int:
    """Bytes of the file's text; compressed logs are about a tenth of it."""
    return path.stat().st_size * (10 if path.suffix in (".gz", ".parquet") else 1)


def _find_tables(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """The file of each table that can be read, and notes on what was passed over."""
    files: dict[str, Path] = {}
    notes: list[str] = []
    known = {INCIDENT_FILE}
    for table in TABLES:
        found = find_table_files(folder, table.name)
        known.update(path.name for path in found)
        for path in found:
            if path.suffix == ".parquet" and not can_read_parquet():
                notes.append(f"{path.name} was not read: {PARQUET_REMEDY}")
            elif table.name in files:
                notes.append(f"{path.name} was not read: {files[table.name].name} holds the same table")
            else:
                files[table.name] = path
    notes += [
        f"{name} was ignored: no file of that name belongs to a case{_suggest_file(name, files)}"
        for name in _unknown_files(folder, known)
    ]
    return files, notes


def _suggest_file(name: str, found: Collection[str]) -> str:
    """`; did you mean logs.jsonl?` for the name of a table that is missing, spelled nearly so."""
    near = find_nearest_names(name, [table.name for table in TABLES if table.name not in found], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _unknown_files(folder: Path, known: set[str]) -> list[str]:
    names = {p.name for p in folder.iterdir() if not p.name.startswith(".")} - known
    return sorted(names - {"runbooks", *DUMP_FILES, *DUMP_FOLDERS})
