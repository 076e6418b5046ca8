"""Whether a fact holds a figure, a time or a quotation of a sentence."""

import re
from functools import lru_cache
from typing import NamedTuple

from opsleuth.verification.derived_numbers import stands_for
from opsleuth.verification.facts import SHARE, Fact
from opsleuth.verification.grounding import fits_quantity
from opsleuth.verification.quantities import Quantity, TimeToken, scan_tokens
from opsleuth.verification.record_facts import RecordFigure, normalize_for_matching
from opsleuth.verification.written_times import WrittenTime, matches_written_time

_SHORTEST_QUOTE = 8


_ELLIPSIS = re.compile(r"\s*(?:…|\.{3})\s*")


_COUNTED = frozenset(
    [
        "anomalies",
        "patterns",
        "statements",
        "operations",
        "objects",
        "events",
        "changes",
        "lines_matching",
        "replicas_ready",
        "ready",
        "desired",
        "restarts",
        "scanned",
        "matched",
        "scanned_series",
        "lines",
        "requests",
        "calls",
        "pairs",
        "count",
        "occurrences",
        "samples",
        "findings_total",
        "place",
        "causes",
        "suspects_total",
        "calls_compared",
        "operations_compared",
        "lines_now",
        "lines_usual",
        "looked_at",
        "distance",
    ]
)
"""Measures and figures that count things: no figure with a unit of time or size is theirs."""


class SentenceToken(NamedTuple):
    text: str
    start: int
    end: int
    quantity: Quantity | None = None
    moment: WrittenTime | None = None
    quote: str = ""


def subject_names(fact: Fact) -> tuple[str, ...]:
    """The names in a fact's subject: `caller → callee` is two, `Pod web-1` one."""
    parts = fact.subject.split(" → ") if " → " in fact.subject else [fact.subject.rpartition(" ")[2]]
    return tuple(part for part in parts if len(part) > 1 and not part[0].isdigit())


def base_measure(fact: Fact) -> str:
    """The measure without what is taken of it: `error_rate max` is of the series `error_rate`."""
    return fact.measure.partition(" ")[0]


def is_main_value(fact: Fact, token: SentenceToken) -> bool:
    if token.moment is not None:
        return fact.at_seconds is not None and matches_written_time(token.moment, fact.at_seconds)
    if token.quantity is None:
        return isinstance(fact.value, str)
    main = [d for d in fact.figures if d.path in (fact.path, fact.before_path)]
    return any(stands_for(token.quantity, RecordFigure(float(d.value), d.units, d.name, 0)) for d in main)


@lru_cache(maxsize=8192)
def split_into_words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]{3,}", text.casefold()))


def find_tally_name(fact: Fact) -> str:
    """The name of what a tally counts (`kinds: {"Pod": 18}`), which has to appear in the sentence; empty for other facts."""
    return next((str(d.value).casefold() for d in fact.details if d.name == "name" and not d.path), "")


def holds_token(fact: Fact, token: SentenceToken) -> bool:
    """Whether the fact has this figure, time or quotation."""
    if token.quote:
        return holds_quote(fact, token.quote)
    if token.moment is not None:
        return _holds_time(fact, token.moment)
    return token.quantity is not None and _holds_quantity(fact, token.quantity)


def holds_quote(fact: Fact, words: str) -> bool:
    pieces = [normalize_for_matching(p) for p in _ELLIPSIS.split(words) if len(p) >= _SHORTEST_QUOTE]
    return bool(pieces) and all(piece in fact.label for piece in pieces)


def _holds_time(fact: Fact, moment: WrittenTime) -> bool:
    if any(matches_written_time(moment, d.seconds) for d in fact.times if d.seconds is not None):
        return True
    return any(
        abs(moment.seconds - other.seconds) % 86_400 < max(moment.grain, other.grain) * 0.999
        if not (moment.dated and other.dated)
        else abs(moment.seconds - other.seconds) < max(moment.grain, other.grain)
        for other in _read_words(fact.label_source)[1]
    )


def _holds_quantity(fact: Fact, quantity: Quantity) -> bool:
    physical = quantity.units[0].dimension in ("time", "bytes", "money")
    for detail in fact.figures:
        if physical and not detail.units and (fact.measure in _COUNTED or detail.name in _COUNTED):
            continue
        if stands_for(quantity, RecordFigure(float(detail.value), detail.units, detail.name, 0)):
            return True
        plain = detail.unit == SHARE and any(u.dimension == "count" for u in quantity.units)
        if plain and any(fits_quantity(quantity, scale * float(detail.value)) for scale in (1, 100)):
            return True
    return any(
        stands_for(quantity, RecordFigure(other.value, () if other.bare else other.units, "", 0))
        for other in _read_words(fact.label_source)[0]
    )


@lru_cache(maxsize=4096)
def _read_words(text: str) -> tuple[tuple[Quantity, ...], tuple[WrittenTime, ...]]:
    """The figures and times that appear in a fact's own words: a log line, a summary, a statement."""
    tokens = scan_tokens(text[:4000])
    return (
        tuple(t for t in tokens if isinstance(t, Quantity)),
        tuple(t.moment for t in tokens if isinstance(t, TimeToken)),
    )
