"""What a question says about time: the incident window in its own words, in English and Chinese. Never a guess."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import NamedTuple

from opsleuth.state.clock import stamp
from opsleuth.state.investigation import Window
from opsleuth.verification.moments import DAY, Moment
from opsleuth.verification.quantities import When, scan

# A single moment ("failed at 14:03Z") stands for what happened around it, in seconds on either side.
AROUND = 1800.0
_MAX_QUESTION = 20_000

_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty-five": 45,
}  # fmt: skip
_HAN = {c: i for i, c in enumerate("零一二三四五六七八九十")} | {"两": 2}
_SECONDS = {
    "s": 1, "秒": 1, "m": 60, "分": 60, "刻": 900, "h": 3600, "小": 3600, "钟": 3600, "d": 86400, "天": 86400,
    "日": 86400, "w": 604800, "周": 604800,
}  # fmt: skip
_AMOUNT = (
    r"(?:(?P<n>\d{1,5}(?:\.\d{1,3})?|"
    + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    + r")(?:[ -]?(?=\D)))?"
    r"(?P<half>half[ -]?(?:an?[ -])?)?"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?)(?P<and> and a half)?\b"
)
_LAST = re.compile(rf"\b(?:last|past|previous|recent)\s+{_AMOUNT}", re.IGNORECASE)
_AGO = re.compile(rf"\b{_AMOUNT} ago\b", re.IGNORECASE)
_HAN_AMOUNT = (
    r"(?P<n>\d{1,5}(?:\.\d{1,3})?|[零一二两三四五六七八九十]{1,3})?\s?个?(?P<half>半)?个?"
    r"(?P<unit>秒钟?|分钟|刻钟|小时|钟头|天|日|周)"
)
_HAN_LAST = re.compile(rf"(?:最近|过去|近|这|前)(?:的|这)?\s?{_HAN_AMOUNT}(?!之?前|以前)")
_HAN_AGO = re.compile(rf"{_HAN_AMOUNT}(?:之|以)?前")
_SINCE = re.compile(
    r"(?:\b(?:since|from|after|starting(?: at)?|as of)(?: about| around)?|自从?|从|打从)\s?$", re.IGNORECASE
)
_HAN_SINCE = re.compile(r"\s?(?:以来|之后|以后|开始|起)")
_JOINT = re.compile(r"\s?(?:-|–|—|~|～|to|and|until|till|through|至|到|和)\s?", re.IGNORECASE)
_OFFSET = re.compile(r"\s?(?:UTC|GMT)?(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?(?![\d:])")
_BEIJING_BEFORE = re.compile(r"北京时间\s?$")
_BEIJING_AFTER = re.compile(r"\s?\(?(?:Beijing time|北京时间)", re.IGNORECASE)
_LOOSE_CLOCK = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2})(?::(?P<m>\d{2}))?\s?(?P<half>am|pm|AM|PM|a\.m\.|p\.m\.)(?P<zone> ?(?:UTC|GMT|Z))?(?![A-Za-z])"
    r"|(?P<day>上午|早上|下午|晚上)?(?P<hh>\d{1,2})(?:点|时(?!间))(?P<mm>\d{1,2})?分?(?P<hhalf>半)?"
)


class ZonelessTime(ValueError):
    """A time without a zone; the text shows both readings and the accepted forms."""


class _Frame(NamedTuple):
    """Where written times are placed: relative stretches end at `until`; `alerted` if that is an alert's time."""

    until: float
    now: float
    alerted: bool


class _Time(NamedTuple):
    """A written time with its place; `seconds` since the epoch if dated, else since midnight UTC."""

    text: str
    start: int
    end: int
    seconds: float
    dated: bool
    zoned: bool


def window_of(
    question: str, *, now: datetime, anchor: datetime | None = None, local: tzinfo = UTC
) -> Window | None:
    """The window that the question names, or None if it names none.

    `anchor` is the alert's time: relative stretches ("the last half hour") end there, else `now`. `local` is the
    operator's zone, used only to show the second reading. Raises ZonelessTime.
    """
    text = question[:_MAX_QUESTION]
    frame = _Frame((anchor or now).timestamp(), now.timestamp(), anchor is not None)
    times = _times(text)
    for time in times:
        if not time.zoned:
            raise ZonelessTime(_both_readings(time, frame, local))
    span = (
        _range(text, times, frame)
        or _since(text, times, frame)
        or _relative(text, frame.until)
        or _around(times, frame)
    )
    if span is None or not span[0] < span[1]:
        return None
    return Window(start=_moment(span[0]), end=_moment(span[1]), origin="question")


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _times(text: str) -> list[_Time]:
    """All written times, in order of place."""
    strict = [_zoned(text, token) for token in scan(text) if isinstance(token, When)]
    taken = [(time.start, time.end) for time in strict]
    loose = [
        time
        for match in _LOOSE_CLOCK.finditer(text)
        if (time := _loose(text, match)) and not any(a < time.end and time.start < b for a, b in taken)
    ]
    joined = sorted([*strict, *loose], key=lambda time: time.start)
    return _inherit_zone(text, joined)


def _zoned(text: str, token: When) -> _Time:
    moment: Moment = token.moment
    plain = _Time(moment.text, token.start, token.end, moment.seconds, moment.dated, moment.zoned)
    return _with_zone(text, plain)


