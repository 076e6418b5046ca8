"""Events of the platform: what Kubernetes, a managed database or the init system reported."""

from collections import Counter
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from opsleuth.analysis.records import PlatformEvent, Span
from opsleuth.state.calls import ResultStatus
from opsleuth.state.words import counted
from opsleuth.tools.arguments import Windowed, zulu
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.reading import (
    finding_record,
    findings_of,
    not_recorded,
    part_of,
    plain,
    read,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.spec import ToolContext, ToolResult, ToolSpec

# What led to an incident (a rollout, a failover, a full volume) is often some hours older than the alert.
LOOK_BACK = timedelta(hours=24)


class EventsList(Windowed):
    about: Annotated[str, Field(max_length=300, description="part of object, reason or message")] = ""
    type: Annotated[Literal["Normal", "Warning"] | None, Field(description="only this type")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="events shown, 1 to 100")] = 20


async def events_list(arguments: EventsList, context: ToolContext) -> ToolResult:
    span = arguments.span(context.window, before=LOOK_BACK)
    recording = await read(context, "events", span=span)
    events = sorted(recording.events or (), key=lambda e: e.time)
    if not events or span.end <= min(e.first_time or e.time for e in events):
        return not_recorded(
            context, "events", "no events recorded for this stretch of time", window=span_record(span)
        )
    found = [e for e in events if _overlaps(e, span) and _matches(e, arguments)]
    findings = [
        f for f in await findings_of(recording, "events") if part_of(arguments.about, f.service, f.text)
    ]
    record = {
        "about": arguments.about,
        "type": arguments.type,
        "window": span_record(span),
        "scanned": len(events),
        "matched": len(found),
        "by_reason": dict(Counter(event.reason for event in found).most_common(10)),
        "not_shown": len(found) - arguments.limit if len(found) > arguments.limit else None,
        "events": [_event(event) for event in found[-arguments.limit :]],
        "findings": [finding_record(finding) for finding in findings[:5]],
    }
    last = found[-1] if found else None
    return ToolResult(
        record=without_empty(record),
        headline=f"{len(found)} of {counted(len(events), 'event')}"
        + (f", the last: {last.reason} {last.object}" if last else ""),
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "events"),
        scanned=len(events),
        matched=len(found),
    )


def _overlaps(event: PlatformEvent, span: Span) -> bool:
    """A repeated event lasts from its first to its last occurrence."""
    return event.time >= span.start and (event.first_time or event.time) < span.end


def _matches(event: PlatformEvent, arguments: EventsList) -> bool:
    if arguments.type and event.type.casefold() != arguments.type.casefold():
        return False
    return part_of(arguments.about, event.object, event.reason, event.message)


def _event(event: PlatformEvent) -> dict[str, Any]:
    record = {
        "time": zulu(event.time),
        "first_time": zulu(event.first_time),
        "count": event.count,
        "source": event.source,
        "object": event.object,
        "type": event.type,
        "reason": event.reason,
        "message": cut_text(event.message, 600),
        "extra": plain(event.extra or {}),
    }
    return without_empty(record)


EVENTS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="events_list",
        purpose="What the platform reported (Kubernetes, managed database, systemd); default: from 24 h before the window.",
        not_for="Changes by people: changes_list. States: objects_get.",
        arguments=EventsList,
        example={"about": "checkout", "type": "Warning"},
        run=events_list,
        capability="events",
        target=lambda arguments: arguments.about or None,
    ),
)
