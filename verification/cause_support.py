"""The measured facts that a cause rests on: inferred sentences alone carry no cause."""

from collections.abc import Iterator, Mapping, Sequence

from opsleuth.state.conclusion import Cause, Claim, Conclusion
from opsleuth.verification.conclusion_basis import ConclusionBasis, ConclusionProblem
from opsleuth.verification.fact_wording import render_fact
from opsleuth.verification.facts import Fact
from opsleuth.verification.name_extraction import name_occurs_in

_MOST_CLAIMS = 60
_LONGEST = 1000
_WEAK = ("suspect_score", "calls", "called_by", "passes_to", "note")
"""Measures that say nothing of what is wrong with a component."""


def support_causes(conclusion: Conclusion, basis: ConclusionBasis) -> Conclusion:
    """The conclusion with the strongest fact of the cited evidence as a claim of each cause that has only inferred ones."""
    claims, causes = list(conclusion.claims), []
    for cause in conclusion.causes:
        own = _claims_of(cause, conclusion.claims)
        fact = None if not own or has_solid_claim(own) else find_fact_of_cause(cause, own, basis)
        if fact is None or len(claims) >= _MOST_CLAIMS:
            causes.append(cause)
            continue
        added = _claim_of_fact(fact, claims, basis)
        claims.append(added)
        causes.append(cause.model_copy(update={"claims": (*cause.claims, added.id)[:20]}))
    if len(claims) == len(conclusion.claims):
        return conclusion
    changed = {"claims": [c.model_dump() for c in claims], "causes": [c.model_dump() for c in causes]}
    return Conclusion.model_validate(conclusion.model_dump() | changed)


def find_unsupported_causes(conclusion: Conclusion, basis: ConclusionBasis) -> Iterator[ConclusionProblem]:
    """The causes that rest on inferred claims alone, where no cited fact could stand beside them."""
    for i, cause in enumerate(conclusion.causes):
        own = _claims_of(cause, conclusion.claims)
        if own and not has_solid_claim(own) and find_fact_of_cause(cause, own, basis) is None:
            text = (
                f"cause {cause.service} rests only on inferred claims: add a claim that names a fact of it "
                f"({_list_choices(cause, basis)})"
            )
            yield ConclusionProblem("cause", str(i), text, cause.service)


def has_solid_claim(claims: Sequence[Claim]) -> bool:
    """Whether one of the claims is measured or computed."""
    return any(claim.basis in ("measured", "computed") for claim in claims)


def find_fact_of_cause(cause: Cause, claims: Sequence[Claim], basis: ConclusionBasis) -> Fact | None:
    """The first fact of the claims' evidence that names the cause's component: with its metric if it names one."""
    cited = dict.fromkeys(e for claim in claims for e in claim.evidence)
    about = [f for e in cited for f in basis.facts_by_evidence.get(e, ()) if _is_about(f, cause.service)]
    return next((f for f in about if cause.metric and cause.metric in f.label), about[0] if about else None)


def _is_about(fact: Fact, service: str) -> bool:
    return fact.measure not in _WEAK and name_occurs_in(service, [fact.label])


def _claims_of(cause: Cause, claims: Sequence[Claim]) -> list[Claim]:
    by_id: Mapping[str, Claim] = {claim.id: claim for claim in claims}
    return [by_id[c] for c in cause.claims if c in by_id]


def _claim_of_fact(fact: Fact, claims: Sequence[Claim], basis: ConclusionBasis) -> Claim:
    number = max((int(claim.id[1:]) for claim in claims), default=0) + 1
    text = render_fact(fact, basis.language)[:_LONGEST]
    return Claim(id=f"C{number}", text=text, facts=(fact.id,), evidence=(fact.evidence,), basis="measured")


def _list_choices(cause: Cause, basis: ConclusionBasis) -> str:
    facts = (f for facts in basis.facts_by_evidence.values() for f in facts if _is_about(f, cause.service))
    ids = [fact.id for _, fact in zip(range(6), facts, strict=False)]
    return ", ".join(ids) or "no evidence of this run has one"
