"""Calls to a database whose duration a service logs itself: `Database call completed in 10.01 seconds`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from opsleuth.analysis.records import Finding, LogLine

_CALL = re.compile(
    r"\b(?:database|db|sql|query|queries|statement|transaction|stored procedure|postgres\w*|mysql|mongo\w*|oracle|jdbc)\b"
    r"[^\d]{0,60}?\b(?:took|in|after|duration|elapsed|time)\b\W{0,3}(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?)\b",
    re.IGNORECASE,
)
_POSTGRES = re.compile(r"\bduration: (\d+(?:\.\d+)?) (ms)\b.{0,20}\b(?:statement|execute|parse|bind)")
_HINTS = ("took", " in ", "after", "duration", "elapsed", "time")
# A call that a person waits for loses them after a second (Nielsen); no healthy index lookup comes near it.
SLOW_SECONDS = 1.0
TWICE = 2.0


def parse_call_seconds(message: str) -> float | None:
    """The duration of a database call that the message states, in seconds; None if it states none."""
    if not any(hint in message for hint in _HINTS):
        return None
    found = _CALL.search(message) or _POSTGRES.search(message)
    if found is None:
        return None
    return float(found[1]) / (1000.0 if found[2].lower().startswith("m") else 1.0)


def find_slow_database_calls(lines: Iterable[LogLine], baseline: Iterable[LogLine] = ()) -> list[Finding]:
    """One finding for each service whose median database call takes a second or more, and twice the usual time.

    Size in seconds.
    """
    durations, usual = _durations_by_service(lines), _durations_by_service(baseline)
    slow = {
        service: calls
        for service, calls in durations.items()
        if _median_duration(calls) >= max(SLOW_SECONDS, TWICE * _median_duration(usual.get(service, ())))
    }
    return [_build_slow_call_finding(service, calls) for service, calls in sorted(slow.items())]


def _durations_by_service(lines: Iterable[LogLine]) -> dict[str, list[tuple[float, float | None]]]:
    """The logged database calls of each service as (seconds, time of the line)."""
    durations: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    for line in lines:
        if (duration := parse_call_seconds(line.message)) is not None:
            durations[line.service].append((duration, line.time))
    return dict(durations)


def _median_duration(calls: Sequence[tuple[float, float | None]]) -> float:
    return median(duration for duration, _ in calls) if calls else 0.0


def _build_slow_call_finding(service: str, calls: Sequence[tuple[float, float | None]]) -> Finding:
    durations = [duration for duration, _ in calls]
    times = [time for duration, time in calls if time is not None and duration >= SLOW_SECONDS]
    slow = sum(duration >= SLOW_SECONDS for duration in durations)
    middle, low, high = round(median(durations), 2), min(durations), max(durations)
    return Finding(
        detector="messages",
        signal="logs",
        service=service,
        kind="slow_query",
        size=middle,
        text=(
            f"{slow} of {len(durations)} database calls that {service} logs took {SLOW_SECONDS:g} s or longer: "
            f"median {middle:g} s, {low:g} to {high:g} s."
        ),
        figures={
            "slow": slow,
            "calls": len(durations),
            "limit": SLOW_SECONDS,
            "median": middle,
            "low": low,
            "high": high,
            "unit": "s",
        },
        onset=min(times, default=None),
    )
