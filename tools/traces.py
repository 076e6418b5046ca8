"""Traces: operations, calls between services and lost steps, in the incident against usual."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from opsleuth.analysis.latency_levels import CallTimeLevel, compute_call_time_level
from opsleuth.analysis.records import Finding, Recording, TraceSpan
from opsleuth.analysis.span_statistics import SpanStatistics, summarize_spans
from opsleuth.analysis.time_windows import ComparisonWindows
from opsleuth.state.calls import ResultStatus
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service, format_rfc3339
from opsleuth.tools.recordings import (
    describe_sampling,
    detect_findings,
    finding_record,
    not_recorded_result,
    read_recording,
    require_service,
    round_figure,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec
from opsleuth.tools.trace_counts import count_by_edge, count_by_service


class TracesCompareArguments(Arguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="rows in each list, 1 to 50")] = 8


async def traces_compare(arguments: TracesCompareArguments, context: ToolContext) -> ToolResult:
    recording = await read_recording(context, "traces", "topology")
    seen = _traced_services(recording)
    await require_service(context, arguments.service, seen)
    if not seen or (arguments.service is not None and arguments.service not in seen):
        return not_recorded_result(context, "traces", f"no spans of {arguments.service or 'any service'}")
    findings = await detect_findings(recording, "traces", arguments.service)
    return await asyncio.to_thread(_compare_traces, arguments, context, recording, findings)


def _traced_services(recording: Recording) -> set[str]:
    names = {row.service for rows in (recording.spans, recording.span_stats) for row in rows or ()}
    return names | {name for edge in recording.edges or () for name in (edge.caller, edge.callee)}


def _compare_traces(
    arguments: TracesCompareArguments, context: ToolContext, recording: Recording, findings: list[Finding]
) -> ToolResult:
    seen, asked = summarize_spans(recording), arguments.service
    own = [o for o in _operation_levels(seen) if asked in (None, o.first)]
    ways = [w for w in _network_levels(seen) if asked in (None, w.first, w.second)]
    services = count_by_service(seen, summed=recording.span_stats is not None)
    edges = count_by_edge(seen, summed=recording.edges is not None)
    edges = [row for row in edges if asked in (None, row["caller"], row["callee"])]
    gone = [row["service"] for row in services if not row["calls_now"]]
    record = {
        "service": asked,
        "window": span_record(recording.window),
        "operations_compared": len(own),
        "calls_compared": len(ways),
        "operations": [
            _comparison_record(o, "service", "operation", "own_ms") for o in own[: arguments.limit]
        ],
        "between_services": [
            _comparison_record(w, "caller", "callee", "network_ms") for w in ways[: arguments.limit]
        ],
        "services": [row for row in services if asked in (None, row["service"])][: arguments.limit],
        "calls_between": edges[: arguments.limit],
        "no_spans_now": gone[: arguments.limit],
        "status": _count_statuses(recording.spans, asked),
        "status_usual": _count_statuses(recording.spans_baseline, asked),
        "findings": [finding_record(f) for f in findings[: arguments.limit]],
        "rows": "all spans, summed up"
        if recording.span_stats is not None
        else describe_sampling(context, "traces"),
    }
    compared = f"{format_count(len(own), 'operation')}, {format_count(len(ways), 'call')} compared"
    return ToolResult(
        record=without_empty(record),
        headline=findings[0].text if findings else compared,
        status=ResultStatus.OK if own or ways or findings or gone else ResultStatus.NONE_MATCHED,
        source=source_names(context, "traces"),
        scanned=len(recording.span_stats or ()) + len(recording.spans or ()),
        matched=len(own) + len(ways),
    )


class _TracedLevel(NamedTuple):
    """Time per call of an operation (service, operation) or on the way between two services, usual and now."""

    first: str
    second: str
    level: CallTimeLevel


def _operation_levels(seen: SpanStatistics) -> list[_TracedLevel]:
    rows = ((s.service, s.operation, s.window, s.self_ms_p50, s.count) for s in seen.stats)
    return _levels_slowest_first(rows, seen.windows)


def _network_levels(seen: SpanStatistics) -> list[_TracedLevel]:
    rows = ((e.caller, e.callee, e.window, e.network_gap_ms_p50, e.count) for e in seen.edges)
    return _levels_slowest_first(rows, seen.windows)


def _levels_slowest_first(
    rows: Iterable[tuple[str, str, str, float | None, int]], windows: ComparisonWindows
) -> list[_TracedLevel]:
    points: dict[tuple[str, str], dict[str, tuple[float, int]]] = defaultdict(dict)
    for first, second, window, ms, count in rows:
        if ms is not None and count > 0:
            points[first, second][window] = (ms, count)
    levels = ((pair, compute_call_time_level(by_window, windows)) for pair, by_window in points.items())
    found = [_TracedLevel(*pair, measured) for pair, measured in levels if measured is not None]
    return sorted(found, key=lambda c: (-c.level.excess, c.first, c.second))


def _comparison_record(compared: _TracedLevel, first: str, second: str, what: str) -> dict[str, Any]:
    record = {
        first: compared.first,
        second: compared.second,
        f"{what}_usual": round_figure(compared.level.usual),
        f"{what}_now": round_figure(compared.level.now),
        "calls": compared.level.calls,
        "onset": format_rfc3339(compared.level.onset),
    }
    return without_empty(record)


def _count_statuses(spans: Iterable[TraceSpan] | None, service: str | None) -> dict[str, int]:
    """How many spans ended with which status, where spans carry one."""
    chosen = (s for s in spans or () if s.status and service in (None, s.service))
    return dict(Counter(span.status or "" for span in chosen).most_common(8))


TRACES: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="traces_compare",
        purpose="Spans in the incident against usual: calls, errors, times of services and of their calls; what is gone.",
        not_for="Latency over time: metrics_query.",
        arguments=TracesCompareArguments,
        example={"service": "checkout"},
        run=traces_compare,
        capability="traces",
        target=lambda arguments: arguments.service,
    ),
)
