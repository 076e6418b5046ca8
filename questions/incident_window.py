"""What a question says about time: the incident window in its own words, in English and Chinese. Never a guess."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from opsleuth.questions.stated_trouble import states_trouble
from opsleuth.state.clock import format_timestamp
from opsleuth.state.errors import UsageError
from opsleuth.state.investigation import Window
from opsleuth.state.local_times import LocalTimes
from opsleuth.verification.quantities import TimeToken, scan_tokens
from opsleuth.verification.written_times import DAY, WrittenTime

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
_OF_DAY = re.compile(r"\s?,?\s?(?:(?:on|of|at|am|um|,)\s)?\s?", re.IGNORECASE)
_DAY_ALONE = re.compile(r"\d{4}-\d{2}-\d{2}")
_OFFSET = re.compile(r"\s?(?:UTC|GMT)?(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?(?![\d:])")
_BEIJING_BEFORE = re.compile(r"北京时间\s?$")
_BEIJING_AFTER = re.compile(r"\s?\(?(?:Beijing time|北京时间)", re.IGNORECASE)
_LOOSE_CLOCK = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2})(?::(?P<m>\d{2}))?\s?(?P<half>am|pm|AM|PM|a\.m\.|p\.m\.)(?P<zone> ?(?:UTC|GMT|Z))?(?![A-Za-z])"
    r"|(?P<day>上午|早上|下午|晚上)?(?P<hh>\d{1,2})(?:点|时(?!间))(?P<mm>\d{1,2})?分?(?P<hhalf>半)?"
)


class ZonelessTimeError(UsageError, ValueError):
    """A time without a zone; the text shows both readings and the accepted forms."""


class _TimeFrame(NamedTuple):
    """Where written times are placed: relative stretches end at `until`; `alerted` if that is an alert's time."""

    until: float
    now: float
    alerted: bool


class _TimeInQuestion(NamedTuple):
    """A written time with its place; `seconds` since the epoch if dated, else since midnight UTC."""

    text: str
    start: int
    end: int
    seconds: float
    dated: bool
    zoned: bool


def window_from_question(
    question: str, *, now: datetime, anchor: datetime | None = None, local: LocalTimes | None = None
) -> Window | None:
    """The window that the question names, or None if it names none.

    `anchor` is the alert's time: relative stretches ("the last half hour") end there, else `now`. `local` says how
    a time without a zone is read; without it such a time raises ZonelessTimeError.
    """
    text = question[:_MAX_QUESTION]
    frame = _TimeFrame((anchor or now).timestamp(), now.timestamp(), anchor is not None)
    times = [
        time if time.zoned else _read_in_local_zone(time, frame, local) for time in _find_written_times(text)
    ]
    since = None if (joint := _find_range_span(text, times, frame)) else _find_since_span(text, times, frame)
    span = joint or since or _find_relative_span(text, frame.until) or _span_around_first_time(times, frame)
    if span is None or not span[0] < span[1]:
        return None
    stated = _utc_datetime(span[0]) if span is since and states_trouble(text) else None
    start, end = map(_utc_datetime, span)
    return Window(start=start, end=end, origin="question", stated_onset=stated)


def _utc_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _find_written_times(text: str) -> list[_TimeInQuestion]:
    """All written times, in order of place."""
    strict = [_time_from_token(text, token) for token in scan_tokens(text) if isinstance(token, TimeToken)]
    taken = [(time.start, time.end) for time in strict]
    loose = [
        time
        for match in _LOOSE_CLOCK.finditer(text)
        if (time := _time_from_loose_clock(text, match))
        and not any(a < time.end and time.start < b for a, b in taken)
    ]
    joined = sorted([*strict, *loose], key=lambda time: time.start)
    return _inherit_zone(text, _join_dates(text, joined))


def _join_dates(text: str, times: Sequence[_TimeInQuestion]) -> list[_TimeInQuestion]:
    """`08:30Z on 2026-10-06` and `2026-10-06 at 08:30Z` as one time: a date alone beside a clock time is its day."""
    found: list[_TimeInQuestion] = []
    for time in times:
        last = found[-1] if found else None
        if last is not None and last.dated != time.dated and _OF_DAY.fullmatch(text[last.end : time.start]):
            day, clock = (last, time) if last.dated else (time, last)
            if _DAY_ALONE.fullmatch(day.text.strip()):
                whole = text[last.start : time.end]
                found[-1] = _TimeInQuestion(
                    whole, last.start, time.end, day.seconds + clock.seconds, dated=True, zoned=clock.zoned
                )
                continue
        found.append(time)
    return found


def _time_from_token(text: str, token: TimeToken) -> _TimeInQuestion:
    moment: WrittenTime = token.moment
    plain = _TimeInQuestion(moment.text, token.start, token.end, moment.seconds, moment.dated, moment.zoned)
    return _with_adjacent_zone(text, plain)


def _with_adjacent_zone(text: str, time: _TimeInQuestion) -> _TimeInQuestion:
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


def _is_range(text: str, time: _TimeInQuestion, offset: re.Match[str]) -> bool:
    """`13:40-14:20` is a range; `13:40 UTC-5` has an offset."""
    return (
        offset["sign"] == "-"
        and not time.zoned
        and not re.match(r"\s?(?:UTC|GMT)", text[time.end : time.end + 5])
    )


