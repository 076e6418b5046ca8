"""Times as people and records write them: full stamps, clock times, and what they can mean."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_OFFSETS = {
    "Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "CET": 1, "WEST": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "MST": -7, "PDT": -7,
    "PST": -8,
}  # fmt: skip
"""Hours before UTC of the zones whose letters mean one thing; the others (CST, IST) are not read."""
ZONE = "|".join(sorted(_OFFSETS, key=len, reverse=True)) + r"|(?:UTC|GMT)?[+-]\d{2}:?\d{2}"
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_ZONE_GROUP = rf"(?: ?(?P<zone>{ZONE}))?"
_STAMP = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})(?:[T ](?P<h>\d{2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    + _ZONE_GROUP
    + ")?"
)
_MAIL_STAMP = re.compile(
    rf"(?P<day>\d{{1,2}}) (?P<month>{MONTHS}) (?P<year>\d{{4}}),? (?P<h>\d{{2}}):(?P<m>\d{{2}})(?::(?P<s>\d{{2}}))?(?P<f>(?!))?"
    + _ZONE_GROUP
)
"""The date of RFC 2822 (`20 Jun 2026 13:47:00 +0200`), its weekday left out."""
_CLOCK = re.compile(r"(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:\.(?P<f>\d{1,9}))?)?" + _ZONE_GROUP)
DAY = 86_400.0


class WrittenTime(NamedTuple):
    """A written time. `seconds` since the epoch where a date was written, else since midnight.

    `grain` is the width of the last written part in seconds (60 for 13:40, 86400 for a date alone);
    `zoned` says whether a zone was written (none: UTC is meant).
    """

    text: str
    seconds: float
    grain: float
    dated: bool
    zoned: bool


def parse_written_time(text: str) -> WrittenTime | None:
    """The time that `text` as a whole is, or None: `2026-11-29T13:40Z`, `13:40:07`, `2026-11-29`."""
    if not text[:1].isdigit() or len(text) > 40:
        return None
    match = _STAMP.fullmatch(text) or _MAIL_STAMP.fullmatch(text) or _CLOCK.fullmatch(text)
    if match is None:
        return None
    try:
        return _written_time_from_parts(text, match.groupdict())
    except ValueError:  # 25:70, 31 February
        return None


def _written_time_from_parts(text: str, part: dict[str, str | None]) -> WrittenTime:
    date = part.get("date") or _date_of_mail_stamp(part)
    clock = timedelta(
        hours=_parse_bounded_int(part["h"], 24),
        minutes=_parse_bounded_int(part["m"], 60),
        seconds=_parse_bounded_int(part["s"], 61),
    )
    fraction = float(f"0.{part['f']}") if part["f"] else 0.0
    zone = part["zone"]
    seconds = clock.total_seconds() + fraction - _zone_offset_seconds(zone)
    if date:
        seconds += datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()
    return WrittenTime(text, seconds, _grain_seconds(part), bool(date), zone is not None)


def _date_of_mail_stamp(part: dict[str, str | None]) -> str | None:
    if not part.get("month"):
        return None
    month = MONTHS.split("|").index(str(part["month"])) + 1
    return f"{part['year']}-{month:02}-{int(part['day'] or 0):02}"


def _parse_bounded_int(text: str | None, limit: int) -> int:
    value = int(text or 0)
    if value >= limit:
        raise ValueError(f"{value} is past {limit - 1}")
    return value


def _zone_offset_seconds(zone: str | None) -> float:
    if zone is None:
        return 0.0
    if zone in _OFFSETS:
        return _OFFSETS[zone] * 3600.0
    digits = zone.removeprefix("UTC").removeprefix("GMT")
    sign = -1 if digits[0] == "-" else 1
    return sign * (int(digits[1:3]) * 3600 + int(digits[-2:]) * 60)


def _grain_seconds(part: dict[str, str | None]) -> float:
    if part["h"] is None:
        return DAY
    if part["s"] is None:
        return 60.0
    return 10.0 ** -len(part["f"] or "")


def matches_written_time(written: WrittenTime, seconds: float) -> bool:
    """Whether the moment `seconds` (since the epoch) can be written so: cut or rounded to the written grain."""
    gap = abs(seconds - written.seconds)
    if not written.dated:
        gap = abs((seconds - written.seconds + DAY / 2) % DAY - DAY / 2)
        return gap < written.grain
    if written.grain == DAY:
        return 0 <= seconds - written.seconds < DAY
    return gap < written.grain


def may_lie_in_window(written: WrittenTime, start: float, end: float) -> bool:
    """Whether the written time can lie in `[start, end]`, both since the epoch; clock times on any day of it."""
    if written.dated:
        return start - written.grain < written.seconds <= end
    first = start - (start % DAY) - DAY
    days = range(min(int((end - first) // DAY) + 2, 400))
    return any(start - written.grain < first + day * DAY + written.seconds <= end for day in days)


def resolve_written_time(written: WrittenTime, start: float) -> float:
    """Seconds since the epoch; a clock time on the day that puts it nearest to `start`."""
    if written.dated:
        return written.seconds
    return start + (written.seconds - start + DAY / 2) % DAY - DAY / 2
