"""Claims of one report that cannot both be true: which of the two falls, and which one stands."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from opsleuth.state.conclusion import Claim, Conclusion
from opsleuth.verification.claim_resolution import find_direction
from opsleuth.verification.conclusion_basis import DERIVED, ConclusionBasis, ConclusionProblem
from opsleuth.verification.facts import Fact
from opsleuth.verification.name_extraction import name_occurs_in

_SOLID = ("measured", "computed")
_SAME_TIME = 60.0
"""Seconds by which two readings of one moment may differ: one sampling step."""
_SAME_VALUE = 0.02
_LONGEST = 1000
_HEALTHY = (
    r"\s+(?:is|was|were|stays?|stayed|remains?|remained|looks?|looked|has been)\s+(?:all\s+|completely\s+|entirely\s+)?"
    r"(?:healthy|fine|normal|unaffected|not affected|as usual|in order|flat|stable)\b"
)

_OTHER_TIME = re.compile(
    r"\b(?:again|after\w*|later|recover\w*|back|then|until|before|earlier|would|will|should|could|may|might|not|never"
    r"|no longer)\b|n[’']t\b|\d:\d\d",
    re.IGNORECASE,
)
"""Words by which a sentence refers to another time than the measured one, of what may be, or denies."""


def find_contradictions(conclusion: Conclusion, basis: ConclusionBasis) -> Iterator[ConclusionProblem]:
    """A problem for each claim that another claim of the same conclusion rules out; the measured one stands."""
    solid = [claim for claim in conclusion.claims if claim.basis in _SOLID]
    fallen: set[str] = set()
    for one, other in combinations(solid, 2):
        if found := _find_conflict(one, other, basis):
            falling, standing = _choose_falling(one, other, found, basis)
            if falling.id not in fallen:
                fallen.add(falling.id)
                yield _report_contradiction(falling, standing)
    for claim in conclusion.claims:
        if claim.basis == "inferred" and (rival := _find_refuting_claim(claim, solid, conclusion, basis)):
            yield _report_contradiction(claim, rival)


def _report_contradiction(falling: Claim, standing: Claim) -> ConclusionProblem:
    text = f"{falling.id} contradicts {standing.id}, which stands: {standing.text}"
    return ConclusionProblem("claim", falling.id, text[:_LONGEST], standing.id)


def _facts_of(claim: Claim, basis: ConclusionBasis) -> list[Fact]:
    return [fact for id_ in claim.facts if (fact := basis.find_fact(id_))]


def _find_conflict(one: Claim, other: Claim, basis: ConclusionBasis) -> tuple[Fact, Fact] | None:
    """The facts of two claims that give one series opposite directions at one time, or one figure two values."""
    pairs = [(a, b) for a in _facts_of(one, basis) for b in _facts_of(other, basis) if a.id != b.id]
    alike = (pair for pair in pairs if _is_same_series(*pair))
    return next((p for p in alike if p[0].change * p[1].change < 0 or _is_other_value(*p, basis)), None)


def _is_same_series(first: Fact, second: Fact) -> bool:
    """Whether both report one measure of one subject at one time, in one unit."""
    same = (first.subject.casefold(), first.measure, first.unit) == (
        second.subject.casefold(),
        second.measure,
        second.unit,
    )
    a, b = first.at_seconds, second.at_seconds
    if not same or (a is None) != (b is None):
        return False
    return (first.span == second.span) if a is None or b is None else abs(a - b) <= _SAME_TIME


def _is_other_value(first: Fact, second: Fact, basis: ConclusionBasis) -> bool:
    """Whether one look-up, made twice, gave two values of one figure: two statistics of a series may well differ."""
    a, b = basis.evidence[first.evidence], basis.evidence[second.evidence]
    asked_alike = a.id != b.id and a.tool == b.tool and dict(a.asked) == dict(b.asked)
    if not asked_alike or first.path.rpartition("/")[2] != second.path.rpartition("/")[2]:
        return False
    if not isinstance(first.value, int | float) or not isinstance(second.value, int | float):
        return False
    return abs(first.value - second.value) > _SAME_VALUE * max(abs(first.value), abs(second.value))


def _choose_falling(
    one: Claim, other: Claim, facts: tuple[Fact, Fact], basis: ConclusionBasis
) -> tuple[Claim, Claim]:
    """First the claim that falls: what was reckoned from other results before what was read, else the older reading."""
    derived = [basis.evidence[fact.evidence].signal == DERIVED for fact in facts]
    if derived[0] != derived[1]:
        return (one, other) if derived[0] else (other, one)
    ages = [int(fact.evidence[1:]) for fact in facts]
    return (one, other) if ages[0] < ages[1] else (other, one)


def _find_refuting_claim(
    claim: Claim, solid: Sequence[Claim], conclusion: Conclusion, basis: ConclusionBasis
) -> Claim | None:
    """The measured claim that a planner's own words contradict: a cause called healthy, or a series said to go the other way."""
    if _OTHER_TIME.search(claim.text):
        return None
    for other in solid:
        blamed = [c.service for c in conclusion.causes if other.id in c.claims]
        if any(_is_called_healthy(service, claim.text) for service in blamed):
            return other
        if any(_is_turned_around(fact, claim.text) for fact in _facts_of(other, basis)):
            return other
    return None


def _is_called_healthy(service: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(service)}{_HEALTHY}", text, re.IGNORECASE) is not None


def _is_turned_around(fact: Fact, text: str) -> bool:
    """Whether the text names the fact's subject and measure and only the opposite direction."""
    if not fact.change or not fact.subject or not fact.measure:
        return False
    named = name_occurs_in(fact.subject, [text.casefold()]) and name_occurs_in(
        fact.measure, [text.casefold()]
    )
    return named and find_direction(text) == -fact.change
