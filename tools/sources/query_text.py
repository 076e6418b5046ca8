"""The parts of a PromQL or LogQL query that decide what it costs: its selectors and its ranges.

Read without a grammar: texts, comments and brackets are distinguished, everything else is left as it stands.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opsleuth.tools.spec import InvalidArgumentsError

LONGEST_QUERY = 4_000
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|s|m|h|d|w|y)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0,
            "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}  # fmt: skip
_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
      | (?P<comment>\#[^\n]*)
      | (?P<number>\d[\w.]*)
      | (?P<name>[A-Za-z_:][\w:]*)
      | (?P<other>\s+|[^\w\s"'`]|\w)""",
    re.VERBOSE | re.DOTALL,
)
_LABEL_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_AGGREGATIONS = frozenset(
    {
        "sum",
        "min",
        "max",
        "avg",
        "group",
        "stddev",
        "stdvar",
        "count",
        "count_values",
        "bottomk",
        "topk",
        "quantile",
        "limitk",
        "limit_ratio",
    }
)
_WORDS = frozenset(
    {"and", "or", "unless", "atan2", "bool", "offset", "inf", "nan", "start", "end", "smoothed", "anchored"}
)


class RangePart(NamedTuple):
    """A range in brackets, in seconds; `step` is that of a subquery, 0 where it is left to the server, None without one."""

    seconds: float
    step: float | None


class SelectorPart(NamedTuple):
    """A selector and where it appears in the query."""

    text: str
    start: int
    end: int


class QueryToken(NamedTuple):
    """A piece of a query: its kind (`text`, `comment`, `number`, `name`, `other`), what it says and where."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QueryShape:
    """What a query selects and over which ranges."""

    selectors: Sequence[SelectorPart]
    ranges: Sequence[RangePart]

    @property
    def longest_range(self) -> float:
        """Seconds of the longest range; 0 without one."""
        return max((part.seconds for part in self.ranges), default=0.0)


def read_query_shape(text: str, *, bare_names: bool) -> QueryShape:
    """The selectors and ranges of a query; with `bare_names` (PromQL) a name alone selects as well.

    Raises InvalidArgumentsError for what is too long, or whose texts and brackets do not close.
    """
    if len(text) > LONGEST_QUERY:
        raise InvalidArgumentsError(
            f"the query has {len(text):,} characters, at most {LONGEST_QUERY:,}: write a shorter one"
        )
    tokens = list(_split_tokens(text))
    return QueryShape(
        list(_find_selectors(text, tokens, bare_names=bare_names)), list(_find_ranges(text, tokens))
    )


def _split_tokens(text: str) -> Iterator[QueryToken]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InvalidArgumentsError(
                f"a text that begins at character {at} of the query does not end: close it"
            )
        at = found.end()
        if found.lastgroup != "comment" and not found[0].isspace():
            yield QueryToken(str(found.lastgroup), found[0], found.start(), found.end())


def _find_ranges(text: str, tokens: Sequence[QueryToken]) -> Iterator[RangePart]:
    for place, token in enumerate(tokens):
        if token.text == "[":
            end = next((other for other in tokens[place + 1 :] if other.text == "]"), None)
            if end is None:
                raise InvalidArgumentsError("a range [ does not close: write [5m]")
            seconds, colon, step = text[token.end : end.start].partition(":")
            yield RangePart(
                _parse_duration(seconds), (_parse_duration(step) if step.strip() else 0.0) if colon else None
            )


def _parse_duration(text: str) -> float:
    """Seconds of `5m`, `1h30m` or a plain number. Raises InvalidArgumentsError."""
    plain = text.strip()
    parts = _DURATION.findall(plain)
    if parts and "".join(number + unit for number, unit in parts) == plain:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    try:
        return float(plain)
    except ValueError:
        raise InvalidArgumentsError(f"{plain[:40]!r} is not a duration: write [5m] or [30m:1m]") from None


def _find_selectors(text: str, tokens: Sequence[QueryToken], *, bare_names: bool) -> Iterator[SelectorPart]:
    place = 0
    while place < len(tokens):
        token = tokens[place]
        after = tokens[place + 1].text if place + 1 < len(tokens) else ""
        if token.text == "{" or (bare_names and token.kind == "name" and after == "{"):
            last = _find_closing(tokens, place if token.text == "{" else place + 1, "{", "}")
            yield SelectorPart(text[token.start : tokens[last].end], token.start, tokens[last].end)
            place = last + 1
        elif token.text == "[":
            place = _find_closing(tokens, place, "[", "]") + 1
        elif token.kind == "name" and token.text.lower() in _LABEL_LISTS:
            place = _find_closing(tokens, place + 1, "(", ")") + 1 if after == "(" else place + 1
        elif bare_names and token.kind == "name" and not _is_word(token.text, after):
            yield SelectorPart(token.text, token.start, token.end)
            place += 1
        else:
            place += 1


def _is_word(name: str, after: str) -> bool:
    """Whether a name is a function, an aggregation or a word of the language, not a metric."""
    plain = name.lower()
    return after == "(" or plain in _WORDS or (plain in _AGGREGATIONS and after.lower() in ("by", "without"))


def _find_closing(tokens: Sequence[QueryToken], place: int, opening: str, closing: str) -> int:
    depth = 0
    for at in range(place, len(tokens)):
        depth += (tokens[at].text == opening) - (tokens[at].text == closing)
        if depth == 0:
            return at
    raise InvalidArgumentsError(f"a {opening} of the query does not close: add {closing}")


def narrow_selectors(text: str, shape: QueryShape, matchers: str) -> str:
    """The query with `matchers` added to each of its selectors."""
    if not matchers.strip():
        return text
    for part in sorted(shape.selectors, key=lambda part: -part.start):
        name, _, inner = part.text.partition("{")
        own = inner.rstrip().removesuffix("}").strip().rstrip(",")
        narrowed = f"{name}{{{', '.join(filter(None, [own, matchers.strip().strip(',')]))}}}"
        text = text[: part.start] + narrowed + text[part.end :]
    return text
