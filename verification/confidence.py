"""How sure a cause is: computed from what its claims rest on, never taken from the planner."""

from collections.abc import Mapping, Sequence

from opsleuth.state.conclusion import Cause, Claim, Conclusion, Confidence
from opsleuth.state.investigation import Hypothesis
from opsleuth.verification.claims import DERIVED, EffectView, EvidenceView


def grade(*, signals: int, pieces: int, against: int, tested: bool) -> Confidence:
    """The grade of a cause.

    `signals`: independent kinds of evidence for it; `pieces`: pieces of evidence for it; `against`: pieces
    against it; `tested`: an effect's postcondition passed, or a counter-test by name did not refute it.
    """
    if against:
        return "possible"
    if signals >= 2 and tested:
        return "confirmed"
    return "likely" if pieces >= 2 else "possible"


def confidence(
    cause: Cause,
    claims: Sequence[Claim],
    evidence: Mapping[str, EvidenceView],
    hypotheses: Sequence[Hypothesis] = (),
    effects: Sequence[EffectView] = (),
) -> Confidence:
    """The grade of `cause` from its verified claims, its hypothesis, and the effects on its service."""
    cited = {
        e
        for claim in claims
        if claim.id in cause.claims and claim.status != "unsupported"
        for e in claim.evidence
    }
    own = [h for h in hypotheses if concerns(h, cause)]
    views = [evidence[e] for e in sorted(cited) if e in evidence and evidence[e].shows]
    against = {e for h in own for e in h.contradicting if e in evidence and evidence[e].shows}
    cured = any(e.state in ("done", "resolved") and e.checked and e.service == cause.service for e in effects)
    return grade(
        signals=len({view.signal for view in views} - {DERIVED}),
        pieces=len(views),
        against=len(against),
        tested=cured or any(_withstood(h, evidence) for h in own),
    )


def with_confidence(
    conclusion: Conclusion,
    evidence: Mapping[str, EvidenceView],
    hypotheses: Sequence[Hypothesis] = (),
    effects: Sequence[EffectView] = (),
) -> Conclusion:
    """The conclusion with the computed grade on each cause."""
    causes = [
        cause.model_dump()
        | {"confidence": confidence(cause, conclusion.claims, evidence, hypotheses, effects)}
        for cause in conclusion.causes
    ]
    return Conclusion.model_validate(conclusion.model_dump() | {"causes": causes})


def concerns(hypothesis: Hypothesis, cause: Cause) -> bool:
    """Whether the hypothesis is the cause that was concluded."""
    return hypothesis.service == cause.service and hypothesis.kind in (None, cause.kind)


def _withstood(hypothesis: Hypothesis, evidence: Mapping[str, EvidenceView]) -> bool:
    """Whether a call was made to test the hypothesis, gave a result, and nothing it gave refuted it."""
    if hypothesis.status == "refuted":
        return False
    tests = [view for view in evidence.values() if view.tests == hypothesis.id and view.shows]
    return any(view.id in hypothesis.supporting for view in tests)
