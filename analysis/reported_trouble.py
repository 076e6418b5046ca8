"""The trouble that a question itself reports: which service fails, and since when its own lines of failure show it.

A question names a service and often a time. What that service writes decides when the trouble began; what begins
later anywhere else is not a cause of it, however loud it is. A service that fails from the first line that was read
began before: then nobody knows when, and nothing that was read is the usual state.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from opsleuth.analysis.failure_words import is_plain_level, speaks_of_exception, speaks_of_failure
from opsleuth.analysis.log_series import LogSeries, bucket_width, find_series_rise
from opsleuth.analysis.message_meaning import read_message_meaning, reports_end
from opsleuth.analysis.records import Finding, LogLine, Recording
from opsleuth.state.conclusion_words import FAILED_FROM_FIRST_LINE

DETECTOR = "reported_trouble"

_ENOUGH = 5
# Some failure lines are written every day, but never as large a share of a service's lines as this.
_CHRONIC_SHARE = 0.2
# The same where the question says since when it fails, for lines that plainly report failure.
_STATED_SHARE = 0.05
# Of the time ranges from the first line on, the share in which failing goes on.
_THROUGHOUT_SHARE = 0.5
_FIRST_STRETCHES = 0.1
# A service that fails from the first line on fails among so many of its lines, whatever share of them fails.
_FIRST_LINES = 5
_MOST_FIRST_LINES = 25
# Lines are written after what they report, a time-out later at most; a rise is placed to a time range.
_TOLERANCE_STRETCHES = 2.0
_LEAST_TOLERANCE = 60.0
# People notice late, or round: so far from the stated time a rise still is what they mean.
_NEAR_STATED = 900.0
_LEAST_RATIO = 3.0
_SIZE = 6.0
_QUOTED = 120


@dataclass(frozen=True, slots=True)
class ReportedTrouble:
    """When a service began to fail by its own lines; `throughout`: it failed from the first line that was read.

    `slack` is how much later, in seconds, something may begin and still be no later.
    """

    service: str
    onset: float
    throughout: bool
    failing: int
    written: int
    message: str
    slack: float


def find_reported_trouble(recording: Recording) -> ReportedTrouble | None:
    """The trouble of the service that the question names; without a name, of the one that failed at the stated time.

    None where an alert states the onset, or where the lines show no such failing.
    """
    alert = recording.alert
    if alert.onset is not None:
        return None
    timed = [
        line for line in recording.logs or () if line.time is not None and line.time < recording.window.end
    ]
    if alert.service is not None:
        own = _judge_service(alert.service, timed, recording)
        return own if own is not None and (alert.fired is None or own.onset <= alert.fired) else None
    if alert.stated is None:
        return None
    found = [_judge_service(name, timed, recording) for name in sorted({line.service for line in timed})]
    near = [one for one in found if one and one.onset <= alert.stated + _NEAR_STATED]
    return max(near, key=lambda one: one.failing, default=None)


def _judge_service(service: str, timed: Sequence[LogLine], recording: Recording) -> ReportedTrouble | None:
    own = sorted((line for line in timed if line.service == service), key=_time_of)
    failed = _select_failures(own)
    failing = [_time_of(line) for line in failed]
    if len(failing) < _ENOUGH:
        return None
    first, last = min(map(_time_of, timed)), max(map(_time_of, timed))
    width = bucket_width(first, last)
    slack = max(_LEAST_TOLERANCE, _TOLERANCE_STRETCHES * width)
    onset = _find_rise(service, failing, first, last, width)
    if onset is None and not (
        len(failed) >= _needed_share(failed, recording) * len(own)
        and _fails_among_first(failed, own)
        and _fails_throughout(failing, first, last, width, recording)
    ):
        return None
    since = [line for line in own if onset is None or _time_of(line) >= onset]
    return ReportedTrouble(
        service,
        failing[0] if onset is None else onset,
        onset is None,
        sum(1 for time in failing if onset is None or time >= onset),
        len(since),
        _most_frequent_message(line for line in failed if onset is None or _time_of(line) >= onset),
        slack,
    )


def _time_of(line: LogLine) -> float:
    return line.time or 0.0


def _select_failures(lines: Iterable[LogLine]) -> list[LogLine]:
    """The lines of failure: those that report it plainly, and where there is none of these, those that mention it."""
    failing = [line for line in lines if _is_failing(line)]
    return [line for line in failing if _reports_plainly(line)] or failing


def _reports_plainly(line: LogLine) -> bool:
    """Whether more than a word at the level of ordinary work speaks of failure."""
    return not is_plain_level(line.level) or read_message_meaning(line.message) is not None


def _is_failing(line: LogLine) -> bool:
    return speaks_of_failure(line.message, line.level) and not reports_end(line.message)


def _most_frequent_message(lines: Iterable[LogLine]) -> str:
    counts = Counter(" ".join(line.message.split()) for line in lines)
    return min(counts, key=lambda text: (-counts[text], text), default="")


def _find_rise(
    service: str, failing: Sequence[float], first: float, last: float, width: float
) -> float | None:
    """The first line of failure of the stretch in which they became frequent; None where they did not."""
    buckets = range(int(first // width), int(last // width) + 1)
    counts = Counter(int(time // width) for time in failing)
    values = [float(counts[bucket]) for bucket in buckets]
    rise = find_series_rise(LogSeries(service, "lines of failure", [b * width for b in buckets], values, 0.3))
    if rise is None:
        return None
    place = sum(1 for bucket in buckets if bucket * width < rise.time - width / 2)
    if fmean(values[place:]) < _LEAST_RATIO * fmean(
        values[:place]
    ):  # what failed as often before did not begin
        return None
    return next((time for time in failing if time >= rise.time - width / 2), None)


def _fails_among_first(failed: Sequence[LogLine], own: Sequence[LogLine]) -> bool:
    """Whether the first line of failure is as early as its share of the service's lines makes it."""
    allowed = max(_FIRST_LINES, min(_MOST_FIRST_LINES, round(2 * len(own) / len(failed))))
    return any(line is failed[0] for line in own[:allowed])


