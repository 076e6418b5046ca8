"""The ranking beside a draft: it may be overruled with evidence, but not passed over.

So a run with a model never ends below what its own tools have found: who will neither blame the first suspect nor
say what speaks against it has its report begin with that suspect. (Who never asked for a ranking: `nodes/verify/fallback_ranking.py`.)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.state.conclusion import Cause, Claim, Conclusion
from opsleuth.state.investigation import Hypothesis
from opsleuth.state.run_status import Verdict
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, ConclusionProblem
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.question_demands import is_json_answer
from opsleuth.verification.record_facts import normalize_for_matching

RANKING = "rank_suspects"
MOST_CLAIMS = 2


class UnaddressedSuspect(NamedTuple):
    """The first suspect of the newest ranking, of which a conclusion says nothing; `evidence` is the ranking's id."""

    evidence: str
    suspect: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.suspect['service']} ({self.suspect['kind']})"


def find_unaddressed_suspect(
    conclusion: Conclusion, basis: ConclusionBasis, hypotheses: Sequence[Hypothesis] = ()
) -> UnaddressedSuspect | None:
    """The suspect that is neither blamed nor ruled out; None if there is none, or no cause was asked for."""
    if conclusion.verdict is Verdict.ANSWERED or not basis.asks_for_cause:
        return None
    rankings = [view for view in basis.seen if view.tool == RANKING and view.shows]
    record = rankings[-1].record if rankings else {}
    if record.get("verdict") != Verdict.CAUSE_FOUND or not record.get("causes") or not record.get("suspects"):
        return None
    first = record["suspects"][0]
    texts = [normalize_for_matching(text) for text in _texts_judging_components(conclusion, hypotheses)]
    return None if name_occurs_in(first["service"], texts) else UnaddressedSuspect(rankings[-1].id, first)


def find_ranking_problems(
    conclusion: Conclusion, basis: ConclusionBasis, hypotheses: Sequence[Hypothesis] = ()
) -> Iterator[ConclusionProblem]:
    """What the planner is told about a suspect that it passed over."""
    if found := find_unaddressed_suspect(conclusion, basis, hypotheses):
        text = f"{found.evidence} ranks {found.name} first: blame it, or rule it out with the evidence that speaks against it"
        yield ConclusionProblem("rival", "", text)


def with_unaddressed_suspect(
    conclusion: Conclusion, basis: ConclusionBasis, hypotheses: Sequence[Hypothesis] = ()
) -> Conclusion:
    """The conclusion with the suspect that it passed over before its own causes; nothing is healthy then.

    An answer in the form of JSON keeps its form: there the suspect appears in the causes and claims alone.
    """
    found = find_unaddressed_suspect(conclusion, basis, hypotheses)
    claims = _claims_from_findings(found, conclusion, basis) if found else ()
    if found is None or not claims:
        return conclusion
    cause = Cause(
        service=found.suspect["service"],
        kind=found.suspect["kind"],
        metric=found.suspect.get("metric"),
        claims=tuple(claim.id for claim in claims),
    )
    said = f"The ranking of all findings puts {found.name} first: the strongest suspect so far, not yet checked by the planner."
    healthy = conclusion.verdict is Verdict.HEALTHY
    changed = {
        "verdict": Verdict.INCONCLUSIVE if healthy else conclusion.verdict,
        "answer": conclusion.answer
        if is_json_answer(conclusion.answer)
        else f"{said} {conclusion.answer}"[:20_000],
        "causes": (cause, *conclusion.causes)[:20],
        "claims": (*conclusion.claims, *claims),
    }
    return Conclusion.model_validate(conclusion.model_dump() | changed)


def _texts_judging_components(conclusion: Conclusion, hypotheses: Sequence[Hypothesis]) -> Iterator[str]:
    """Every text that blames or rules out a component."""
    claims = {claim.id: claim.text for claim in conclusion.claims}
    by_id = {h.id: h for h in hypotheses}
    yield from (cause.service for cause in conclusion.causes)
    for item in conclusion.ruled_out:
        yield item.hypothesis
        yield from (claims[c] for c in item.claims if c in claims)
        if item.id in by_id:
            yield from _hypothesis_texts(by_id[item.id])
    for h in hypotheses:
        if h.status == "refuted":
            yield from _hypothesis_texts(h)


def _hypothesis_texts(hypothesis: Hypothesis) -> Iterator[str]:
    yield hypothesis.text
    yield hypothesis.service or ""


def _claims_from_findings(
    found: UnaddressedSuspect, conclusion: Conclusion, basis: ConclusionBasis
) -> tuple[Claim, ...]:
    """The suspect's findings as claims that hold; as few as there is room for."""
    after = max((int(claim.id[1:]) for claim in conclusion.claims), default=0)
    made = [
        Claim(
            id=f"C{after + i}",
            text=str(finding["text"])[:1000],
            evidence=(found.evidence,),
            status="holds",
        )
        for i, finding in enumerate(found.suspect["findings"][:MOST_CLAIMS], 1)
    ]
    resolved = (resolve_claim(claim, basis) for claim in made)
    return tuple(claim for claim, problems in resolved if not problems)[: 60 - len(conclusion.claims)]
