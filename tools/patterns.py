"""Kinds of log line: which come more or less often than usual."""

import asyncio
from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis import logdiff
from opsleuth.analysis.onset import moment_of
from opsleuth.analysis.records import Finding, PatternCount, Recording
from opsleuth.analysis.windows import INCIDENT, Windows, arrange
from opsleuth.state.words import counted
from opsleuth.tools.arguments import Service
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.reading import (
    finding_record,
    findings_of,
    not_recorded,
    read,
    require_service,
    sampling,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec


class LogsPatterns(Arguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="patterns in each list, 1 to 50")] = 8


async def logs_patterns(arguments: LogsPatterns, context: ToolContext) -> ToolResult:
    recording = await read(context, "logs", "traces", "topology")
    rows = _pattern_rows(recording)
    await require_service(context, arguments.service, {row.service for row in rows})
    if arguments.service is not None and not any(row.service == arguments.service for row in rows):
        return not_recorded(context, "logs", f"no log lines of {arguments.service} that can be compared")
    if not rows:
        return not_recorded(context, "logs", "there are no log lines")
    findings = await findings_of(recording, "logs", arguments.service)
    return await asyncio.to_thread(_compare, arguments, context, recording, rows, findings)


def _pattern_rows(recording: Recording) -> list[PatternCount]:
    """Counts by window; where no line has a time of its own, of all lines together."""
    rows = logdiff.pattern_counts(recording)
    if rows:
        return rows
    counts: Counter[tuple[str, str | None, str]] = Counter()
    for line in recording.logs or ():
        counts[line.service, line.level, line.message] += 1
    return [PatternCount(INCIDENT, *key, count=count, traces_in_window=None) for key, count in counts.items()]


def _compare(
    arguments: LogsPatterns,
    context: ToolContext,
    recording: Recording,
    rows: list[PatternCount],
    findings: list[Finding],
) -> ToolResult:
    windows = arrange((row.window for row in rows), moment_of(recording))
    found = logdiff.statements(rows)
    services = [arguments.service] if arguments.service else list(found)
    patterns = [_pattern(service, s, windows) for service in services for s in found.get(service, ())]
    usual = bool(windows.reference)
    new = [p for p in patterns if usual and p["now"] and not p["usual"]]
    gone = [p for p in patterns if usual and p["usual"] and not p["now"]]
    failing = [p for p in patterns if p["failure"] and p["now"]]
    record = {
        "service": arguments.service,
        "window": span_record(recording.window),
        "compared_with": "usual counts" if usual else None,
        "patterns": len(patterns),
        "lines_now": sum(p["now"] for p in patterns),
        "lines_usual": sum(p["usual"] for p in patterns) if usual else None,
        "new": _most(new, "now", arguments.limit),
        "gone": _most(gone, "usual", arguments.limit),
        "failing": _most(failing, "now", arguments.limit),
        "frequent": _most(patterns, "now", arguments.limit),
        "findings": [finding_record(f) for f in findings[: arguments.limit]],
        "sampling": None if recording.patterns is not None else sampling(context, "logs"),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{counted(len(patterns), 'pattern')}: {len(new)} new, {len(gone)} gone, {len(failing)} of failure",
        source=source_names(context, "logs"),
        scanned=sum(row.count for row in rows),
        matched=len(patterns),
    )


def _pattern(service: str, statement: logdiff.Statement, windows: Windows) -> dict[str, Any]:
    """Counts now and, where there is a reference, as usual."""
    record = {
        "service": service,
        "pattern": cut_text(statement.counted.name, 240),
        "now": statement.counted.total(windows.incident),
        "failure": statement.failure,
    }
    if windows.reference:
        record["usual"] = statement.counted.total(windows.reference)
    return record


def _most(patterns: list[dict[str, Any]], key: str, limit: int) -> list[dict[str, Any]]:
    return sorted(patterns, key=lambda p: (-p[key], p["service"], p["pattern"]))[:limit]


PATTERNS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="logs_patterns",
        purpose="Kinds of log line in the incident against usual: new, gone, failing.",
        not_for="Single lines: logs_search.",
        arguments=LogsPatterns,
        example={"service": "checkout"},
        run=logs_patterns,
        capability="logs",
        target=lambda arguments: arguments.service,
    ),
)
