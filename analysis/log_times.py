"""Times in logs: every spelling to seconds since the epoch, with a memory for lines of the same second."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from opsleuth.analysis.zone_offsets import ZONE, read_offset

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_MOST_REMEMBERED = 50_000
_DAY = 86_400.0
# Numbers as times: seconds, milliseconds, microseconds or nanoseconds since the epoch, distinguished by size.
_SCALES = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
_BEYOND = 1e19
_NUMBER = re.compile(r"\d{9,19}(?:\.\d{1,9})?")
_ISO = re.compile(
    rf"\[?(\d{{4}}[-/]\d\d[-/]\d\d[T_ ]\d\d:\d\d:\d\d)(?:[.,:](\d{{1,9}}))?(?:\s?({ZONE}))?(?:\[[\w/+-]+\])?"
)

Parts = tuple[int, int, int, int, int, int]
"""Year (0 where none is written), month, day, hour, minute, second."""


def _parse_iso(text: str) -> Parts:
    return (int(text[:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:16]), int(text[17:19]))  # fmt: skip


def _parse_klog(text: str) -> Parts:
    """`1129 14:00:02`."""
    return (0, int(text[:2]), int(text[2:4]), *_parse_clock(text[5:]))


def _parse_android(text: str) -> Parts:
    """`11-29 14:00:02`."""
    return (0, int(text[:2]), int(text[3:5]), *_parse_clock(text[6:]))


def _parse_syslog(text: str) -> Parts:
    """`Nov 29 14:00:02`, also with a year behind the day or the clock, and a weekday before."""
    words = text.split()
    if words[0].lower()[:3] not in _MONTHS:
        words = words[1:]
    month, day, *rest = words
    clock = next(word for word in rest if ":" in word)
    year = next((int(word) for word in rest if word.isdigit() and len(word) == 4), 0)
    return (year, _parse_month(month), int(day), *_parse_clock(clock))


def _day_first(text: str) -> Parts:
    """`29/Nov/2026:14:00:02`, `29-Nov-2026 14:00:02`, `29 Nov 2026 14:00:02`, `29 Nov 14:00:02`."""
    day, month, *rest = re.split(r"[/\-: ]+", text)
    year, *clock = rest if len(rest) == 4 else ("0", *rest)
    return (int(year), _parse_month(month), int(day), int(clock[0]), int(clock[1]), int(clock[2]))


def _parse_american(text: str) -> Parts:
    """`Nov 29, 2026 2:00:02 PM`."""
    month, day, year, clock, half = re.split(r"[, \u202f]+", text)
    hour, minute, second = _parse_clock(clock)
    return (int(year), _parse_month(month), int(day), hour % 12 + (12 if half.upper() == "PM" else 0), minute, second)  # fmt: skip


def _parse_american_slash(text: str) -> Parts:
    """`11/29/2026, 2:00:02 PM`."""
    month, day, year, clock, half = re.split(r"[/, \u202f]+", text)
    hour, minute, second = _parse_clock(clock)
    return (int(year), int(month), int(day), hour % 12 + (12 if half.upper() == "PM" else 0), minute, second)


def _parse_compact(text: str) -> Parts:
    """`261129 14:00:02` and `081109 203615`: two digits of a year."""
    date, clock = text.split()
    parts = _parse_clock(clock) if ":" in clock else (int(clock[:2]), int(clock[2:4]), int(clock[4:6]))
    return (2000 + int(date[:2]), int(date[2:4]), int(date[4:6]), *parts)


def _short_year(text: str) -> Parts:
    """`26/11/29 14:00:02`."""
    return (2000 + int(text[:2]), int(text[3:5]), int(text[6:8]), *_parse_clock(text[9:]))


def _parse_clock(text: str) -> tuple[int, int, int]:
    hour, minute, second = text.split(":")
    return int(hour), int(minute), int(second)


def _parse_month(text: str) -> int:
    return _MONTHS[text.lower()[:3]]


FORMS: Mapping[str, Callable[[str], Parts]] = {
    "iso": _parse_iso,
    "klog": _parse_klog,
    "android": _parse_android,
    "syslog": _parse_syslog,
    "day_first": _day_first,
    "american": _parse_american,
    "american_slash": _parse_american_slash,
    "compact": _parse_compact,
    "short_year": _short_year,
}
"""How the whole seconds of a time are written, by the name that a format declares."""


@dataclass(slots=True)
class TimeTally:
    """What was met that keeps lines without a time, or makes their time a matter of the settings.

    `offsets` are those that were written behind times, in seconds.
    """

    unknown_zones: Counter[str] = field(default_factory=Counter)
    without_zone: int = 0
    offsets: set[float] = field(default_factory=set)


class TimeReader:
    """Reads times; `zone` is that of times without one, `meanings` the offsets of abbreviations by the settings."""

    def __init__(self, zone: tzinfo = UTC, meanings: Mapping[str, float] | None = None) -> None:
        self.zone = zone
        self.tally = TimeTally()
        self._meanings = dict(meanings or {})
        self._remembered: dict[tuple[str, str, str | None, float], float | None] = {}

    def read(
        self, form: str, whole: str, fraction: str | None, zone: str | None, year_of: float
    ) -> float | None:
        """Seconds since the epoch. `year_of` is a time in or after the year of a form without one."""
        if form == "epoch":
            return read_epoch(float(f"{whole}.{fraction}" if fraction else whole))
        key = (form, whole, zone, year_of)
        try:
            seconds = self._remembered[key]
        except KeyError:
            seconds = self._remember(key)
        if zone is None:
            self.tally.without_zone += 1
        elif seconds is None and self._is_unknown(zone):
            self.tally.unknown_zones[zone] += 1
        if seconds is None or not fraction:
            return seconds
        return seconds + int(fraction) / 10.0 ** len(fraction)

    def read_value(self, value: object) -> float | None:
        """The time of a field: a number by its size, a text that is one, an ISO time; an object of seconds and nanos."""
        if isinstance(value, str):
            if found := _ISO.match(value):
                return self.read("iso", found[1], found[2], found[3], 0.0)
            return read_epoch(float(value)) if _NUMBER.fullmatch(value) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return read_epoch(value)
        if isinstance(value, Mapping):
            return self._read_object(value)
        return None

    def _read_object(self, value: Mapping[str, object]) -> float | None:
        inner = next((value[name] for name in ("$date", "$numberLong", "seconds") if name in value), None)
        seconds, nanos = self.read_value(inner), value.get("nanos", 0)
        return seconds + nanos / 1e9 if seconds is not None and isinstance(nanos, int) else seconds

    def _is_unknown(self, zone: str) -> bool:
        return read_offset(zone, self._meanings) is None

    def _remember(self, key: tuple[str, str, str | None, float]) -> float | None:
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[key] = seconds = self._seconds(*key)
        return seconds

    def _seconds(self, form: str, whole: str, zone: str | None, year_of: float) -> float | None:
        offset = None if zone is None else read_offset(zone, self._meanings)
        if zone is not None and offset is None:
            return None
        if offset is not None:
            self.tally.offsets.add(offset)
        where = self.zone if offset is None else timezone(timedelta(seconds=offset))
        try:
            year, *rest = FORMS[form](whole)
            if year:
                return _compute_timestamp(year, rest, where)
            return _find_latest_time(rest, where, year_of)
        except (ValueError, KeyError, OverflowError, StopIteration):
            return None


def _compute_timestamp(year: int, rest: list[int], zone: tzinfo) -> float:
    """A leap second counts as the last of its minute."""
    month, day, hour, minute, second = rest
    moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
    return moment.timestamp() + (second == 60)


def _find_latest_time(rest: list[int], zone: tzinfo, year_of: float) -> float | None:
    """The latest such time that can have been written before `year_of`, give or take a day."""
    last = datetime.fromtimestamp(year_of, zone)
    for year in range(last.year + 1, last.year - 5, -1):
        try:
            moment = _compute_timestamp(year, rest, zone)
        except ValueError:  # the 29th of February
            continue
        if moment <= year_of + _DAY:
            return moment
    return None


def read_epoch(value: float) -> float | None:
    """Seconds since the epoch of a number in seconds, milliseconds, microseconds or nanoseconds; None beyond them."""
    if not math.isfinite(value) or value >= _BEYOND:
        return None
    return next((value / scale for least, scale in _SCALES if value >= least), None)
