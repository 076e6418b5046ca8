"""Times and durations as people write them on the command line, and as they are shown to them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from opsleuth.state.clock import convert_to_utc
from opsleuth.state.local_times import LocalTimes

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_RELATIVE = re.compile(r"now(?:\s*-\s*(\S+))?", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE)
FORMS = "2026-11-29T13:40Z, 2026-11-29T22:40+09:00, 13:40Z, 13:40 (local time), now-30m or 30m"


def parse_duration(text: str) -> timedelta:
    """`90s`, `15m`, `1h30m`, `2d`. Raises ValueError naming the accepted forms."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write 90s, 15m, 1h30m or 2d")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds < 1e9:
        raise ValueError(f"{text!r} is out of range: from above 0s to 11,000d")
    return timedelta(seconds=seconds)


def parse_moment(text: str, now: datetime, local: LocalTimes | None = None) -> datetime:
    """A moment in UTC; `30m` is as long ago. A time without a zone is read as `local` says, by default in this machine's zone.

    Raises ValueError naming the accepted forms.
    """
    local = local or LocalTimes()
    if _DURATION.match(text) and "".join(map("".join, _DURATION.findall(text))) == text:
        return now.astimezone(UTC) - parse_duration(text)
    if relative := _RELATIVE.fullmatch(text):
        back = relative[1]
        return now.astimezone(UTC) - (parse_duration(back) if back else timedelta())
    if _TIME_OF_DAY.fullmatch(text):
        return _latest_time_of_day(text, now, local)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: write {FORMS}") from None
    try:
        return convert_to_utc(moment if moment.tzinfo else local.read(text, moment))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None


def _latest_time_of_day(text: str, now: datetime, local: LocalTimes) -> datetime:
    """The last moment up to `now` at which a clock showed this time of day."""
    clock = f"0{text}" if text[1] == ":" else text
    try:
        moment = datetime.fromisoformat(f"{now.astimezone(UTC):%Y-%m-%d}T{clock.upper()}")
    except ValueError:
        raise ValueError(f"{text!r} is not a time of day: write 13:40Z, 22:40+09:00 or 13:40") from None
    if moment.tzinfo is None:
        here = now.astimezone(local.zone)
        wall = datetime.combine(here.date(), moment.time())
        later = wall.replace(tzinfo=local.zone).astimezone(UTC) > now
        return local.read(text, wall - timedelta(days=1) if later else wall)
    days = (now - moment) // timedelta(days=1)
    return (moment + timedelta(days=days)).astimezone(UTC)


def find_time_zone(name: str) -> tzinfo:
    """The time zone `name`. Raises ValueError with near names."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = [known for known in zoneinfo.available_timezones() if name.lower() in known.lower()]
        hint = f"near: {', '.join(sorted(near)[:4])}" if near else "write a name such as Asia/Tokyo, or UTC"
        raise ValueError(f"{name!r} is not a known time zone; {hint}") from None


@dataclass(frozen=True, slots=True)
class TimeDisplay:
    """How stored times (RFC 3339 text) are shown: in `zone`, named at every clock time. The default is UTC, `Z`."""

    zone: tzinfo = UTC

    def clock(self, text: str | None, *, seconds: bool = True) -> str:
        """`13:58:07Z`, or `22:58:07 JST`."""
        moment = _parse_timestamp(text)
        if moment is None:
            return text or "-"
        local = moment.astimezone(self.zone)
        return f"{local:%H:%M:%S}{self._suffix(local)}" if seconds else f"{local:%H:%M}{self._suffix(local)}"

    def day(self, text: str | None) -> str:
        """`2026-11-29`."""
        moment = _parse_timestamp(text)
        return f"{moment.astimezone(self.zone):%Y-%m-%d}" if moment else text or "-"

    def brief(self, text: str | None) -> str:
        """`11-29 13:58`, for a column whose title names the zone."""
        moment = _parse_timestamp(text)
        return f"{moment.astimezone(self.zone):%m-%d %H:%M}" if moment else text or "-"

    def full(self, text: str | None) -> str:
        """`2026-11-29 13:58:07Z`."""
        return f"{self.day(text)} {self.clock(text)}" if _parse_timestamp(text) else text or "-"

    def span(self, start: str | None, end: str | None) -> str:
        """`13:40Z–14:20Z`, with the days where they differ or seconds where they matter."""
        a, b = _parse_timestamp(start), _parse_timestamp(end)
        if a is None or b is None:
            return f"{start or '?'}–{end or '?'}"
        exact = bool(a.second or b.second)
        left, right = self.clock(start, seconds=exact), self.clock(end, seconds=exact)
        if self.day(start) == self.day(end):
            return f"{left}–{right}"
        return f"{self.day(start)} {left}–{self.day(end)} {right}"

    @property
    def name(self) -> str:
        """What a column title or a heading calls the zone."""
        return "UTC" if self.zone is UTC else str(self.zone)

    def _suffix(self, local: datetime) -> str:
        return "Z" if self.zone is UTC else f" {local:%Z}"


IN_UTC = TimeDisplay()


def _parse_timestamp(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def format_age(text: str | None, now: datetime) -> str:
    """How long ago, in one unit: `12s`, `5h`, `3d`."""
    moment = _parse_timestamp(text)
    if moment is None:
        return "-"
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def format_elapsed(milliseconds: float) -> str:
    """`0.8s`, `12s`, `3m20s`."""
    seconds = milliseconds / 1_000
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    return f"{int(seconds) // 60}m{int(seconds) % 60:02d}s"
