"""Which measure a clause is about: only a fact about the same one can contradict its direction."""

import re
from collections.abc import Sequence

from opsleuth.verification.fact_matching import SentenceToken, holds_token
from opsleuth.verification.facts import Fact
from opsleuth.verification.record_facts import normalize_for_matching

_UNNAMED = frozenset(["value", "result", "reading", "answer", "current", "now"])
"""Measures of which nobody says the name: `a is 7`."""
_PLAINLY_SAID = re.compile(
    r"^[\s,;.]*(?:(?:and|but|while|whereas)\s+)?(?:the\s+)?(?P<name>\S.*?)\s*"
    r"(?:=|:|\s(?:is|was|reads|read|shows|showed|equals|(?:is|was|stands|stood) at))\s*$",
    re.IGNORECASE,
)
_NOTHING_MORE = re.compile(r"^(?:\s*[.,;!)]|\s+(?:and|but|while|whereas)\b|\s*$)", re.IGNORECASE)
_STEM = 4
_WORD = re.compile(r"[^\W\d_]{3,}")
_EMPTY_WORDS = frozenset(["the", "its", "their", "then", "has", "have", "had", "was", "were", "that", "this", "and", "but", "for", "from", "with", "which", "where", "when", "while", "value", "figure", "level", "number", "measure", "metric", "service", "der", "die", "das", "von"])  # fmt: skip


def is_of_spoken_measure(fact: Fact, clause: str, direction: str, tokens: Sequence[SentenceToken]) -> bool:
    """Whether the clause is about the fact's measure with the words of its direction.

    It does if it states two figures of the fact, if it names no measure, or if it names the fact's own one.
    """
    if sum(token.quantity is not None and holds_token(fact, token) for token in tokens) > 1:
        return True
    named = _collect_stems(clause.partition(direction)[0]) - _collect_stems(fact.subject)
    return not named or bool(named & _collect_stems(f"{fact.label} {fact.measure}"))


def states_bare_value(fact: Fact, before: str, after: str) -> bool:
    """Whether the words around a figure are no more than `NAME is`, of what the fact's row names and whose measure has no name."""
    said = _PLAINLY_SAID.match(before)
    if said is None or fact.measure not in _UNNAMED or not _NOTHING_MORE.match(after):
        return False
    name = normalize_for_matching(said["name"].strip("`'\""))
    names = [fact.subject, *(d.value for d in fact.details if isinstance(d.value, str))]
    return name in [normalize_for_matching(own) for own in names if own]


def _collect_stems(text: str) -> frozenset[str]:
    """The first letters of each word that may belong to the name of a measure."""
    words = _WORD.findall(text.casefold().replace("_", " "))
    return frozenset(word[:_STEM] for word in words if word not in _EMPTY_WORDS)
