"""What a search of log lines is asked for, and how its request and its lines appear in the record."""

from typing import Annotated, Any, Literal

from pydantic import Field

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.tools.arguments import Moment, Service, WindowedArguments, format_rfc3339
from opsleuth.tools.recordings import span_record, without_empty
from opsleuth.tools.truncation import cut_text

WIDEST_LINE = 400


class LogsSearchArguments(WindowedArguments):
    service: Service | None = None
    pod: Annotated[str, Field(max_length=300, description="name, or its beginning")] = ""
    previous: Annotated[bool | None, Field(description="of the run before a restart")] = None
    around: Annotated[
        Moment | None,
        Field(description="nearest lines to this time; text only marks"),
    ] = None
    text: Annotated[str, Field(max_length=300, description="in message or pod name, any case")] = ""
    level: Annotated[Literal["debug", "info", "warn", "error"] | None, Field(description="this or worse")] = (
        None
    )
    baseline: Annotated[bool, Field(description="the fault-free period instead")] = False
    limit: Annotated[int, Field(ge=1, le=100, description="lines shown, 1 to 100")] = 12


def describe_search(arguments: LogsSearchArguments, span: TimeRange | None) -> dict[str, Any]:
    """The request as it appears in the record."""
    return {
        "service": arguments.service,
        "pod": arguments.pod,
        "previous": arguments.previous,
        "around": arguments.around,
        "text": arguments.text,
        "level": arguments.level,
        "window": span_record(span) if span else "baseline",
    }


def format_search(arguments: LogsSearchArguments) -> str:
    """The request in one line."""
    parts = [
        f"service={arguments.service}" if arguments.service else "",
        f"pod={arguments.pod}" if arguments.pod else "",
        f"around={arguments.around}" if arguments.around else "",
        f"level>={arguments.level}" if arguments.level else "",
    ]
    parts += [
        f'"{arguments.text}"' if arguments.text else "",
        "in the baseline" if arguments.baseline else "",
    ]
    return " ".join(part for part in parts if part)


def make_line_record(line: LogLine, arguments: LogsSearchArguments) -> dict[str, Any]:
    """A line as it appears in the record."""
    marked = arguments.around is not None and arguments.text
    record = {
        "time": format_rfc3339(line.time),
        "service": line.service,
        "pod": line.pod,
        "namespace": line.namespace,
        "host": line.host,
        "level": line.level,
        "previous": line.previous or None,
        "message": cut_text(line.message, WIDEST_LINE),
        "trace_id": line.trace_id,
        "extra": dict(line.extra or {}),
        "marked": (arguments.text.casefold() in line.message.casefold() or None) if marked else None,
    }
    return without_empty(record)
