"""Which windows of an aggregate show the usual state, and which the incident.

An aggregate names its windows `baseline` (a fault-free stretch) or by the start of their minute. Rows that we
sum up ourselves are named by the minutes between them and the onset (`-7 min`), so that nothing depends on
where the clock's minutes begin.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

BASELINE = "baseline"
# Rows of the recording itself that have no time.
INCIDENT = "incident"

# A fault starts before its alert does. Rows nearer to the onset than this, in seconds, may hold the fault
# already, so that they are not a reference of their own.
CLEAR_BEFORE_ONSET = 300.0

_MINUTE = 60.0
# Seconds by which sums of times since 1970 may be off.
_ROUNDING = 1e-3
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_RELATIVE = re.compile(r"([+-]\d+) min")


@dataclass(frozen=True, slots=True)
class ComparisonWindows:
    """Names of the windows by what they tell, each in order of time.

    `reference` is the usual state; `earlier` the recording long before the onset, beside a reference of its
    own; `before` the minutes just before it, which may hold the first moments of the fault; `incident` is what
    the alert is about. `starts` are seconds since the epoch, of those that have a time.
    """

    reference: tuple[str, ...]
    earlier: tuple[str, ...]
    before: tuple[str, ...]
    incident: tuple[str, ...]
    starts: Mapping[str, float]


def parse_window_start(name: str, onset: float) -> float | None:
    """Start of a window, seconds since the epoch; None for one without a time."""
    if relative := _RELATIVE.fullmatch(name):
        return onset + _MINUTE * int(relative.group(1))
    if not _NAME.match(name):
        return None
    parsed = datetime.fromisoformat(name)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def classify_windows(names: Iterable[str], onset: float) -> ComparisonWindows:
    """Sort window names by what they tell.

    Where every minute ends before the onset (an alert sent late), the last minute is the incident. Without a window `baseline`, minutes well before the onset serve as the reference.
    """
    known = set(names)
    starts = {name: start for name in known if (start := parse_window_start(name, onset)) is not None}
    minutes = sorted(starts, key=lambda name: (starts[name], name))
    begin = min(onset, starts[minutes[-1]]) if minutes else onset
    incident = [name for name in minutes if starts[name] + _MINUTE > begin + _ROUNDING]
    clear = [name for name in minutes if starts[name] + _MINUTE <= begin - CLEAR_BEFORE_ONSET + _ROUNDING]
    before = [name for name in minutes if name not in {*incident, *clear}]
    incident += [INCIDENT] if INCIDENT in known else []
    reference, earlier = ([BASELINE], clear) if BASELINE in known else (clear, [])
    return ComparisonWindows(tuple(reference), tuple(earlier), tuple(before), tuple(incident), starts)


def window_name_at(time: float, onset: float) -> str:
    """The window of our own into which a row of the recording at `time` falls."""
    return f"{math.floor((time - onset) / _MINUTE):+d} min"
