"""Traces: operations, calls between services and lost steps, in the incident against usual."""

import asyncio
from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis import edges, operations, spans
from opsleuth.analysis.records import Finding, Recording
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.arguments import Service, zulu
from opsleuth.tools.reading import (
    figure,
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


class TracesCompare(Arguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="rows in each list, 1 to 50")] = 8


async def traces_compare(arguments: TracesCompare, context: ToolContext) -> ToolResult:
    recording = await read(context, "traces", "topology")
    seen = _services(recording)
    await require_service(context, arguments.service, seen)
    if not seen or (arguments.service is not None and arguments.service not in seen):
        return not_recorded(context, "traces", f"no spans of {arguments.service or 'any service'}")
    findings = await findings_of(recording, "traces", arguments.service)
    return await asyncio.to_thread(_compare, arguments, context, recording, findings)


def _services(recording: Recording) -> set[str]:
    names = {row.service for rows in (recording.spans, recording.span_stats) for row in rows or ()}
    return names | {name for edge in recording.edges or () for name in (edge.caller, edge.callee)}


def _compare(
    arguments: TracesCompare, context: ToolContext, recording: Recording, findings: list[Finding]
) -> ToolResult:
    traffic = spans.traffic(recording)
    onset = recording.alert.onset
    asked = arguments.service
    own = [
        o for o in operations.compare(traffic.stats, onset, traffic.floor_ms) if asked in (None, o.service)
    ]
    gaps = [
        g
        for g in edges.compare(traffic.edges, onset, traffic.floor_ms)
        if asked in (None, g.caller, g.callee)
    ]
    slower = sorted(own, key=lambda o: (-o.level.excess, o.service, o.operation))[: arguments.limit]
    wider = sorted(gaps, key=lambda g: (-g.level.excess, g.caller, g.callee))[: arguments.limit]
    record = {
        "service": asked,
        "window": span_record(recording.window),
        "operations_compared": len(own),
        "calls_compared": len(gaps),
        "operations": [_operation(o) for o in slower],
        "between_services": [_gap(g) for g in wider],
        "status": _statuses(recording, asked),
        "findings": [finding_record(f) for f in findings[: arguments.limit]],
        "rows": "all spans, summed up" if recording.span_stats is not None else sampling(context, "traces"),
    }
    rows = len(recording.span_stats or ()) + len(recording.spans or ())
    worst = findings[0].text if findings else f"{len(own)} operations, {len(gaps)} calls: as usual"
    return ToolResult(
        record=without_empty(record),
        headline=worst,
        status=ResultStatus.OK if own or gaps or findings else ResultStatus.NONE_MATCHED,
        source=source_names(context, "traces"),
        scanned=rows,
        matched=len(own) + len(gaps),
    )


def _operation(own: operations.OwnTime) -> dict[str, Any]:
    record = {
        "service": own.service,
        "operation": own.operation,
        "own_ms_usual": figure(own.level.usual),
        "own_ms_now": figure(own.level.now),
        "calls": own.level.calls,
        "onset": zulu(own.level.onset),
    }
    return without_empty(record)


def _gap(gap: edges.Gap) -> dict[str, Any]:
    record = {
        "caller": gap.caller,
        "callee": gap.callee,
        "network_ms_usual": figure(gap.level.usual),
        "network_ms_now": figure(gap.level.now),
        "calls": gap.level.calls,
        "onset": zulu(gap.level.onset),
    }
    return without_empty(record)


def _statuses(recording: Recording, service: str | None) -> dict[str, int]:
    """How many spans ended with which status, where spans carry one."""
    chosen = (s for s in recording.spans or () if s.status and service in (None, s.service))
    return dict(Counter(span.status or "" for span in chosen).most_common(8))


TRACES: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="traces_compare",
        purpose="Spans in the incident against usual: own time per operation, network time between services, lost steps.",
        not_for="Latency as a metric over time: use metrics_query.",
        arguments=TracesCompare,
        example={"service": "checkout"},
        run=traces_compare,
        capability="traces",
        target=lambda arguments: arguments.service,
    ),
)
