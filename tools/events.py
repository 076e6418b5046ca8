"""Events of the platform: what Kubernetes, a managed database or the init system reported."""

from collections import Counter
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from opsleuth.analysis.records import PlatformEvent, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import WindowedArguments, format_rfc3339
from opsleuth.tools.recordings import (
    any_text_contains,
    detect_findings,
    finding_record,
    not_recorded_result,
    read_recording,
    source_names,
    span_record,
    to_plain_json,
    without_empty,
)
from opsleuth.tools.spec import ToolContext, ToolResult, ToolSpec
from opsleuth.tools.truncation import cut_text

# What led to an incident (a rollout, a failover, a full volume) is often some hours older than the alert.
LOOK_BACK = timedelta(hours=24)


class EventsListArguments(WindowedArguments):
    about: Annotated[str, Field(max_length=300, description="part of object, reason or message")] = ""
    type: Annotated[Literal["Normal", "Warning"] | None, Field(description="only this type")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="events shown, 1 to 100")] = 20


async def events_list(arguments: EventsListArguments, context: ToolContext) -> ToolResult:
    span = arguments.span(context.window, before=LOOK_BACK)
    recording = await read_recording(context, "events", span=span)
    events = sorted(recording.events or (), key=lambda e: e.time)
    if not events or span.end <= min(e.first_time or e.time for e in events):
        return not_recorded_result(
            context, "events", "no events recorded for this time range", window=span_record(span)
        )
    found = [e for e in events if _overlaps_span(e, span) and _matches_filter(e, arguments)]
    findings = [
        f
        for f in await detect_findings(recording, "events")
        if any_text_contains(arguments.about, f.service, f.text)
    ]
    record = {
        "about": arguments.about,
        "type": arguments.type,
        "window": span_record(span),
        "scanned": len(events),
        "matched": len(found),
        "by_reason": dict(Counter(event.reason for event in found).most_common(10)),
        "not_shown": len(found) - arguments.limit if len(found) > arguments.limit else None,
        "events": [_event_record(event) for event in found[-arguments.limit :]],
        "findings": [finding_record(finding) for finding in findings[:5]],
    }
    last = found[-1] if found else None
    return ToolResult(
        record=without_empty(record),
        headline=f"{len(found)} of {format_count(len(events), 'event')}"
        + (f", the last: {last.reason} {last.object}" if last else ""),
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "events"),
        scanned=len(events),
        matched=len(found),
    )


def _overlaps_span(event: PlatformEvent, span: TimeRange) -> bool:
    """A repeated event lasts from its first to its last occurrence."""
    return event.time >= span.start and (event.first_time or event.time) < span.end


def _matches_filter(event: PlatformEvent, arguments: EventsListArguments) -> bool:
    if arguments.type and event.type.casefold() != arguments.type.casefold():
        return False
    return any_text_contains(arguments.about, event.object, event.reason, event.message)


def _event_record(event: PlatformEvent) -> dict[str, Any]:
    record = {
        "time": format_rfc3339(event.time),
        "first_time": format_rfc3339(event.first_time),
        "count": event.count,
        "source": event.source,
        "object": event.object,
        "type": event.type,
        "reason": event.reason,
        "message": cut_text(event.message, 600),
        "extra": to_plain_json(event.extra or {}),
    }
    return without_empty(record)


EVENTS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="events_list",
        purpose="What the platform reported (Kubernetes, managed database, systemd); default: from 24 h before the window.",
        not_for="Changes by people: changes_list. States: object_view.",
        arguments=EventsListArguments,
        example={"about": "checkout", "type": "Warning"},
        run=events_list,
        capability="events",
        target=lambda arguments: arguments.about or None,
    ),
)