def _fails_throughout(
    failing: Sequence[float], first: float, last: float, width: float, recording: Recording
) -> bool:
    """Whether the service fails from the first time range to the last."""
    if recording.alert.fired is not None:
        return False
    stretches = {int((time - first) // width) for time in failing}
    whole = int((last - first) // width) + 1
    begins = min(stretches) <= max(1.0, _FIRST_STRETCHES * whole)
    return begins and len(stretches) >= _THROUGHOUT_SHARE * min(whole, len(failing))


def _needed_share(failed: Iterable[LogLine], recording: Recording) -> float:
    """The share of failing lines that no usual state has; a stated time is no evidence of itself."""
    stated = recording.alert.stated is not None and all(map(_reports_plainly, failed))
    return _STATED_SHARE if stated else _CHRONIC_SHARE


def find_failing_throughout(recording: Recording) -> list[Finding]:
    """A finding where the reported service failed from the first line that was read: its beginning is not recorded."""
    trouble = find_reported_trouble(recording)
    if trouble is None or not trouble.throughout:
        return []
    return [
        Finding(
            detector=DETECTOR,
            signal="logs",
            service=trouble.service,
            kind="exception" if speaks_of_exception(trouble.message) else "errors",
            size=_SIZE,
            text=(
                f"{trouble.service} {FAILED_FROM_FIRST_LINE}: {trouble.failing} of its {trouble.written} lines "
                f'report failure, most often "{trouble.message[:_QUOTED]}"; when it began is not recorded'
            ),
            figures={
                "incident": trouble.failing,
                "lines": trouble.written,
                "unit": "lines",
                "failure": trouble.message[:_QUOTED],
            },
            onset=trouble.onset,
        )
    ]


def split_later_findings(
    recording: Recording, findings: Sequence[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """The findings, and one for each other service that began after the reported trouble: it is not a cause of that."""
    begun = _begin_of_symptom(recording)
    if begun is None:
        return list(findings), []
    service, latest = begun
    meant = service or recording.alert.service
    firsts = _first_failures(recording)
    later = [f for f in findings if f.service != meant and _begins_after(f, latest, firsts)]
    return [f for f in findings if f not in later], _describe_later(service, later, firsts)


def _describe_later(
    service: str | None, later: Sequence[Finding], firsts: Mapping[str, float]
) -> list[Finding]:
    """The largest accusing finding of each service, worded as what rules it out."""
    after = "the time that the question states" if service is None else f"{service} did"
    largest = {f.service: f for f in sorted(later, key=lambda f: f.size) if f.service}
    return [
        replace(
            finding,
            direction="victim",
            text=f"{finding.service} shows trouble only after {after}, so it is not the cause",
            onset=firsts.get(finding.service) if finding.onset is None else finding.onset,
        )
        for finding in reversed(largest.values())
    ]


def _begin_of_symptom(recording: Recording) -> tuple[str | None, float] | None:
    """Whose lines show the reported symptom (None: nobody's), and until when a cause may have begun."""
    if trouble := find_reported_trouble(recording):
        return trouble.service, trouble.onset + trouble.slack
    alert = recording.alert
    if alert.stated is None or alert.onset is not None or alert.service is None:
        return None
    return None, alert.stated + _NEAR_STATED / 2


def _first_failures(recording: Recording) -> dict[str, float]:
    """Since when each service fails by its lines: where they became frequent, else the first of them."""
    timed = [
        line for line in recording.logs or () if line.time is not None and line.time < recording.window.end
    ]
    if not timed:
        return {}
    first, last = min(map(_time_of, timed)), max(map(_time_of, timed))
    width = bucket_width(first, last)
    found = {}
    for service in {line.service for line in timed}:
        failing = sorted(map(_time_of, _select_failures(line for line in timed if line.service == service)))
        if failing:
            rise = _find_rise(service, failing, first, last, width)
            found[service] = failing[0] if rise is None else rise
    return found


def _begins_after(finding: Finding, latest: float, firsts: Mapping[str, float]) -> bool:
    if finding.direction == "healthy" or finding.signal == "changes":
        return False
    onset = finding.onset
    if onset is None and finding.signal == "logs":
        onset = firsts.get(finding.service)
    return onset is not None and onset > latest
