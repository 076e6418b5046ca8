"""Whether the sentence that code writes from rows still states what the planner's sentence stated."""

import re
from collections.abc import Iterable, Sequence

from opsleuth.verification.derived_numbers import stands_for
from opsleuth.verification.fact_matching import subject_names
from opsleuth.verification.facts import Fact
from opsleuth.verification.figure_roles import STEMS_OF_FIGURES
from opsleuth.verification.quantities import Quantity, TimeToken, find_quantities, scan_tokens
from opsleuth.verification.record_facts import RecordFigure, normalize_for_matching
from opsleuth.verification.written_times import WrittenTime

_SMALL = 100
"""Plain counts up to here stand in so many rows that an equal figure alone shows nothing."""
_STEM = 4
_WORD = re.compile(r"[^\W\d_]{3,}")
_EMPTY_WORDS = frozenset(
    [
        "the",
        "and",
        "was",
        "were",
        "has",
        "have",
        "had",
        "been",
        "with",
        "from",
        "for",
        "that",
        "this",
        "than",
        "then",
        "usually",
        "only",
        "times",
        "time",
        "not",
        "its",
        "all",
        "any",
        "are",
        "one",
        "two",
        "out",
        "per",
        "into",
        "over",
        "after",
        "before",
        "between",
        "during",
        "since",
        "until",
        "when",
        "while",
        "which",
        "who",
        "there",
        "here",
        "still",
        "now",
        "also",
        "just",
        "more",
        "less",
        "most",
        "least",
        "shows",
        "show",
        "shown",
        "were",
        "does",
        "did",
    ]
)


def find_lost_figure(text: str, said: str, facts: Sequence[Fact]) -> str:
    """The first figure or time of `text` that `said`, made of `facts`, does not hold, also not rounded; else empty."""
    for measure in {fact.measure for fact in facts if "_" in fact.measure}:
        text = re.sub(re.escape(measure.replace("_", " ")), measure, text, flags=re.IGNORECASE)
    quantities = list(find_quantities(said, words=True))
    for quantity in find_quantities(text, words=True):
        if not any(_stands_for(quantity, other) for other in quantities):
            return quantity.text
    moments = list(_find_moments(said))
    for moment in _find_moments(text):
        if not any(_is_same_moment(moment, other) for other in moments):
            return moment.text
    return ""


def shares_subject_matter(text: str, said: str, facts: Sequence[Fact]) -> bool:
    """Whether a sentence of small counts alone has a word in common with what is said of the rows, names left out.

    `a backoff limit of 0` is not what a row with `ready: 0` says.
    """
    quantities = list(find_quantities(text, words=True))
    plain = all(q.bare and q.value < _SMALL and float(q.value).is_integer() for q in quantities)
    if not quantities or not plain or any(True for _ in _find_moments(text)) or any(f.text for f in facts):
        return True
    names = normalize_for_matching(" ".join(name for fact in facts for name in subject_names(fact)))
    asked = {w for w in _collect_stems(_WORD.findall(text.casefold())) if w not in names}
    if not asked:
        return True
    shown = _collect_stems(_WORD.findall(said.casefold().replace("_", " ")))
    shown |= {stem for fact in facts for stem in STEMS_OF_FIGURES.get(fact.measure, "").split()}
    return bool(asked & shown)


def _collect_stems(words: Iterable[str]) -> set[str]:
    return {word[:_STEM] for word in words if word not in _EMPTY_WORDS}


def _stands_for(one: Quantity, other: Quantity) -> bool:
    """Whether either may be a rounded form of the other."""
    return stands_for(one, _as_figure(other)) or stands_for(other, _as_figure(one))


def _as_figure(quantity: Quantity) -> RecordFigure:
    return RecordFigure(quantity.value, () if quantity.bare else quantity.units, "", 0)


def _find_moments(text: str) -> Iterable[WrittenTime]:
    return (token.moment for token in scan_tokens(text) if isinstance(token, TimeToken))


def _is_same_moment(one: WrittenTime, other: WrittenTime) -> bool:
    apart, grain = abs(one.seconds - other.seconds), max(one.grain, other.grain)
    if not (one.dated and other.dated):
        apart %= 86_400
        apart = min(apart, 86_400 - apart)
    return apart < grain
