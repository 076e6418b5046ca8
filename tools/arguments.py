"""The argument types that tools share, and the one form in which records show times."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self, overload

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from opsleuth.analysis.records import TimeRange
from opsleuth.state.clock import convert_to_utc, format_timestamp
from opsleuth.state.investigation import Window
from opsleuth.tools.spec import Arguments, InvalidArgumentsError


@overload
def format_rfc3339(seconds: float) -> str: ...
@overload
def format_rfc3339(seconds: float | None) -> str | None: ...
def format_rfc3339(seconds: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339 UTC, with milliseconds only where there are some."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(round(seconds, 3), UTC)
    precision = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def read_time(text: str) -> datetime:
    """A time with a zone. Raises PydanticCustomError that shows the accepted form, or both readings of a zone-less one."""
    try:
        moment = datetime.fromisoformat(text)
        if "T" not in text.upper():
            raise ValueError(text)  # noqa: TRY301 - a date alone is the same mistake
    except ValueError:
        raise PydanticCustomError(
            "time", "is not a time: write RFC 3339 with a zone, such as 2024-05-01T14:00:00Z"
        ) from None
    if moment.tzinfo is None:
        local = f"{text}+08:00"
        raise PydanticCustomError(
            "zoneless",
            "has no zone: write {utc} if it is UTC, or add the offset; read at +08:00 it would be {shifted}",
            {"utc": f"{text}Z", "shifted": format_rfc3339(datetime.fromisoformat(local).timestamp())},
        )
    try:
        return convert_to_utc(moment)
    except ValueError as error:
        raise PydanticCustomError(
            "time", "is not a possible incident time: {why}", {"why": str(error)}
        ) from None


def _normalize_time(text: str) -> str:
    return format_rfc3339(read_time(text).timestamp())


Moment = Annotated[
    str, AfterValidator(_normalize_time), WithJsonSchema({"type": "string", "format": "date-time"})
]
Service = Annotated[str, Field(min_length=1, max_length=300, description="exact service name")]


class WindowedArguments(Arguments):
    """Arguments of a tool that looks at a time range; without one, at the incident window."""

    since: Annotated[Moment | None, Field(description="from; default: window start")] = None
    until: Annotated[Moment | None, Field(description="before; default: window end")] = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.since and self.until and read_time(self.until) <= read_time(self.since):
            raise PydanticCustomError("order", "until must be after since")
        return self

    def span(self, window: Window, before: timedelta = timedelta()) -> TimeRange:
        """The stretch asked for; without `since` it begins `before` the window.

        Raises InvalidArgumentsError if only one end was given and the window contradicts it.
        """
        start = read_time(self.since) if self.since else window.start - before
        end = read_time(self.until) if self.until else window.end
        if end <= start:
            raise InvalidArgumentsError(
                f"since {format_timestamp(start)} is not before until {format_timestamp(end)}: "
                "an end that is not given is the incident window's, so give both"
            )
        return TimeRange(start.timestamp(), end.timestamp())
