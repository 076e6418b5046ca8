"""Numbers with units, times and words out of prose, log lines and record strings: one linear scan.

What is *not* a quantity: digits inside names (`payments-api-7f9dd8b6c4`, `v3.2.0`, `10.0.0.7`), ids of the
run (`E7`, `inv-…`), ordinals, list marks and labels (`1.`, `step 2`, `3rd`). Those come back as words.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opsleuth.verification.number_words import NumberPhrase, find_number_phrases
from opsleuth.verification.units import UNIT, MeasureUnit, lookup_unit
from opsleuth.verification.written_times import MONTHS, ZONE, WrittenTime, parse_written_time

# At most 40 parts a word: what is read piece by piece (`12:12:12…`) is then still read in linear time.
# Letters, digits and underscore of the scripts that put spaces between words; CJK text surrounds names unspaced.
WORD_CHARS = "A-Za-z0-9_\u00b5\u00c0-\u024f\u0370-\u03ff\u0400-\u052f"
LEXEME = re.compile(
    rf"[{WORD_CHARS}]+(?:(?:[-./:@~+#]+|(?<=[0-9]),(?=[0-9]{{3}}(?![0-9])))[{WORD_CHARS}]+){{0,40}}"
)
_CLOCK_ZONE = rf"(?: ?(?:{ZONE})(?![{WORD_CHARS}]))?"
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?" + _CLOCK_ZONE + r")?"
    rf"(?![{WORD_CHARS}]|:\d)"
    rf"|\d{{1,2}} (?:{MONTHS}) \d{{4}},? \d{{2}}:\d{{2}}(?::\d{{2}})?{_CLOCK_ZONE}(?![{WORD_CHARS}]|:\d)"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?" + _CLOCK_ZONE + rf"(?![{WORD_CHARS}]|:\d)",
    re.ASCII,
)
_GLUED = re.compile(r"(?:[a-z]{3,20}|[A-Z]{3,8})(?![A-Za-z0-9_./:@+#-])")
"""A unit that nobody knows, written to its figure: `9.07retrans`, `154.67pps`."""
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,2}(?!\d))?", re.ASCII)
_COMPOUND = re.compile(
    rf"(?:(\d{{1,4}})d ?)?(?:(\d{{1,4}})h ?)?(?:(\d{{1,4}})m(?:in)? ?)?(?:(\d{{1,4}})s)?(?![{WORD_CHARS}.:-])",
    re.ASCII,
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z0-9_])")
# After a number within one word: another number (a range, a fraction), or a word it counts (`5,000-row`).
_GOES_ON = re.compile(rf"[-/:~]{{1,2}}\d|-[a-z]{{3,20}}(?![{WORD_CHARS}.:/@-])")
_KEYED = re.compile(r"([A-Za-z_]+):(?=\d)|([A-Za-z_]+(?:-[A-Za-z_]+)+):(?=\d+(?:[kMG]i?B|[KMG]i|ms|s)\b)")
_LABEL = re.compile(
    r"(?:\b(?:step|option|phase|priority|candidate|hypothesis|item|section|part|figure|no\.) ?|[#第]|方案|选项|步骤) ?$",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"(?:^|\n)[\s>*(（-]*$")
_APPROXIMATE = re.compile(
    r"(?:[~≈]|\b(?:about|around|roughly|approximately|nearly|almost|circa|approx\.)|约|近) ?[$€£¥]?$",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"(?:[>≥]=?|\b(?:over|more than|above|exceed(?:s|ed|ing)?|greater than|at least|beyond)|超过|大于|高于|至少) ?[$€£¥]?$",
    re.IGNORECASE,
)
_UNDER = re.compile(
    r"(?:[<≤]=?|\b(?:under|within|less than|below|fewer than|at most|(?<!went )(?<!goes )(?<!gone )(?<!jumped )(?<!climbed )(?<!shot )up to)|不到|低于|小于|至多) ?[$€£¥]?$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r" ?(?:[-–—~～/]|to|and|至|到) ?[$€£¥]?")
_LOOKBACK = 24
_WORDS_APART = 0.15
"""How far `nearly ten` may lie from ten, as a share of it."""
_PLAIN = (MeasureUnit("count", (1.0,)),)
MAX_DIGITS = 40


class Quantity(NamedTuple):
    """A written number. `low` to `high` is what may be written so, in the written unit; `units` its readings."""

    text: str
    start: int
    end: int
    value: float
    low: float
    high: float
    units: tuple[MeasureUnit, ...]

    @property
    def bare(self) -> bool:
        return self.units == _PLAIN


class TimeToken(NamedTuple):
    """A written time and where it stands."""

    moment: WrittenTime
    start: int
    end: int


class WordToken(NamedTuple):
    """Any other run of letters, digits and inner punctuation."""

    text: str
    start: int
    end: int


Token = Quantity | TimeToken | WordToken


def scan_tokens(text: str) -> list[Token]:
    """All tokens of `text` in order, in time linear in its length."""
    return _share_zone(_share_unit(_join_durations(list(_iter_tokens(text)), text), text), text)


def find_quantities(text: str, *, words: bool = False) -> list[Quantity]:
    """The numbers of `text`; with `words` also those that are written out (`fifteen`, `two dozen`, `a third of`)."""
    tokens = scan_tokens(text)
    found = [token for token in tokens if isinstance(token, Quantity)]
    if words:
        spans = [(q.start, q.end) for q in found]
        found += [
            _quantity_from_words(phrase, text)
            for phrase in find_number_phrases(text)
            if not any(start <= phrase.start < end for start, end in spans)
        ]
    return sorted(found, key=lambda q: q.start)


def _quantity_from_words(phrase: NumberPhrase, text: str) -> Quantity:
    """A number in words with the unit after it; one that counts something is exact."""
    if phrase.share:
        half = phrase.step / 2
        return Quantity(phrase.text, phrase.start, phrase.end, phrase.value, phrase.value - half, phrase.value + half, (MeasureUnit("share", (0.01,)),))  # fmt: skip
    unit = UNIT.match(text, phrase.end)
    if unit is None and phrase.step == 1.0:
        exact = not _APPROXIMATE.search(text[max(0, phrase.start - _LOOKBACK) : phrase.start])
        width = 0.0 if exact else _WORDS_APART * phrase.value
        return Quantity(phrase.text, phrase.start, phrase.end, phrase.value, phrase.value - width, phrase.value + width, _PLAIN)  # fmt: skip
    units = lookup_unit(unit["unit"]) if unit else _PLAIN
    end = unit.end() if unit else phrase.end
    low, high = _range_in_words(phrase, text)
    return Quantity(text[phrase.start : end], phrase.start, end, phrase.value, low, high, units)


def _range_in_words(phrase: NumberPhrase, text: str) -> tuple[float, float]:
    before = text[max(0, phrase.start - _LOOKBACK) : phrase.start]
    low, high = phrase.value - phrase.step / 2, phrase.value + phrase.step / 2
    width = _WORDS_APART * phrase.value
    if _APPROXIMATE.search(before):
        return min(low, phrase.value - width), max(high, phrase.value + width)
    if _OVER.search(before):
        return phrase.value, phrase.value + max(width, phrase.step)
    if _UNDER.search(before):
        return phrase.value - max(width, phrase.step), phrase.value
    return low, high


def _iter_tokens(text: str) -> Iterator[Token]:
    position = 0
    while match := LEXEME.search(text, position):
        token = _read_token(text, match)
        position = max(token.end if token else match.end(), match.start() + 1)
        if token:
            yield token


def _read_token(text: str, lexeme: re.Match[str]) -> Token | None:
    start, end = lexeme.span()
    if not "0" <= text[start] <= "9":
        keyed = _KEYED.match(text, start, end)
        return (
            WordToken(keyed[1] or keyed[2], start, keyed.end()) if keyed else WordToken(lexeme[0], start, end)
        )
    if (match := _TIME.match(text, start)) and (moment := parse_written_time(match[0])):
        return TimeToken(moment, start, match.end())
    if _ORDINAL.match(text, _digits_end(text, start, end)):
        return None
    return _read_quantity(text, start, end) or WordToken(lexeme[0], start, end)


def _digits_end(text: str, start: int, end: int) -> int:
    while start < end and text[start].isdigit():
        start += 1
    return start


def _read_quantity(text: str, start: int, lexeme_end: int) -> Quantity | None:
    """The number at `start`, unless the lexeme around it is a name (a hash, an address, a version)."""
    match = _NUMBER.match(text, start)
    if match is None or match.end() - start > MAX_DIGITS:
        return None
    if compound := _read_compound_duration(text, start, lexeme_end):
        return compound
    end = match.end()
    unit = UNIT.match(text, end)
    if unit is None and end < lexeme_end and not (_GOES_ON.match(text, end) or _GLUED.match(text, end)):
        return None
    if unit is None and _is_label(text, start, end):
        return None
    units = lookup_unit(unit["unit"]) if unit else _PLAIN
    if unit and unit[0] == "s" and match[0].isdigit() and 100 <= int(match[0]) < 600:
        units += _PLAIN  # `503s` are answers with that status
    return _build_quantity(text, start, unit.end() if unit else end, match[0], units)


def _read_compound_duration(text: str, start: int, lexeme_end: int) -> Quantity | None:
    match = _COMPOUND.match(text, start)
    if match is None or match.end() < lexeme_end or sum(g is not None for g in match.groups()) < 2:
        return None
    size = zip(match.groups(), (86400, 3600, 60, 1), strict=True)
    total = float(sum(int(part) * seconds for part, seconds in size if part))
    last = (60 if match[4] is None else 1) if match[3] or match[4] else 3600
    seconds = (MeasureUnit("time", (1.0,)),)
    return Quantity(match[0], start, match.end(), total, total - last / 2, total + last / 2, seconds)


def _is_label(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _LOOKBACK) : start]
    if _LABEL.search(before):
        return True
    return text[end : end + 1] in (".", ")", "、", "）") and bool(
        _LIST_MARK.search(before if start > _LOOKBACK else "\n" + before)
    )


def _build_quantity(text: str, start: int, end: int, digits: str, units: tuple[MeasureUnit, ...]) -> Quantity:
    value, step = _parse_digits(digits)
    before = text[max(0, start - _LOOKBACK) : start]
    if before[-1:] in ("$", "€", "£", "¥") and before:
        units = (MeasureUnit("money", units[0].factors if units[0].dimension == "count" else (1.0,)),)
    low, high = value - step / 2, value + step / 2
    if _APPROXIMATE.search(before):
        coarse = _coarse_step(digits, step)
        low, high = value - coarse / 2, value + coarse / 2
    elif _OVER.search(before):
        low, high = value, value + _coarse_step(digits, step)
    elif _UNDER.search(before):
        low, high = value - _coarse_step(digits, step), value
    return Quantity(text[start:end], start, end, value, low, high, units)


def _parse_digits(digits: str) -> tuple[float, float]:
    """The number and the width of its last written digit."""
    plain, _, exponent = digits.replace(",", "").lower().partition("e")
    scale = 10.0 ** int(exponent or 0)
    decimals = len(plain.partition(".")[2])
    return float(plain) * scale, 10.0**-decimals * scale


def _coarse_step(digits: str, step: float) -> float:
    """The width of the last digit that means something in an approximate number: trailing zeros do not."""
    plain = digits.replace(",", "")
    if not plain.isdigit() or not plain.strip("0"):
        return step
    return 10.0 ** (len(plain) - len(plain.rstrip("0")))


def _join_durations(tokens: list[Token], text: str) -> list[Token]:
    """`2 min 30 s` is one duration."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            isinstance(token, Quantity)
            and isinstance(last, Quantity)
            and _continues_duration(last, token, text)
        ):
            seconds = last.value * last.units[0].factors[0]
            factor = token.units[0].factors[0]
            low, high = seconds + token.low * factor, seconds + token.high * factor
            joined[-1] = Quantity(
                text[last.start : token.end], last.start, token.end,
                seconds + token.value * factor, low, high, (MeasureUnit("time", (1.0,)),),
            )  # fmt: skip
        else:
            joined.append(token)
    return joined


