"""What logs and spans measure, over time: the share of failing lines and requests, durations, the rate of lines.

Parts of the stretch are compared with each other: where a course rises for good, or for a while, the trouble began.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from opsleuth.analysis.failure_words import speaks_of_failure
from opsleuth.analysis.line_numbers import LineNumbers
from opsleuth.analysis.records import LogLine, TraceSpan
from opsleuth.analysis.robust_statistics import find_change_point, quantile, robust_spread

MOST_LINES = 20_000
"""Lines that are looked at: of more, every second, third and so on."""
NOTICEABLE = 3.0
ENOUGH = 3
MOST_STRENGTH = 100.0
_BUCKETS = 60
_SHORTEST = 5.0
_FLOOR_SHARE = 0.03
_FLOOR_LEVEL = 0.15
_FIRST_SERVER_ERROR = 500
_STATUS_FIELDS = (
    "status",
    "status_code",
    "statusCode",
    "http_status",
    "response_code",
    "http.response.status_code",
)


@dataclass(frozen=True, slots=True)
class LogSeries:
    """One quantity of a service by time range; `floor` is what its spread is at least, in its unit."""

    service: str
    quantity: str
    times: Sequence[float]
    values: Sequence[float]
    floor: float


@dataclass(frozen=True, slots=True)
class LogSeriesRise:
    """Where a course left its level: the time, the levels before and after, and by how many spreads they differ."""

    course: LogSeries
    time: float
    before: float
    after: float
    strength: float


def find_series_rise(course: LogSeries) -> LogSeriesRise | None:
    """The clearest rise; of a course that fell again, the rise before the fall."""
    times, values = list(course.times), list(course.values)
    while (turn := find_change_point(times, values)) is not None:
        place = times.index(turn)
        before, after = values[:place], values[place:]
        if fmean(after) < fmean(before):
            times, values = times[:place], before
            continue
        if min(len(before), len(after)) < ENOUGH:
            return None
        usual, now = median(before), quantile(_until_fall(times[place:], after), 0.6)
        strength = (now - usual) / robust_spread(before, max(course.floor, _FLOOR_LEVEL * abs(usual)))
        return LogSeriesRise(course, turn, usual, now, min(strength, MOST_STRENGTH)) if strength >= NOTICEABLE else None  # fmt: skip
    return None


def _until_fall(times: Sequence[float], values: Sequence[float]) -> Sequence[float]:
    """The values up to where they fall again, if they do."""
    turn = find_change_point(times, values)
    place = 0 if turn is None else times.index(turn)
    fell = place >= ENOUGH and fmean(values[place:]) < fmean(values[:place])
    return values[:place] if fell else values


def thin_out(lines: Sequence[LogLine], most: int = MOST_LINES) -> Sequence[LogLine]:
    """The lines, or evenly spread ones of them where there are more."""
    return lines if len(lines) <= most else lines[:: -(-len(lines) // most)]


def courses_of_logs(lines: Sequence[LogLine]) -> Iterator[LogSeries]:
    """The courses of each service that has enough lines with a time."""
    timed = [line for line in thin_out(lines) if line.time is not None]
    if len(timed) < 4 * ENOUGH:
        return
    times = [line.time for line in timed if line.time is not None]
    width = bucket_width(min(times), max(times))
    first, last = int(min(times) // width), int(max(times) // width)
    by_service: dict[str, list[LogLine]] = defaultdict(list)
    for line in timed:
        by_service[line.service].append(line)
    for service, own in by_service.items():
        yield from _courses_of_service(service, own, width, range(first, last + 1))


def _courses_of_service(
    service: str, lines: Sequence[LogLine], width: float, buckets: range
) -> Iterator[LogSeries]:
    written: Counter[int] = Counter()
    failing: Counter[int] = Counter()
    answered: Counter[int] = Counter()
    refused: Counter[int] = Counter()
    for line in lines:
        bucket = int((line.time or 0.0) // width)
        written[bucket] += 1
        failing[bucket] += speaks_of_failure(line.message, line.level)
        if (status := status_of(line)) is not None:
            answered[bucket] += 1
            refused[bucket] += status >= _FIRST_SERVER_ERROR
    yield from _share_course(service, "share of failing requests", refused, answered, width)
    if not answered:
        yield from _share_course(service, "share of failing lines", failing, written, width)
    yield from _duration_courses(service, lines, width)
    counts = [float(written[bucket]) for bucket in buckets]
    starts = [bucket * width for bucket in buckets]
    yield LogSeries(service, "lines written", starts, counts, max(1.0, 0.5 * median(counts)))


def _share_course(
    service: str, name: str, part: Counter[int], whole: Counter[int], width: float
) -> Iterator[LogSeries]:
    if part:
        buckets = sorted(whole)
        shares = [part[bucket] / whole[bucket] for bucket in buckets]
        yield LogSeries(service, name, [bucket * width for bucket in buckets], shares, _FLOOR_SHARE)


def _duration_courses(service: str, lines: Sequence[LogLine], width: float) -> Iterator[LogSeries]:
    """The longest duration of each stretch, whatever statement wrote it."""
    numbers = LineNumbers(width)
    for line in lines:
        numbers.add(line)
    longest: dict[float, float] = defaultdict(float)
    for series in numbers.series():
        if series.unit == "ms" and series.metric.startswith("maximum"):
            for time, value in zip(series.times, series.values, strict=True):
                longest[time] = max(longest[time], value)
    if longest:
        times = sorted(longest)
        values = [longest[time] for time in times]
        yield LogSeries(service, "longest duration in ms", times, values, max(1.0, 0.3 * min(values)))


def courses_of_spans(spans: Sequence[TraceSpan]) -> Iterator[LogSeries]:
    """Median duration and share of failed spans of each operation."""
    if len(spans) < 4 * ENOUGH:
        return
    width = bucket_width(min(span.start for span in spans), max(span.start for span in spans))
    groups: dict[tuple[str, str], dict[int, list[TraceSpan]]] = defaultdict(lambda: defaultdict(list))
    for span in spans:
        groups[span.service, span.operation][int(span.start // width)].append(span)
    for (service, operation), cells in groups.items():
        times = [bucket * width for bucket in sorted(cells)]
        rows = [cells[bucket] for bucket in sorted(cells)]
        middle = [median(span.duration_ms for span in row) for row in rows]
        yield LogSeries(service, f"duration of {operation} in ms", times, middle, 1.0)
        failed = [sum(is_failed(span) for span in row) / len(row) for row in rows]
        yield LogSeries(service, f"share of failed {operation}", times, failed, _FLOOR_SHARE)


def is_failed(span: TraceSpan) -> bool:
    """Whether the span's own status says that it failed."""
    status = (span.status or "").lower()
    return status in ("error", "status_code_error", "2") or (len(status) == 3 and status.startswith("5"))


def status_of(line: LogLine) -> int | None:
    """The HTTP status that the line's fields hold."""
    for name in _STATUS_FIELDS if line.extra else ():
        value = (line.extra or {}).get(name)
        if isinstance(value, int | str) and str(value).isdecimal() and 100 <= int(value) < 600:
            return int(value)
    return None


def bucket_width(first: float, last: float) -> float:
    """Seconds of a stretch, so that there are about sixty."""
    return max(_SHORTEST, (last - first) / _BUCKETS)
