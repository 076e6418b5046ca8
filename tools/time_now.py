"""The time of the run's clock, beside the window and the alert."""

from datetime import datetime

from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec


class TimeNowArguments(Arguments):
    pass


def _format_moment(moment: datetime) -> str:
    return format_rfc3339(moment.timestamp())


async def time_now(_: TimeNowArguments, context: ToolContext) -> ToolResult:
    now = _format_moment(context.clock.now())
    record = {
        "now": now,
        "window": {"start": _format_moment(context.window.start), "end": _format_moment(context.window.end)},
    }
    subject = context.subject
    if subject and subject.onset:
        record["onset"] = _format_moment(subject.onset)
    if subject and subject.fired_at:
        record["fired_at"] = _format_moment(subject.fired_at)
    return ToolResult(record=record, headline=now, source="clock")


TIME_NOW: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="time_now",
        purpose="The current time, the incident window, when the alert began and fired.",
        not_for="Times of events.",
        arguments=TimeNowArguments,
        example={},
        run=time_now,
    ),
)
