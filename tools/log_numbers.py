"""Numbers inside log lines as series, for the tools that read metrics: named by the statement that wrote them."""

import asyncio
from collections.abc import Sequence

from opsleuth.analysis.line_numbers import number_series
from opsleuth.analysis.log_series import bucket_width, thin_out
from opsleuth.analysis.records import LogLine, MetricSeries, TimeRange
from opsleuth.tools.recordings import read_recording
from opsleuth.tools.spec import ToolContext

MOST_LINES = 100_000
"""Lines that are looked at: of more, every second, third and so on."""

_EVEN_WIDTHS = (5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)


async def read_number_series(
    context: ToolContext, service: str | None, span: TimeRange | None = None
) -> list[MetricSeries]:
    """The series inside the log lines of a service, or of all; empty where no source serves logs.

    Raises ToolError, TimeoutError where nothing but logs could tell, and they could not be read.
    """
    if not context.sources.serving("logs"):
        return []
    recording = await read_recording(context, "metrics", "logs", span=span, lenient=True)
    lines = [line for line in recording.logs or () if service in (None, line.service)]
    return await asyncio.to_thread(_measure_lines, lines)


def _measure_lines(lines: Sequence[LogLine]) -> list[MetricSeries]:
    timed = [line for line in thin_out(lines, MOST_LINES) if line.time is not None]
    times = [line.time for line in timed if line.time is not None]
    return number_series(timed, _round_width(bucket_width(min(times), max(times)))) if times else []


def _round_width(width: float) -> float:
    """The next stretch that divides minutes, hours or days, so that times of samples are easy to read."""
    return next((even for even in _EVEN_WIDTHS if even >= width), width)