def _time_from_loose_clock(text: str, match: re.Match[str]) -> _TimeInQuestion | None:
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
    time = _TimeInQuestion(
        match[0].strip(), match.start(), match.end(), hour * 3600.0 + minute * 60, dated=False, zoned=zoned
    )
    return _with_adjacent_zone(text, time)


def _inherit_zone(text: str, times: list[_TimeInQuestion]) -> list[_TimeInQuestion]:
    """`2pm to 3pm UTC`: the first of a pair has the zone of the second, where that is UTC."""
    for i in range(len(times) - 2, -1, -1):
        first, second = times[i], times[i + 1]
        in_utc = second.zoned and re.search(r"(?:Z|UTC|GMT)$", text[second.start : second.end])
        if in_utc and not first.zoned and _JOINT.fullmatch(text[first.end : second.start]):
            times[i] = first._replace(zoned=True)
    return times


def _read_in_local_zone(
    time: _TimeInQuestion, frame: _TimeFrame, local: LocalTimes | None
) -> _TimeInQuestion:
    """The time as one with a zone. Raises ZonelessTimeError where nobody says in which."""
    if local is None:
        raise ZonelessTimeError(_describe_missing_zone(time, frame))
    if time.dated:
        moment = local.read(time.text, _utc_datetime(time.seconds).replace(tzinfo=None))
        return time._replace(seconds=moment.timestamp(), zoned=True)
    # The day is the one on which this clock time comes nearest, counted with the offset of that day.
    offset = _offset_at(frame.until, local)
    near = _resolve_time(time._replace(seconds=time.seconds - offset), frame)
    wall = _utc_datetime(near + offset).replace(tzinfo=None)
    moment = local.read(time.text, wall)
    return time._replace(seconds=moment.timestamp() % DAY, zoned=True)


def _offset_at(seconds: float, local: LocalTimes) -> float:
    offset = _utc_datetime(seconds).astimezone(local.zone).utcoffset()
    return offset.total_seconds() if offset else 0.0


def _describe_missing_zone(time: _TimeInQuestion, frame: _TimeFrame) -> str:
    utc = _utc_datetime(_resolve_time(time, frame))
    ahead = utc - timedelta(hours=8)
    return (
        f'the time "{time.text}" has no zone: read as UTC it is {format_timestamp(utc)}, at +08:00 it is '
        f"{format_timestamp(ahead)}; write it with its zone, as {utc:%Y-%m-%dT%H:%M}Z or {utc:%Y-%m-%dT%H:%M}+08:00"
    )


def _resolve_time(time: _TimeInQuestion, frame: _TimeFrame) -> float:
    """Seconds since the epoch; a clock time on the day nearest to the alert, else the latest one before now."""
    if time.dated:
        return time.seconds
    if frame.alerted:
        return frame.until + (time.seconds - frame.until + DAY / 2) % DAY - DAY / 2
    return frame.until - (frame.until - time.seconds) % DAY


def _find_range_span(
    text: str, times: list[_TimeInQuestion], frame: _TimeFrame
) -> tuple[float, float] | None:
    for first, second in pairwise(times):
        if _JOINT.fullmatch(text[first.end : second.start]):
            start = _resolve_time(first, frame)
            if not second.dated:
                return start, start + ((second.seconds - start) % DAY or DAY)
            if not first.dated:
                start = second.seconds - ((second.seconds - first.seconds) % DAY or DAY)
            return start, second.seconds
    return None


def _find_since_span(
    text: str, times: list[_TimeInQuestion], frame: _TimeFrame
) -> tuple[float, float] | None:
    for time in times:
        if _SINCE.search(text[max(0, time.start - 24) : time.start]) or _HAN_SINCE.match(text, time.end):
            start = _resolve_time(time, frame)
            return start, frame.until if frame.until > start else frame.now
    return None


def _find_relative_span(text: str, until: float) -> tuple[float, float] | None:
    for pattern in (_LAST, _HAN_LAST, _AGO, _HAN_AGO):
        for match in pattern.finditer(text):
            seconds = _parse_length_seconds(match)
            if 0 < seconds <= 366 * DAY:
                return until - seconds, until
    return None


def _parse_length_seconds(match: re.Match[str]) -> float:
    written = match["n"]
    half = bool(match["half"])
    extra = 0.5 if half or match.groupdict().get("and") else 0.0
    number = _parse_number_word(written) if written else (0.0 if half else 1.0)
    # "half an hour" and "an half hour" are half of one; 一个半小时 is one and a half.
    if half and written in ("a", "an", "one"):
        number = 0.0
    unit = match["unit"].lower()
    return (number + extra) * _SECONDS[unit[0]]


def _parse_number_word(written: str) -> float:
    word = written.lower()
    if word in _NUMBERS:
        return _NUMBERS[word]
    if word[0] not in _HAN:
        return float(word)
    tens, mark, ones = word.rpartition("十")
    if not mark:
        return float(_HAN[word[-1]])
    return 10.0 * (_HAN[tens[-1]] if tens else 1) + (_HAN[ones[0]] if ones else 0)


def _span_around_first_time(times: list[_TimeInQuestion], frame: _TimeFrame) -> tuple[float, float] | None:
    if not times:
        return None
    middle = _resolve_time(times[0], frame)
    return middle - AROUND, min(middle + AROUND, max(frame.until, middle + 60))