def _with_zone(text: str, time: _Time) -> _Time:
    """The time with a zone that stands beside it: `UTC+8`, `+08:00`, 北京时间."""
    offset = _OFFSET.match(text, time.end)
    if offset and (not time.zoned or time.text[-1] in "CT"):
        seconds = (int(offset["h"]) * 3600 + int(offset["m"] or 0) * 60) * (
            -1 if offset["sign"] == "-" else 1
        )
        if not _is_range(text, time, offset):
            return time._replace(end=offset.end(), seconds=time.seconds - seconds, zoned=True)
    if not time.zoned:
        after = _BEIJING_AFTER.match(text, time.end)
        if after or _BEIJING_BEFORE.search(text[max(0, time.start - 8) : time.start]):
            end = after.end() if after else time.end
            return time._replace(end=end, seconds=time.seconds - 8 * 3600, zoned=True)
    return time


def _is_range(text: str, time: _Time, offset: re.Match[str]) -> bool:
    """`13:40-14:20` is a range; `13:40 UTC-5` has an offset."""
    return (
        offset["sign"] == "-"
        and not time.zoned
        and not re.match(r"\s?(?:UTC|GMT)", text[time.end : time.end + 5])
    )


def _loose(text: str, match: re.Match[str]) -> _Time | None:
    hour, minute = (
        int(match["h"] or match["hh"]),
        int(match["m"] or match["mm"] or (30 if match["hhalf"] else 0)),
    )
    late = (match["half"] or "").lower().startswith("p") or match["day"] in ("下午", "晚上")
    early = (match["half"] or "").lower().startswith("a")
    if hour > 23 or minute > 59:
        return None
    if (late and hour < 12) or (early and hour == 12):
        hour = (hour + 12) % 24
    zoned = bool(match["zone"])
    time = _Time(
        match[0].strip(), match.start(), match.end(), hour * 3600.0 + minute * 60, dated=False, zoned=zoned
    )
    return _with_zone(text, time)


def _inherit_zone(text: str, times: list[_Time]) -> list[_Time]:
    """`2pm to 3pm UTC`: the first of a pair has the zone of the second, where that is UTC."""
    for i in range(len(times) - 2, -1, -1):
        first, second = times[i], times[i + 1]
        in_utc = second.zoned and re.search(r"(?:Z|UTC|GMT)$", text[second.start : second.end])
        if in_utc and not first.zoned and _JOINT.fullmatch(text[first.end : second.start]):
            times[i] = first._replace(zoned=True)
    return times


def _both_readings(time: _Time, frame: _Frame, local: tzinfo) -> str:
    utc = _placed(time, frame)
    wall = _moment(utc).replace(tzinfo=local)
    own = wall.astimezone(UTC)
    zone = wall.strftime("%z")
    offset = f"{zone[:3]}:{zone[3:5]}" if wall.utcoffset() else "+08:00"
    if not wall.utcoffset():
        own = _moment(utc) - timedelta(hours=8)
    return (
        f'the time "{time.text}" has no zone: read as UTC it is {stamp(_moment(utc))}, at {offset} it is '
        f"{stamp(own)}; write it with its zone, as {_moment(utc):%Y-%m-%dT%H:%M}Z or "
        f"{_moment(utc):%Y-%m-%dT%H:%M}{offset}"
    )


def _placed(time: _Time, frame: _Frame) -> float:
    """Seconds since the epoch; a clock time on the day nearest to the alert, else the latest one before now."""
    if time.dated:
        return time.seconds
    if frame.alerted:
        return frame.until + (time.seconds - frame.until + DAY / 2) % DAY - DAY / 2
    return frame.until - (frame.until - time.seconds) % DAY


def _range(text: str, times: list[_Time], frame: _Frame) -> tuple[float, float] | None:
    for first, second in pairwise(times):
        if _JOINT.fullmatch(text[first.end : second.start]):
            start = _placed(first, frame)
            if not second.dated:
                return start, start + ((second.seconds - start) % DAY or DAY)
            if not first.dated:
                start = second.seconds - ((second.seconds - first.seconds) % DAY or DAY)
            return start, second.seconds
    return None


def _since(text: str, times: list[_Time], frame: _Frame) -> tuple[float, float] | None:
    for time in times:
        if _SINCE.search(text[max(0, time.start - 24) : time.start]) or _HAN_SINCE.match(text, time.end):
            start = _placed(time, frame)
            return start, frame.until if frame.until > start else frame.now
    return None


def _relative(text: str, until: float) -> tuple[float, float] | None:
    for pattern in (_LAST, _HAN_LAST, _AGO, _HAN_AGO):
        for match in pattern.finditer(text):
            seconds = _length(match)
            if 0 < seconds <= 366 * DAY:
                return until - seconds, until
    return None


def _length(match: re.Match[str]) -> float:
    written = match["n"]
    half = bool(match["half"])
    extra = 0.5 if half or match.groupdict().get("and") else 0.0
    number = _value(written) if written else (0.0 if half else 1.0)
    # "half an hour" and "an half hour" are half of one; 一个半小时 is one and a half.
    if half and written in ("a", "an", "one"):
        number = 0.0
    unit = match["unit"].lower()
    return (number + extra) * _SECONDS[unit[0]]


def _value(written: str) -> float:
    word = written.lower()
    if word in _NUMBERS:
        return _NUMBERS[word]
    if word[0] not in _HAN:
        return float(word)
    tens, mark, ones = word.rpartition("十")
    if not mark:
        return float(_HAN[word[-1]])
    return 10.0 * (_HAN[tens[-1]] if tens else 1) + (_HAN[ones[0]] if ones else 0)


def _around(times: list[_Time], frame: _Frame) -> tuple[float, float] | None:
    if not times:
        return None
    middle = _placed(times[0], frame)
    return middle - AROUND, min(middle + AROUND, max(frame.until, middle + 60))
