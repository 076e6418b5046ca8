"""Which table of the case format a file's rows are, told by their columns, and the records in it."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from opsleuth.tools.sources.case_rows import stream_records
from opsleuth.tools.sources.case_tables import TABLES
from opsleuth.tools.sources.table_files import MAX_ROWS, SUFFIXES, FileProblems, read_rows

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
TABLES_BY_NAME = {name: next(t for t in TABLES if t.name.partition(".")[0] == name) for name in COLUMNS}
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
    if (parse := TABLES_BY_NAME[table].parse) is not None:
        yield from islice(stream_records(path, parse, problems), MAX_ROWS)
