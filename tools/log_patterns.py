"""Kinds of log line that appear more or less often than usual."""

import asyncio
from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis import logdiff
from opsleuth.analysis.onset import with_detected_onset
from opsleuth.analysis.records import Finding, LogPatternCount, Recording
from opsleuth.analysis.time_windows import INCIDENT, ComparisonWindows
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service
from opsleuth.tools.recordings import (
    describe_sampling,
    detect_findings,
    finding_record,
    not_recorded_result,
    read_recording,
    require_service,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec
from opsleuth.tools.truncation import cut_text


class LogsPatternsArguments(Arguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="patterns in each list, 1 to 50")] = 8


async def logs_patterns(arguments: LogsPatternsArguments, context: ToolContext) -> ToolResult:
    recording = await read_recording(context, "logs", "traces", "topology")
    recording = await asyncio.to_thread(with_detected_onset, recording)
    rows = _count_patterns(recording)
    await require_service(context, arguments.service, {row.service for row in rows})
    if arguments.service is not None and not any(row.service == arguments.service for row in rows):
        return not_recorded_result(
            context, "logs", f"no log lines of {arguments.service} that can be compared"
        )
    if not rows:
        return not_recorded_result(context, "logs", "there are no log lines")
    findings = await detect_findings(recording, "logs", arguments.service)
    return await asyncio.to_thread(_compare_patterns, arguments, context, recording, rows, findings)


def _count_patterns(recording: Recording) -> list[LogPatternCount]:
    """Counts by window; where no line has a time of its own, of all lines together."""
    rows = logdiff.count_log_patterns(recording)
    if rows:
        return rows
    counts: Counter[tuple[str, str | None, str]] = Counter()
    for line in recording.logs or ():
        counts[line.service, line.level, line.message] += 1
    return [
        LogPatternCount(INCIDENT, *key, count=count, traces_in_window=None) for key, count in counts.items()
    ]


def _compare_patterns(
    arguments: LogsPatternsArguments,
    context: ToolContext,
    recording: Recording,
    rows: list[LogPatternCount],
    findings: list[Finding],
) -> ToolResult:
    windows = logdiff.compared_windows(rows, recording)
    found = logdiff.group_log_statements(rows)
    services = [arguments.service] if arguments.service else list(found)
    patterns = [_pattern_record(service, s, windows) for service in services for s in found.get(service, ())]
    usual = bool(windows.reference)
    new = [p for p in patterns if usual and p["now"] and not p["usual"]]
    gone = [p for p in patterns if usual and p["usual"] and not p["now"]]
    failing = [p for p in patterns if p["failure"] and (p["now"] or p.get("just_before"))]
    record = {
        "service": arguments.service,
        "window": span_record(recording.window),
        "compared_with": "usual counts" if usual else None,
        "patterns": len(patterns),
        "lines_now": sum(p["now"] for p in patterns),
        "lines_usual": sum(p["usual"] for p in patterns) if usual else None,
        "new": _most_frequent(new, "now", arguments.limit),
        "gone": _most_frequent(gone, "usual", arguments.limit),
        "failing": _most_frequent(failing, "now", arguments.limit),
        "frequent": _most_frequent(patterns, "now", arguments.limit),
        "findings": [finding_record(f) for f in findings[: arguments.limit]],
        "sampling": None if recording.patterns is not None else describe_sampling(context, "logs"),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{format_count(len(patterns), 'pattern')}: {len(new)} new, {len(gone)} gone, {len(failing)} of failure",
        source=source_names(context, "logs"),
        scanned=sum(row.count for row in rows),
        matched=len(patterns),
    )


def _pattern_record(
    service: str, statement: logdiff.LogStatement, windows: ComparisonWindows
) -> dict[str, Any]:
    """Counts now and, where there is a reference, as usual."""
    record = {
        "service": service,
        "pattern": cut_text(statement.counted.name, 240),
        "now": statement.counted.total(windows.incident),
        "failure": statement.failure,
    }
    if windows.before:  # the alert may have been sent after all of it
        record["just_before"] = statement.counted.total(windows.before)
    if windows.reference:
        record["usual"] = statement.counted.total(windows.reference)
    return record


def _most_frequent(patterns: list[dict[str, Any]], key: str, limit: int) -> list[dict[str, Any]]:
    return sorted(patterns, key=lambda p: (-p[key], p["service"], p["pattern"]))[:limit]


PATTERNS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="logs_patterns",
        purpose="Kinds of log line in the incident against usual: new, gone, failing.",
        not_for="Single lines: logs_search.",
        arguments=LogsPatternsArguments,
        example={"service": "checkout"},
        run=logs_patterns,
        bounded_work=True,
        capability="logs",
        target=lambda arguments: arguments.service,
    ),
)
