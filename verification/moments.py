"""Times as people and records write them: full stamps, clock times, and what they can mean."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_ZONE = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_STAMP = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})(?:[T ](?P<h>\d{2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    + _ZONE
    + ")?"
)
_CLOCK = re.compile(r"(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:\.(?P<f>\d{1,9}))?)?" + _ZONE)
DAY = 86_400.0


class Moment(NamedTuple):
    """A written time. `seconds` since the epoch where a date was written, else since midnight.

    `grain` is the width of the last written part in seconds (60 for 13:40, 86400 for a date alone);
    `zoned` says whether a zone was written (none: UTC is meant).
    """

    text: str
    seconds: float
    grain: float
    dated: bool
    zoned: bool


def parse_moment(text: str) -> Moment | None:
    """The time that `text` as a whole is, or None: `2026-11-29T13:40Z`, `13:40:07`, `2026-11-29`."""
    if not text[:1].isdigit() or len(text) > 40:
        return None
    match = _STAMP.fullmatch(text) or _CLOCK.fullmatch(text)
    if match is None:
        return None
    try:
        return _moment(text, match.groupdict())
    except ValueError:  # 25:70, 31 February
        return None


def _moment(text: str, part: dict[str, str | None]) -> Moment:
    date = part.get("date")
    clock = timedelta(
        hours=_bounded(part["h"], 24), minutes=_bounded(part["m"], 60), seconds=_bounded(part["s"], 61)
    )
    fraction = float(f"0.{part['f']}") if part["f"] else 0.0
    zone = part["zone"]
    seconds = clock.total_seconds() + fraction - _offset(zone)
    if date:
        seconds += datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()
    return Moment(text, seconds, _grain(part), bool(date), zone is not None)


def _bounded(text: str | None, limit: int) -> int:
    value = int(text or 0)
    if value >= limit:
        raise ValueError(f"{value} is past {limit - 1}")
    return value


def _offset(zone: str | None) -> float:
    if zone is None or not zone[-1].isdigit():
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)


def _grain(part: dict[str, str | None]) -> float:
    if part["h"] is None:
        return DAY
    if part["s"] is None:
        return 60.0
    return 10.0 ** -len(part["f"] or "")


def agrees(written: Moment, seconds: float) -> bool:
    """Whether the moment `seconds` (since the epoch) can be written so: cut or rounded to the written grain."""
    gap = abs(seconds - written.seconds)
    if not written.dated:
        gap = abs((seconds - written.seconds + DAY / 2) % DAY - DAY / 2)
        return gap < written.grain
    if written.grain == DAY:
        return 0 <= seconds - written.seconds < DAY
    return gap < written.grain


def within(written: Moment, start: float, end: float) -> bool:
    """Whether the written time can lie in `[start, end]`, both since the epoch; clock times on any day of it."""
    if written.dated:
        return start - written.grain < written.seconds <= end
    first = start - (start % DAY) - DAY
    days = range(min(int((end - first) // DAY) + 2, 400))
    return any(start - written.grain < first + day * DAY + written.seconds <= end for day in days)


def placed(written: Moment, start: float) -> float:
    """Seconds since the epoch; a clock time on the day that puts it nearest to `start`."""
    if written.dated:
        return written.seconds
    return start + (written.seconds - start + DAY / 2) % DAY - DAY / 2