def _continues_duration(first: Quantity, second: Quantity, text: str) -> bool:
    a, b = first.units[0], second.units[0]
    if a.dimension != "time" or b.dimension != "time" or a.factors[0] <= b.factors[0]:
        return False
    return text[first.end : second.start] in (" ", "", " and ") and second.value * b.factors[0] < a.factors[0]


def _share_unit(tokens: list[Token], text: str) -> list[Token]:
    """`20 to 40 ms`: the first number has the unit of the second."""
    for i in range(len(tokens) - 2, -1, -1):
        first, second = tokens[i], _skip_joint(tokens, i)
        if not (isinstance(first, Quantity) and first.bare and isinstance(second, Quantity)):
            continue
        if not second.bare and _BETWEEN.fullmatch(text[first.end : second.start][:8]):
            tokens[i] = first._replace(units=second.units + _PLAIN)
    return tokens


def _share_zone(tokens: list[Token], text: str) -> list[Token]:
    """`13:40–14:20Z`: the first time has the zone of the second."""
    for i in range(len(tokens) - 2, -1, -1):
        first, second = tokens[i], _skip_joint(tokens, i)
        if not (isinstance(first, TimeToken) and not first.moment.zoned and isinstance(second, TimeToken)):
            continue
        if second.moment.zoned and _BETWEEN.fullmatch(text[first.end : second.start][:8]):
            zone = re.search(rf"(?:{ZONE})$", second.moment.text)
            shared = parse_written_time(first.moment.text + zone[0]) if zone else None
            tokens[i] = first._replace(moment=shared._replace(text=first.moment.text)) if shared else first
    return tokens


def _skip_joint(tokens: Sequence[Token], i: int) -> Token:
    """The token after `i`, past a joining word (`to`, `and`)."""
    joint = tokens[i + 1]
    if isinstance(joint, WordToken) and joint.text in ("to", "and") and i + 2 < len(tokens):
        return tokens[i + 2]
    return joint
