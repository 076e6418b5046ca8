"""The time of the run's clock, beside the window and the alert."""

from datetime import datetime

from opsleuth.tools.arguments import zulu
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec


class TimeNow(Arguments):
    pass


def _shown(moment: datetime) -> str:
    return zulu(moment.timestamp())


async def time_now(_: TimeNow, context: ToolContext) -> ToolResult:
    now = _shown(context.clock.now())
    record = {
        "now": now,
        "window": {"start": _shown(context.window.start), "end": _shown(context.window.end)},
    }
    subject = context.subject
    if subject and subject.onset:
        record["onset"] = _shown(subject.onset)
    if subject and subject.fired_at:
        record["fired_at"] = _shown(subject.fired_at)
    return ToolResult(record=record, headline=now, source="clock")


TIME_NOW: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="time_now",
        purpose="The present time, the incident window, when the alert began and fired.",
        not_for="Times of events.",
        arguments=TimeNow,
        example={},
        run=time_now,
    ),
)
