"""Calls to a database whose duration a service logs itself: `Database call completed in 10.01 seconds`."""

import re
from collections import defaultdict
from collections.abc import Iterable
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


def seconds(message: str) -> float | None:
    """The duration of a database call that the message states, in seconds; None if it states none."""
    if not any(hint in message for hint in _HINTS):
        return None
    found = _CALL.search(message) or _POSTGRES.search(message)
    if found is None:
        return None
    return float(found[1]) / (1000.0 if found[2].lower().startswith("m") else 1.0)


def find(lines: Iterable[LogLine]) -> list[Finding]:
    """One finding for each service at whose database calls the median takes a second or more; size in seconds."""
    durations: dict[str, list[float]] = defaultdict(list)
    first: dict[str, float] = {}
    for line in lines:
        if (duration := seconds(line.message)) is None:
            continue
        durations[line.service].append(duration)
        if line.time is not None and duration >= SLOW_SECONDS:
            first[line.service] = min(line.time, first.get(line.service, line.time))
    return [
        _finding(service, found, first.get(service))
        for service, found in sorted(durations.items())
        if median(found) >= SLOW_SECONDS
    ]


def _finding(service: str, durations: list[float], onset: float | None) -> Finding:
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
        onset=onset,
    )
