"""The time of the run's clock, beside the window and the alert."""

from opsleuth.state.clock import stamp
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec


class TimeNow(Arguments):
    pass


async def time_now(_: TimeNow, context: ToolContext) -> ToolResult:
    now = stamp(context.clock.now())
    record = {"now": now, "window": {"start": stamp(context.window.start), "end": stamp(context.window.end)}}
    subject = context.subject
    if subject and subject.onset:
        record["onset"] = stamp(subject.onset)
    if subject and subject.fired_at:
        record["fired_at"] = stamp(subject.fired_at)
    return ToolResult(record=record, headline=now, source="clock")


TIME_NOW: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="time_now",
        purpose="The present time, the incident window, when the alert began and fired.",
        not_for="Times of events: they are in the evidence.",
        arguments=TimeNow,
        example={},
        run=time_now,
    ),
)
