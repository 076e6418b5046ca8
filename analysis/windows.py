"""Which windows of an aggregate tell the usual, which tell the incident.

An aggregate names its windows `baseline` (a fault-free stretch) or by the start of their minute. Rows that we
sum up ourselves are named `baseline`, `before` and `incident`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

BASELINE = "baseline"
BEFORE = "before"
INCIDENT = "incident"

# A fault starts before its alert does. Rows nearer to the onset than this, in seconds, may hold the fault
# already, so that they are no reference of their own.
CLEAR_BEFORE_ONSET = 300.0

_MINUTE = 60.0
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Windows:
    """Names of the windows by what they tell, each in order of time.

    `reference` is the usual state; `before` lies between it and the onset (and may hold the first moments of
    the fault); `incident` is what the alert is about.
    """

    reference: tuple[str, ...]
    before: tuple[str, ...]
    incident: tuple[str, ...]


def start_of(name: str) -> float | None:
    """Start of a window named by its minute (`2022-08-22T03:53Z`), seconds since the epoch, else None."""
    if not _NAME.match(name):
        return None
    parsed = datetime.fromisoformat(name)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def arrange(names: Iterable[str], onset: float | None) -> Windows:
    """Sort window names into reference, before and incident.

    Without an onset, or where every minute ends before it (an alert sent late), the last minute is the
    incident. Without a window `baseline`, minutes well before the onset serve as the reference.
    """
    known = set(names)
    minutes = sorted((start, name) for name in known if (start := start_of(name)) is not None)
    during = [(t, n) for t, n in minutes if onset is not None and t + _MINUTE > onset] or minutes[-1:]
    earlier = [(t, n) for t, n in minutes if (t, n) not in during]
    if BASELINE in known:
        reference, before = [BASELINE], [n for _, n in earlier]
    else:
        limit = (onset if onset is not None else during[0][0] if during else 0.0) - CLEAR_BEFORE_ONSET
        reference = [n for t, n in earlier if t + _MINUTE <= limit]
        before = [n for t, n in earlier if t + _MINUTE > limit]
    before += [BEFORE] if BEFORE in known else []
    incident = [INCIDENT] if INCIDENT in known else [n for _, n in during]
    return Windows(tuple(reference), tuple(before), tuple(incident))


def place(time: float, onset: float) -> str:
    """The window of our own into which a row of the recording at `time` falls."""
    if time >= onset:
        return INCIDENT
    return BEFORE if time > onset - CLEAR_BEFORE_ONSET else BASELINE
