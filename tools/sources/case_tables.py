"""The tables of the case format: which file holds each, what it serves, and how its rows are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opsleuth.tools.sources import case_rows as rows
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.sources.table_files import FileProblems, Row


@dataclass(frozen=True, slots=True)
class CaseTable:
    """One table of a case: file name, capability it serves, field of the recording, row parser (None: metrics)."""

    name: str
    capability: Capability
    field: str
    parse: Callable[[Row, FileProblems], Any] | None = None


TABLES = (
    CaseTable("metrics.csv", "metrics", "metrics"),
    CaseTable("metrics_baseline.csv", "metrics", "metrics_baseline"),
    CaseTable("logs.jsonl", "logs", "logs", rows.parse_log_line),
    CaseTable("logs_baseline.jsonl", "logs", "logs_baseline", rows.parse_log_line),
    CaseTable("log_patterns.csv", "logs", "patterns", rows.parse_pattern_count),
    CaseTable("traces.jsonl", "traces", "spans", rows.parse_trace_span),
    CaseTable("traces_baseline.jsonl", "traces", "spans_baseline", rows.parse_trace_span),
    CaseTable("span_stats.csv", "traces", "span_stats", rows.parse_span_stat),
    CaseTable("edge_latency.csv", "traces", "edges", rows.parse_edge_latency),
    CaseTable("topology.csv", "topology", "topology", rows.parse_dependency),
    CaseTable("changes.jsonl", "changes", "changes", rows.parse_change),
    CaseTable("events.jsonl", "events", "events", rows.parse_platform_event),
    CaseTable("objects.jsonl", "objects", "objects", rows.parse_object_state),
    CaseTable("statements.jsonl", "statements", "statements", rows.parse_statement_load),
)
