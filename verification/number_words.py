"""Numbers that are written out in English, German or Chinese: `two` to `nine hundred and ninety-nine`, dozens, fractions."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SMALL = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ONES = {"one": 1, **{word: value for word, value in _SMALL.items() if value < 10}}
_GERMAN_ONES = {
    "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9,
}  # fmt: skip
_GERMAN_TENS = {
    "zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70, "achtzig": 80, "neunzig": 90,
}  # fmt: skip
_GERMAN = {
    **_GERMAN_ONES,
    "zehn": 10, "elf": 11, "zwölf": 12, "dreizehn": 13, "vierzehn": 14, "fünfzehn": 15, "sechzehn": 16,
    "siebzehn": 17, "achtzehn": 18, "neunzehn": 19,
    **_GERMAN_TENS,
    **{f"{one}und{ten}": a + b for one, a in {"ein": 1, **_GERMAN_ONES}.items() for ten, b in _GERMAN_TENS.items()},
}  # fmt: skip
_CHINESE_DIGITS = {"二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "一": 1}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000}
_FRACTIONS = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1}
_FRACTION_STEP = 0.07
"""How wide a fraction in words is, as a share: `a third` is said of 30 to 36 per cent."""


class NumberPhrase(NamedTuple):
    """A number in words; `step` is the width of what may be written so, `share` whether it is a part of something."""

    text: str
    start: int
    end: int
    value: float
    step: float = 1.0
    share: bool = False


def _join_alternatives(words: Mapping[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_BELOW_HUNDRED = rf"(?:(?:{_join_alternatives(_TENS)})(?:[- ](?:{_join_alternatives(_ONES)}))?|{_join_alternatives(_SMALL)})"
_EDGE = r"(?<![\w./:@#-])"
_END = r"(?![\w/:@#]|-(?!second|minute|hour|day|fold|millisecond|percent))"
_ENGLISH = re.compile(
    rf"{_EDGE}(?:(?P<hundreds>a|{_join_alternatives(_ONES)}) hundred(?:(?: and)? (?P<rest>{_BELOW_HUNDRED}))?"
    rf"|(?P<plain>{_BELOW_HUNDRED})(?P<thousand> thousand)?(?P<dozens> dozen)?"
    rf"|(?P<dozen>half a|a) dozen)(?P<half> and a half)?{_END}",
    re.IGNORECASE,
)
_PART = re.compile(
    rf"{_EDGE}(?:(?P<number>an?|one|two|three|four) (?P<part>thirds?|quarters?|fifths?|tenths?)(?= of\b)"
    r"|(?P<half>half)(?= (?:of|the|its|their|all|as)\b))",
    re.IGNORECASE,
)
_HALF_UNIT = re.compile(rf"{_EDGE}half an?(?= (?:second|minute|hour|day)\b)", re.IGNORECASE)
_GERMAN_NUMBER = re.compile(rf"{_EDGE}(?:{_join_alternatives(_GERMAN)}){_END}", re.IGNORECASE)
_CHINESE_NUMBER = re.compile(r"(?<![一二两三四五六七八九十百千第之])[一二两三四五六七八九十百千]+(?=倍|次|个|条|台|秒|分钟|小时|毫秒|天)")  # fmt: skip
_CHINESE_PART = re.compile(r"(?P<below>[二三四五六七八九十])分之(?P<above>[一二三四五六七八九])|一半")


def find_number_phrases(text: str) -> Iterator[NumberPhrase]:
    """The numbers of `text` that are written out; `one` is not read, since it mostly counts nothing."""
    parts = [*_find_parts(text)]
    yield from parts
    taken = [(phrase.start, phrase.end) for phrase in parts]
    for phrase in _find_whole_numbers(text):
        if not any(start <= phrase.start < end for start, end in taken):
            yield phrase


def _find_parts(text: str) -> Iterator[NumberPhrase]:
    for match in _PART.finditer(text):
        part = "half" if match["half"] else match["part"].lower().rstrip("s")
        times = _ONES.get((match["number"] or "").lower(), 1)
        yield _part_phrase(match, times * _FRACTIONS[part])
    for match in _HALF_UNIT.finditer(text):
        yield NumberPhrase(match[0], *match.span(), 0.5, 0.1)
    for match in _CHINESE_PART.finditer(text):
        below = _read_chinese(match["below"]) if match["below"] else 2
        yield _part_phrase(match, (_read_chinese(match["above"]) if match["above"] else 1) / below)


def _find_whole_numbers(text: str) -> Iterator[NumberPhrase]:
    for match in _ENGLISH.finditer(text):
        yield _read_english(match)
    for match in _GERMAN_NUMBER.finditer(text):
        yield NumberPhrase(match[0], *match.span(), float(_GERMAN[match[0].lower()]))
    for match in _CHINESE_NUMBER.finditer(text):
        if (value := _read_chinese(match[0])) > 1:
            yield NumberPhrase(match[0], *match.span(), float(value))


def _part_phrase(match: re.Match[str], share: float) -> NumberPhrase:
    return NumberPhrase(match[0], *match.span(), share * 100, _FRACTION_STEP * 100, share=True)


def _read_english(match: re.Match[str]) -> NumberPhrase:
    if match["dozen"]:
        value = 6.0 if match["dozen"].lower() == "half a" else 12.0
    elif match["hundreds"]:
        value = 100.0 * _ONES.get(match["hundreds"].lower(), 1) + _below_hundred(match["rest"] or "")
    else:
        scale = 1000 if match["thousand"] else 12 if match["dozens"] else 1
        value = float(_below_hundred(match["plain"]) * scale)
    halved = bool(match["half"])
    return NumberPhrase(match[0], *match.span(), value + 0.5 * halved, 0.5 if halved else 1.0)


def _below_hundred(words: str) -> int:
    parts = re.split(r"[- ]", words.lower()) if words else []
    return sum({**_SMALL, **_TENS, **_ONES}[part] for part in parts)


def _read_chinese(digits: str) -> int:
    total, last = 0, 0
    for character in digits:
        if character in _CHINESE_SCALES:
            total += (last or 1) * _CHINESE_SCALES[character]
            last = 0
        else:
            last = _CHINESE_DIGITS[character]
    return total + last
