"""The ranking beside a draft: it may be overruled with evidence, but not passed over.

So a run with a model never ends below what its own tools have found: who will neither blame the first suspect nor
say what speaks against it has its report begin with that suspect. (Who never asked for a ranking: `nodes/ranked.py`.)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.state.conclusion import Cause, Claim, Conclusion
from opsleuth.state.investigation import Hypothesis
from opsleuth.state.outcome import Verdict
from opsleuth.verification.claims import Basis, Problem, claim_problems
from opsleuth.verification.figures import squeeze
from opsleuth.verification.names import occurs

RANKING = "rank_suspects"
MOST_CLAIMS = 2


class PassedOver(NamedTuple):
    """The first suspect of the newest ranking, of which a conclusion says nothing; `evidence` is the ranking's id."""

    evidence: str
    suspect: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.suspect['service']} ({self.suspect['kind']})"


def passed_over(
    conclusion: Conclusion, basis: Basis, hypotheses: Sequence[Hypothesis] = ()
) -> PassedOver | None:
    """The suspect that is neither blamed nor ruled out; None if there is none, or no cause was asked for."""
    if conclusion.verdict is Verdict.ANSWERED:
        return None
    rankings = [view for view in basis.seen if view.tool == RANKING and view.shows]
    record = rankings[-1].record if rankings else {}
    if record.get("verdict") != Verdict.CAUSE_FOUND or not record.get("causes") or not record.get("suspects"):
        return None
    first = record["suspects"][0]
    texts = [squeeze(text) for text in _judged(conclusion, hypotheses)]
    return None if occurs(first["service"], texts) else PassedOver(rankings[-1].id, first)


def ranking_problems(
    conclusion: Conclusion, basis: Basis, hypotheses: Sequence[Hypothesis] = ()
) -> Iterator[Problem]:
    """What the planner is told about a suspect that it passed over."""
    if found := passed_over(conclusion, basis, hypotheses):
        text = f"{found.evidence} ranks {found.name} first: blame it, or rule it out with the evidence that speaks against it"
        yield Problem("rival", "", text)


def with_ranking(conclusion: Conclusion, basis: Basis, hypotheses: Sequence[Hypothesis] = ()) -> Conclusion:
    """The conclusion with the suspect that it passed over before its own causes; nothing is healthy then."""
    found = passed_over(conclusion, basis, hypotheses)
    claims = _claims(found, conclusion, basis) if found else ()
    if found is None or not claims:
        return conclusion
    cause = Cause(
        service=found.suspect["service"],
        kind=found.suspect["kind"],
        metric=found.suspect.get("metric"),
        claims=tuple(claim.id for claim in claims),
    )
    said = f"The ranking of all findings puts {found.name} first: its leading candidate, which the planner neither blamed nor ruled out."
    healthy = conclusion.verdict is Verdict.HEALTHY
    changed = {
        "verdict": Verdict.INCONCLUSIVE if healthy else conclusion.verdict,
        "answer": f"{said} {conclusion.answer}"[:20_000],
        "causes": (cause, *conclusion.causes)[:20],
        "claims": (*conclusion.claims, *claims),
    }
    return Conclusion.model_validate(conclusion.model_dump() | changed)


def _judged(conclusion: Conclusion, hypotheses: Sequence[Hypothesis]) -> Iterator[str]:
    """Every text that blames or rules out a component."""
    claims = {claim.id: claim.text for claim in conclusion.claims}
    by_id = {h.id: h for h in hypotheses}
    yield from (cause.service for cause in conclusion.causes)
    for item in conclusion.ruled_out:
        yield item.hypothesis
        yield from (claims[c] for c in item.claims if c in claims)
        if item.id in by_id:
            yield from _about(by_id[item.id])
    for h in hypotheses:
        if h.status == "refuted":
            yield from _about(h)


def _about(hypothesis: Hypothesis) -> Iterator[str]:
    yield hypothesis.text
    yield hypothesis.service or ""


def _claims(found: PassedOver, conclusion: Conclusion, basis: Basis) -> tuple[Claim, ...]:
    """The suspect's findings as claims that hold; as few as there is room for."""
    after = max((int(claim.id[1:]) for claim in conclusion.claims), default=0)
    made = [
        Claim(
            id=f"C{after + i}",
            text=str(finding["text"])[:1000],
            evidence=(found.evidence,),
            status="verified",
        )
        for i, finding in enumerate(found.suspect["findings"][:MOST_CLAIMS], 1)
    ]
    return tuple(claim for claim in made if not claim_problems(claim, basis))[: 60 - len(conclusion.claims)]
