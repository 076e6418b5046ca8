"""Changes: what people and pipelines did before and during the incident."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import ServiceChange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service, WindowedArguments, format_rfc3339
from opsleuth.tools.recordings import (
    is_within_span,
    not_recorded_result,
    read_recording,
    require_service,
    source_names,
    span_record,
    to_plain_json,
    without_empty,
)
from opsleuth.tools.spec import ToolContext, ToolResult, ToolSpec
from opsleuth.tools.truncation import cut_text

# A change works with its first traffic or its first full disk; a day covers a release and the night after it.
LOOK_BACK = timedelta(hours=24)
WIDEST_DIFF = 3_000


class ChangesListArguments(WindowedArguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=100, description="changes shown, 1 to 100")] = 20


async def changes_list(arguments: ChangesListArguments, context: ToolContext) -> ToolResult:
    span = arguments.span(context.window, before=LOOK_BACK)
    recording = await read_recording(context, "changes", span=span)
    changes = sorted(recording.changes or (), key=lambda c: c.time)
    await require_service(context, arguments.service, (c.service for c in changes))
    if not changes or span.end <= changes[0].time:
        return not_recorded_result(
            context, "changes", "no change history for this time range", window=span_record(span)
        )
    found = [c for c in changes if is_within_span(c.time, span) and arguments.service in (None, c.service)]
    onset = recording.alert.onset
    record = {
        "service": arguments.service,
        "window": span_record(span),
        "scanned": len(changes),
        "matched": len(found),
        "onset": format_rfc3339(onset),
        "not_shown": len(found) - arguments.limit if len(found) > arguments.limit else None,
        "changes": [_change_record(change, onset) for change in found[-arguments.limit :]],
    }
    last = found[-1] if found else None
    return ToolResult(
        record=without_empty(record),
        headline=format_count(len(found), "change")
        + (f", the last: {last.kind} of {last.service} {format_rfc3339(last.time)}" if last else ""),
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "changes"),
        scanned=len(changes),
        matched=len(found),
    )


def _change_record(change: ServiceChange, onset: float | None) -> dict[str, Any]:
    record = {
        "time": format_rfc3339(change.time),
        "service": change.service,
        "kind": change.kind,
        "version": change.version,
        "author": change.author,
        "summary": change.summary,
        "minutes_before_onset": round((onset - change.time) / 60, 1) if onset is not None else None,
        "diff": cut_text(change.diff or "", WIDEST_DIFF),
        "extra": to_plain_json(change.extra or {}),
    }
    return without_empty(record)


CHANGES: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="changes_list",
        purpose="Deploys, config, flag and scale changes, migrations; default: from 24 h before the window.",
        not_for="The platform's own doings: events_list.",
        arguments=ChangesListArguments,
        example={"service": "checkout"},
        run=changes_list,
        capability="changes",
        target=lambda arguments: arguments.service,
    ),
)
