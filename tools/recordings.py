"""Shared code of tools that read from the sources of a run: one recording, names that exist, coverage."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from opsleuth.analysis.records import Finding, Recording, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.json_types import JSON
from opsleuth.state.nearest_name import find_nearest_names
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources.incident_file import alert_facts_from_alert
from opsleuth.tools.sources.memory_source import FIELDS, ROWS
from opsleuth.tools.sources.source_protocols import Capability, Source
from opsleuth.tools.spec import InvalidArgumentsError, ToolContext, ToolError, ToolResult

EVERYTHING: tuple[Capability, ...] = tuple(FIELDS)


def window_span(context: ToolContext) -> TimeRange:
    """The incident window of the run."""
    return TimeRange(*context.window.seconds)


async def read_recording(
    context: ToolContext, *capabilities: Capability, span: TimeRange | None = None, lenient: bool = False
) -> Recording:
    """The rows of all sources that serve the capabilities, as one recording with the run's own alert and window.

    What a source fails to tell is noted in the context's trail, and the rest is used; but where no source of the
    first capability answers (`lenient`: none of any), its error is raised. Raises ToolError, TimeoutError.
    """
    window = span or window_span(context)
    wanted = [(source, c) for c in dict.fromkeys(capabilities) for source in context.sources.serving(c)]
    parts = await gather_or_cancel(_read_source(source, c, window) for source, c in wanted)
    failed = [(c, part) for (_, c), part in zip(wanted, parts, strict=True) if isinstance(part, Exception)]
    found = [(c, part) for (_, c), part in zip(wanted, parts, strict=True) if isinstance(part, Recording)]
    needed = set(capabilities if lenient else capabilities[:1])
    if not any(c in needed for c, _ in found):
        for error in (error for c, error in failed if c in needed):
            raise error
    for (source, c), part in zip(wanted, parts, strict=True):
        if isinstance(part, Exception):
            context.trail.missed[f"{source.name} ({c})"] = str(part)
        elif part.missed:
            context.trail.missed[f"{source.name} ({c})"] = "; ".join(part.missed)
    recordings = [part for _, part in found]
    context.trail.asked += [line for part in recordings for line in part.asked]
    fields = (*ROWS, "runbooks")
    rows: dict[str, Any] = {
        field: _join_rows([getattr(part, field) for part in recordings]) for field in fields
    }
    alert = alert_facts_from_alert(context.subject)
    stated = context.window.stated_onset
    return Recording(
        alert=replace(alert, stated=stated.timestamp() if stated else None), window=window, **rows
    )


async def _read_source(
    source: Source, capability: Capability, window: TimeRange
) -> Recording | ToolError | TimeoutError:
    try:
        return await source.read([capability], window)
    except (ToolError, TimeoutError) as error:
        return error


def _join_rows(lists: Iterable[Sequence[Any] | None]) -> Sequence[Any] | None:
    present = [rows for rows in lists if rows is not None]
    if len(present) <= 1:
        return present[0] if present else None
    return [row for rows in present for row in rows]


def source_names(context: ToolContext, *capabilities: Capability) -> str:
    """The names of the sources behind the capabilities, joined by `+`."""
    return "+".join(dict.fromkeys(s.name for c in capabilities for s in context.sources.serving(c)))


def describe_sampling(context: ToolContext, capability: Capability) -> str | None:
    """What the sources say about their rows being a sample only."""
    said = [s.sampling for s in context.sources.serving(capability) if s.sampling]
    return "; ".join(said)[:300] or None


async def require_service(context: ToolContext, service: str | None, seen: Iterable[str]) -> None:
    """Refuse a service that no source knows; `seen` are the names among the rows at hand.

    Raises InvalidArgumentsError that names the nearest known ones. Other sources are read only if the rows at hand
    and the names that sources know by heart do not hold the service.
    """
    if service is None:
        return
    known = set(seen)
    for source in context.sources.by_name.values():
        known |= source.services
    if service not in known:
        known |= collect_service_names(await read_recording(context, *EVERYTHING, lenient=True))
    if service not in known:
        near = find_nearest_names(service, known, 5)
        hint = f"nearest: {', '.join(near)}" if near else "topology and metrics_list show which there are"
        raise InvalidArgumentsError(f"no source knows a service {service!r} ({hint})")


def collect_service_names(recording: Recording) -> set[str]:
    """Every name in the recording by which a service can be asked for."""
    names: set[str] = {row.service for field in _WITH_SERVICE for row in getattr(recording, field) or ()}
    names |= {name for edge in recording.topology or () for name in (edge.caller, edge.callee)}
    names |= {name for pair in recording.edges or () for name in (pair.caller, pair.callee)}
    names |= {row.database for row in recording.statements or ()}
    names |= {row.name for row in recording.objects or ()}
    names |= {row.object.rpartition("/")[2] for row in recording.events or ()}
    if recording.alert.service:
        names.add(recording.alert.service)
    return names - {""}


_WITH_SERVICE = (
    "metrics",
    "metrics_baseline",
    "logs",
    "logs_baseline",
    "patterns",
    "spans",
    "spans_baseline",
    "span_stats",
    "changes",
)


def span_record(span: TimeRange) -> dict[str, str | None]:
    return {"start": format_rfc3339(span.start), "end": format_rfc3339(span.end)}


def is_within_span(time: float | None, span: TimeRange) -> bool:
    return time is not None and span.start <= time < span.end


def any_text_contains(part: str, *texts: str) -> bool:
    """Whether one of the texts holds `part`, in any case; the empty part is in all."""
    return any(part.casefold() in text.casefold() for text in texts)


def round_figure(value: float | None) -> float | None:
    """A number in six significant digits, as records show it; whole numbers stay whole."""
    if value is None:
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


async def detect_findings(recording: Recording, signal: str, service: str | None = None) -> list[Finding]:
    """What the detectors say about one kind of signal, the next of each detector in turn: sizes compare inside one.

    In a thread, so that a long recording does not hold up the other calls.
    """
    from opsleuth.analysis.ranking import (
        run_detectors,  # all detectors: loaded by the first call that needs them
    )

    found = await asyncio.to_thread(run_detectors, recording)
    by_detector: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        if finding.signal == signal and service in (None, finding.service):
            by_detector[finding.detector].append(finding)
    rows = zip_longest(*by_detector.values())
    return [finding for row in rows for finding in row if finding is not None]


async def measure_impact(recording: Recording, service: str) -> list[dict[str, Any]]:
    """The failing requests and the latency of the service, whether they moved or not."""
    from opsleuth.analysis.service_impact import measure_service_impact

    return [
        without_empty(
            {
                "service": service,
                "respect": one.respect,
                "measure": one.measure,
                "usual": round_figure(one.usual),
                "now": round_figure(one.now),
                "unit": one.unit,
                "onset": format_rfc3339(one.onset),
                "text": one.text,
            }
        )
        for one in await asyncio.to_thread(measure_service_impact, recording, service)
    ]


def finding_record(finding: Finding) -> dict[str, Any]:
    """A detector's finding as JSON, without what is empty."""
    record = {
        "service": finding.service,
        "kind": finding.kind,
        "text": finding.text,
        "size": round_figure(finding.size),
        "direction": finding.direction,
        "detector": finding.detector,
        "signal": finding.signal,
        "metric": finding.metric,
        "onset": format_rfc3339(finding.onset),
        "figures": to_plain_json(finding.figures),
    }
    return without_empty(record)


def to_plain_json(value: JSON) -> JSON:
    """The value as JSON: floats shortened to six significant digits, non-finite ones to null, tuples to lists."""
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return round_figure(value) if value - value == 0.0 else None
    if isinstance(value, Mapping):
        return {str(k): to_plain_json(v) for k, v in value.items()}
    if isinstance(value, Iterable):
        return [to_plain_json(v) for v in value]
    return str(value)


def without_empty(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without fields that are None, empty texts, lists or objects; zeros and false stay."""
    return {k: v for k, v in record.items() if v is not None and v not in ("", [], {})}


def not_recorded_result(
    context: ToolContext, capability: Capability, why: str, **fields: object
) -> ToolResult:
    """No such data, or the window is not covered: supports no claim of absence."""
    record = {"not_recorded": why, "window": span_record(window_span(context)), **fields}
    return ToolResult(
        record=without_empty(record),
        headline=f"not recorded: {why}",
        status=ResultStatus.NOT_RECORDED,
        source=source_names(context, capability),
    )
