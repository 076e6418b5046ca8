"""A case folder as a source: a recorded incident behind the same capabilities as a live backend.

Nothing but `incident.json` is read when the folder is opened; each table is read once, when it is first
asked for. A missing file is a capability that the source does not have.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from opsleuth.analysis.records import LogLine, Recording, Span
from opsleuth.tools.sources import case_rows as rows
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.books import runbooks_in
from opsleuth.tools.sources.incident import FILE, Incident, NotACase, read_incident
from opsleuth.tools.sources.seek import SLACK, start_of
from opsleuth.tools.sources.tables import PARQUET_REMEDY, Row, Trouble, can_read_parquet, find_table

__all__ = ["CaseFolder", "Incident", "NotACase"]

# Rows of one table that are held in memory (log lines: about 300 MB). Log search streams past this bound.
MAX_ROWS = 500_000


# A log of more bytes is looked through line by line and never held for a search.
HELD_BYTES = 64_000_000
HELD_BEFORE = 3600.0


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a case: file name, capability it serves, field of the recording, row parser (None: metrics)."""

    name: str
    capability: Capability
    field: str
    parse: Callable[[Row, Trouble], Any] | None = None


TABLES = (
    Table("metrics.csv", "metrics", "metrics"),
    Table("metrics_baseline.csv", "metrics", "metrics_baseline"),
    Table("logs.jsonl", "logs", "logs", rows.log_line),
    Table("logs_baseline.jsonl", "logs", "logs_baseline", rows.log_line),
    Table("log_patterns.csv", "logs", "patterns", rows.pattern_count),
    Table("traces.jsonl", "traces", "spans", rows.trace_span),
    Table("traces_baseline.jsonl", "traces", "spans_baseline", rows.trace_span),
    Table("span_stats.csv", "traces", "span_stats", rows.span_stat),
    Table("edge_latency.csv", "traces", "edges", rows.edge_latency),
    Table("topology.csv", "topology", "topology", rows.dependency),
    Table("changes.jsonl", "changes", "changes", rows.change),
    Table("events.jsonl", "events", "events", rows.platform_event),
    Table("objects.jsonl", "objects", "objects", rows.object_state),
    Table("statements.jsonl", "statements", "statements", rows.statement_load),
)
ALL: frozenset[Capability] = frozenset({table.capability for table in TABLES} | {"runbooks"})


class CaseFolder:
    """The source behind `--case DIR`. Safe to read from several threads; a table is read once."""

    name = "case"

    def __init__(self, path: Path, incident: Incident, files: dict[str, Path], notes: Sequence[str]) -> None:
        self.path = path
        self.incident = incident
        self._files = files
        self._notes = list(notes)
        self._tables: dict[str, list[Any]] = {}
        self._troubles: dict[str, Trouble] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The case in folder `path`. Raises NotACase, whose text says what is missing or broken."""
        folder = Path(path)
        incident = read_incident(folder)
        files, notes = _find(folder)
        return cls(folder, incident, files, [*incident.notes, *notes])

    @property
    def capabilities(self) -> frozenset[Capability]:
        served: set[Capability] = {table.capability for table in TABLES if table.name in self._files}
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

    async def read(self, capabilities: Iterable[Capability], window: Span) -> Recording:
        return await asyncio.to_thread(self.recording, frozenset(capabilities), window)

    def recording(self, capabilities: Iterable[Capability] = ALL, window: Span | None = None) -> Recording:
        """All recorded rows of the capabilities, also those before the window: what came before may bear on it."""
        wanted = frozenset(capabilities)
        tables: dict[str, Any] = {
            t.field: self._table(t) for t in TABLES if t.capability in wanted and t.name in self._files
        }
        if "runbooks" in wanted and "runbooks" in self.capabilities:
            tables["runbooks"] = list(runbooks_in(self.path / "runbooks"))
        return Recording(alert=self.incident.alert_facts, window=window or self.incident.span, **tables)

    def scan_logs(self, *, baseline: bool = False, span: Span | None = None) -> Iterator[LogLine]:
        """Every log line in the file's order, however many there are, in bounded memory.

        Of a long log that is in order of time, only the lines around `span`.
        """
        table = next(t for t in TABLES if t.field == ("logs_baseline" if baseline else "logs"))
        path = self._files.get(table.name)
        if path is None:
            return
        if _weight(path) <= HELD_BYTES:
            held = self._table(table)
            if not self._troubles[table.name].left_out:
                yield from held
                return
        yield from self._stream_logs(table.name, path, span)

    def _stream_logs(self, name: str, path: Path, span: Span | None) -> Iterator[LogLine]:
        trouble = self._troubles.setdefault(name, Trouble(path.name))
        start = start_of(path, span.start) if span and path.suffix == ".jsonl" else None
        if start is None or span is None:
            yield from rows.stream(path, rows.log_line, trouble)
        else:
            yield from _until(rows.stream(path, rows.log_line, trouble, start), span.end + SLACK)

    def _around_window(self, path: Path, trouble: Trouble) -> Iterator[LogLine]:
        """A long log as detectors see it: the window and the hours before it, where the order of lines allows that."""
        window = self.incident.span
        start = start_of(path, window.start - HELD_BEFORE) if path.suffix == ".jsonl" else None
        if start is None:
            return rows.stream(path, rows.log_line, trouble)
        trouble.note = f"a long log: detectors see it from {HELD_BEFORE / 3600:g} h before the window, log search sees all"
        return _until(rows.stream(path, rows.log_line, trouble, start), window.end + SLACK)

    def _table(self, table: Table) -> list[Any]:
        with self._lock:
            if table.name not in self._tables:
                trouble = self._troubles[table.name] = Trouble(self._files[table.name].name)
                self._tables[table.name] = self._read(table, trouble)
            return self._tables[table.name]

    def _read(self, table: Table, trouble: Trouble) -> list[Any]:
        path = self._files[table.name]
        try:
            if table.parse is None:
                return rows.metric_series(path, trouble)
            if table.parse is rows.log_line and _weight(path) > HELD_BYTES:
                return self._held(self._around_window(path, trouble), trouble)
            return self._held(rows.stream(path, table.parse, trouble), trouble)
        except OSError as error:
            trouble.ended = f"cannot be read ({error.strerror or error}): check its permissions"
            return []

    def _held(self, records: Iterator[Any], trouble: Trouble) -> list[Any]:
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


def _until(lines: Iterator[LogLine], end: float) -> Iterator[LogLine]:
    for line in lines:
        if line.time is not None and line.time > end:
            return
        yield line


def _weight(path: Path) -> int:
    """Bytes of the file's text; compressed logs are about a tenth of it."""
    return path.stat().st_size * (10 if path.suffix in (".gz", ".parquet") else 1)


def _find(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """The file of each table that can be read, and notes on what was passed over."""
    files: dict[str, Path] = {}
    notes: list[str] = []
    known = {FILE}
    for table in TABLES:
        found = find_table(folder, table.name)
        known.update(path.name for path in found)
        for path in found:
            if path.suffix == ".parquet" and not can_read_parquet():
                notes.append(f"{path.name} was not read: {PARQUET_REMEDY}")
            elif table.name in files:
                notes.append(f"{path.name} was not read: {files[table.name].name} holds the same table")
            else:
                files[table.name] = path
    notes += [
        f"{name} was ignored: no file of that name belongs to a case" for name in _strangers(folder, known)
    ]
    return files, notes


def _strangers(folder: Path, known: set[str]) -> list[str]:
    names = {p.name for p in folder.iterdir() if not p.name.startswith(".")} - known
    return sorted(names - {"runbooks"})
