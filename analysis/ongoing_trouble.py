"""Trouble that still runs at the end of the window goes before an older one that has healed, however large that was.

Only where neither an alert nor the question states a time: then the one that runs is what a person has to act on.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean, median

from opsleuth.analysis.failure_words import is_plain_level, speaks_of_failure
from opsleuth.analysis.log_series import ENOUGH, LogSeries, LogSeriesRise, find_series_rise
from opsleuth.analysis.message_meaning import read_message_meaning, reports_end
from opsleuth.analysis.past_questions import asks_about_past
from opsleuth.analysis.records import AlertFacts, Finding, LogLine, Recording
from opsleuth.state.plurals import format_count

DETECTOR = "earlier_trouble"
MOST_STRETCHES = 2
_MOST_RISES = 5
# Of the height of a rise, what is left of it where it still runs.
_LEFT = 0.5
# Time ranges at the end of the window that show whether it still runs.
_LAST = 3
# Times the usual distance of two lines of failure: after a longer pause they are another stretch.
_PAUSES = 8.0
_LEAST_PAUSE = 180.0
_ENOUGH_LINES = 5
# A stretch that covers more of the time before is how the service always is.
_CHRONIC = 0.7
_QUOTED = 120


def is_time_stated(alert: AlertFacts) -> bool:
    """Whether the alert or the question says when it was."""
    return not (alert.onset is None and alert.fired is None and alert.stated is None)


def list_rises(course: LogSeries) -> Iterator[LogSeriesRise]:
    """The rises of a course: the clearest, and after one that fell again those that came later."""
    for _ in range(_MOST_RISES):
        rise = find_series_rise(course)
        if rise is None:
            return
        yield rise
        healed = _find_end(course, rise)
        if healed is None:
            return
        course = replace(course, times=course.times[healed:], values=course.values[healed:])


def is_ongoing(rise: LogSeriesRise) -> bool:
    """Whether the course is still up at its end."""
    last = fmean(rise.course.values[-_LAST:])
    return last - rise.before >= _LEFT * (rise.after - rise.before)


def _find_end(course: LogSeries, rise: LogSeriesRise) -> int | None:
    """The place from which the course is back at its former level for as long as makes a level; None where it is not."""
    level = rise.before + (1 - _LEFT) * (rise.after - rise.before)
    start = next((i for i, time in enumerate(course.times) if time >= rise.time), len(course.times))
    for place in range(start + 1, len(course.values) - ENOUGH + 1):
        if all(value < level for value in course.values[place : place + ENOUGH]):
            return place
    return None


def find_earlier_troubles(recording: Recording, onset: float | None) -> list[Finding]:
    """Stretches of failing lines that ended before the onset, the longest first; none where a time was stated."""
    alert = recording.alert
    if onset is None or is_time_stated(alert) or asks_about_past(alert, alert.service or ""):
        return []
    timed = sorted(
        (line for line in recording.logs or () if line.time is not None and line.time < onset), key=_time_of
    )
    failing = [line for line in timed if _reports_failure(line)]
    found = [
        _describe_failing_period(service, stretch)
        for service in sorted({line.service for line in failing})
        for stretch in _split_failing_periods([line for line in failing if line.service == service])
        if _is_over(stretch, timed, onset)
    ]
    return sorted(found, key=lambda f: -int(f.figures["lines"]))[:MOST_STRETCHES]


def _time_of(line: LogLine) -> float:
    return line.time or 0.0


def _reports_failure(line: LogLine) -> bool:
    if not speaks_of_failure(line.message, line.level) or reports_end(line.message):
        return False
    return not is_plain_level(line.level) or read_message_meaning(line.message) is not None


def _split_failing_periods(lines: Sequence[LogLine]) -> Iterator[list[LogLine]]:
    gaps = [_time_of(b) - _time_of(a) for a, b in pairwise(lines)]
    longest = max(_LEAST_PAUSE, _PAUSES * median(gaps)) if gaps else _LEAST_PAUSE
    stretch: list[LogLine] = []
    for line in lines:
        if stretch and _time_of(line) - _time_of(stretch[-1]) > longest:
            yield stretch
            stretch = []
        stretch.append(line)
    if stretch:
        yield stretch


def _is_over(stretch: Sequence[LogLine], timed: Sequence[LogLine], onset: float) -> bool:
    """Whether the service went on writing after the stretch and before the onset, and it was not how it always is."""
    if len(stretch) < _ENOUGH_LINES:
        return False
    first, last = _time_of(stretch[0]), _time_of(stretch[-1])
    went_on = sum(1 for line in timed if line.service == stretch[0].service and _time_of(line) > last)
    whole = onset - _time_of(timed[0])
    return onset - last > _LEAST_PAUSE and went_on >= ENOUGH and last - first < _CHRONIC * whole


def _describe_failing_period(service: str, stretch: Sequence[LogLine]) -> Finding:
    messages = Counter(" ".join(line.message.split())[:_QUOTED] for line in stretch)
    message = min(messages, key=lambda text: (-messages[text], text))
    first, last = _time_of(stretch[0]), _time_of(stretch[-1])
    lines = format_count(len(stretch), f"line of failure of {service}", f"lines of failure of {service}")
    return Finding(
        detector=DETECTOR,
        signal="logs",
        service=service,
        kind="errors",
        size=0.0,
        text=f'Earlier, healed at {_format_time(last)}: {lines} since {_format_time(first)}, such as "{message}"',
        figures={"lines": len(stretch), "message": message, "healed": _format_time(last)},
        onset=first,
        direction="victim",
    )


def _format_time(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
