"""Problems of a hand-made case folder: columns, times and names that do not fit, each with the remedy."""

import csv
import gzip
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from opsleuth.analysis.records import Recording, TimeRange
from opsleuth.state.nearest_name import find_nearest_names
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.case_tables import TABLES
from opsleuth.tools.sources.table_files import find_table_files

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "metrics.csv": ("timestamp", "service", "metric", "value"),
    "metrics_baseline.csv": ("timestamp", "service", "metric", "value"),
    "logs.jsonl": ("timestamp", "service", "message"),
    "logs_baseline.jsonl": ("timestamp", "service", "message"),
    "log_patterns.csv": ("window", "service", "level", "pattern", "count"),
    "traces.jsonl": ("trace_id", "span_id", "service", "operation", "start", "duration_ms"),
    "traces_baseline.jsonl": ("trace_id", "span_id", "service", "operation", "start", "duration_ms"),
    "span_stats.csv": ("window", "service", "operation", "count"),
    "edge_latency.csv": ("window", "caller", "callee", "count"),
    "topology.csv": ("caller", "callee"),
    "changes.jsonl": ("timestamp", "service", "kind", "summary"),
    "events.jsonl": ("timestamp", "object", "type", "reason", "message"),
    "statements.jsonl": ("captured_at", "database", "statement"),
}
"""The columns that a table cannot do without."""
_TIMED = ("metrics", "logs", "spans", "changes", "events")
_SAMPLED_ROWS = 20


class CaseTableSummary(NamedTuple):
    """One table of a case: its rows, and the first and last time in them."""

    name: str
    rows: int
    first: str
    last: str


class CaseCheck(NamedTuple):
    """What a case holds, and what is wrong with it."""

    tables: Sequence[CaseTableSummary]
    problems: Sequence[str]


def check_case(folder: Path) -> CaseCheck:
    """Read the whole case. Raises NotACaseError where there is none."""
    case = CaseSource.open(folder)
    recording = case.recording()
    spans = {name: span for name in _TIMED if (span := find_time_span(recording, name)) is not None}
    tables = [
        CaseTableSummary(
            table.name, count_rows(getattr(recording, table.field)), *format_span(spans.get(table.field))
        )
        for table in TABLES
        if getattr(recording, table.field) is not None
    ]
    problems = [
        *find_column_problems(folder),
        *find_window_problems(spans, case.incident.span),
        *find_service_problems(case, recording),
        *case.warnings,
    ]
    if not tables and not case.capabilities:
        problems.append("there is no table: add metrics.csv, logs.jsonl, traces.jsonl or changes.jsonl")
    return CaseCheck(tables, list(dict.fromkeys(problems)))


def find_column_problems(folder: Path) -> Iterator[str]:
    """Columns that are missing, with the column that is likely meant."""
    for name, needed in COLUMNS.items():
        for path in find_table_files(folder, name):
            found = read_column_names(path)
            missing = [column for column in needed if column not in found]
            if found and missing:
                yield f"{path.name} has no column {', '.join(missing)}: it has {', '.join(sorted(found))}{suggest_columns(missing, found, needed)}"


def suggest_columns(missing: Sequence[str], found: Collection[str], needed: Collection[str]) -> str:
    """`; rename time to timestamp` for what is nearly a missing column."""
    spare = [column for column in found if column not in needed]
    pairs = [(near[0], column) for column in missing if (near := find_similar_columns(column, spare))]
    return f"; rename {', '.join(f'{old} to {new}' for old, new in pairs)}" if pairs else ""


_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "timestamp": ("time", "ts", "date", "datetime", "@timestamp", "when"),
    "service": ("svc", "app", "component", "job", "name"),
    "message": ("msg", "log", "text", "body", "line"),
    "value": ("val", "v", "sample"),
    "metric": ("name", "metric_name", "key"),
    "start": ("start_time", "timestamp", "time", "ts"),
    "duration_ms": ("duration", "elapsed", "took"),
    "summary": ("description", "title", "message", "text"),
}


def find_similar_columns(column: str, spare: Sequence[str]) -> list[str]:
    """Those of the spare columns that mean the same or are spelled nearly so."""
    folded = {name.casefold(): name for name in spare}
    known = [folded[word] for word in _SYNONYMS.get(column, ()) if word in folded]
    return known or list(find_nearest_names(column, spare, 1))


def read_column_names(path: Path) -> set[str]:
    """The columns of a table's header, or the keys of its first rows; none where it cannot be read so."""
    try:
        with open_table(path) as file:
            if ".csv" in path.suffixes:
                return {name.strip() for name in next(csv.reader(file), [])}
            rows = [json.loads(line) for line in islice(file, _SAMPLED_ROWS) if line.strip()]
    except (OSError, ValueError, EOFError, csv.Error):
        return set()
    return {str(key) for row in rows if isinstance(row, dict) for key in row}


def open_table(path: Path) -> IO[str]:
    return (
        gzip.open(path, "rt", encoding="utf-8-sig")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8-sig")
    )


def find_window_problems(spans: Mapping[str, TimeRange], window: TimeRange) -> Iterator[str]:
    """Tables without rows in the window, with both time ranges."""
    for name, span in spans.items():
        if name not in ("changes", "events") and (span.end < window.start or span.start >= window.end):
            yield (
                f"{name} cover {format_rfc3339(span.start)} to {format_rfc3339(span.end)}, the window is "
                f"{format_rfc3339(window.start)} to {format_rfc3339(window.end)}: correct the window in incident.json, or the times"
            )


def find_service_problems(case: CaseSource, recording: Recording) -> Iterator[str]:
    """An alert's service that no row names, with the one that is likely meant."""
    alert = case.incident.alert
    known = list_services(recording)
    if alert is None or not alert.service or not known or alert.service in known:
        return
    near = find_nearest_names(alert.service, known, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)[:8])}"
    yield f"the alert is about {alert.service}, which no row names: {meant}"


def list_services(recording: Recording) -> set[str]:
    """Every service that a row names."""
    names = {
        row.service
        for rows in (recording.metrics, recording.logs, recording.spans, recording.changes)
        for row in rows or ()
        if row.service
    }
    return names | {end for call in recording.topology or () for end in (call.caller, call.callee)}


def find_time_span(recording: Recording, name: str) -> TimeRange | None:
    """From the first to the last time in a table's rows."""
    times: list[float] = []
    for row in getattr(recording, name) or ():
        times += read_times(row)
    return TimeRange(min(times), max(times)) if times else None


def read_times(row: object) -> list[float]:
    """The times that a row holds."""
    if (series := getattr(row, "times", None)) is not None:
        return [series[0], series[-1]] if len(series) else []
    moment = getattr(row, "time", None) or getattr(row, "start", None)
    return [moment] if moment is not None else []


def count_rows(rows: Sequence[Any]) -> int:
    """Samples of series, rows of everything else."""
    return sum(len(times) if (times := getattr(row, "times", None)) is not None else 1 for row in rows)


def format_span(span: TimeRange | None) -> tuple[str, str]:
    return (format_rfc3339(span.start) or "", format_rfc3339(span.end) or "") if span else ("", "")


def describe_table(table: CaseTableSummary) -> str:
    """`metrics.csv: 40 rows, 2026-05-12T09:00:00Z to 2026-05-12T09:18:00Z`."""
    span = f", {table.first} to {table.last}" if table.first else ""
    return f"{table.name}: {format_count(table.rows, 'row')}{span}"
