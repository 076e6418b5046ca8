"""The confidence in a cause: computed from what its claims rest on, never taken from the planner."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import (
    CAUSE_GROUNDS,
    Cause,
    CauseGround,
    CauseSequence,
    Claim,
    Conclusion,
    Confidence,
)
from opsleuth.state.investigation import Hypothesis
from opsleuth.verification.cause_grounds import find_cause_sequence, list_cause_grounds
from opsleuth.verification.conclusion_basis import DERIVED, EffectView, EvidenceView


def grade_cause(
    *, signals: int, pieces: int, against: int, tested: bool, shown: Collection[CauseGround] = CAUSE_GROUNDS
) -> Confidence:
    """The grade of a cause.

    `signals`: independent kinds of evidence for it; `pieces`: pieces of evidence for it; `against`: pieces
    against it; `tested`: an effect's postcondition passed, or a counter-test by name did not refute it; `shown`: which
    of order, path, mechanism and counter-test facts show. Only a cause with all four is confirmed.
    """
    if against:
        return "possible"
    if signals >= 2 and tested and set(shown) == set(CAUSE_GROUNDS):
        return "confirmed"
    return "likely" if pieces >= 2 else "possible"


class CauseGrade(NamedTuple):
    """How sure a cause is, which of the four grounds are shown, and what began after it."""

    confidence: Confidence
    shown: tuple[CauseGround, ...]
    sequence: CauseSequence | None = None


def compute_confidence(
    cause: Cause,
    claims: Sequence[Claim],
    evidence: Mapping[str, EvidenceView],
    hypotheses: Sequence[Hypothesis] = (),
    effects: Sequence[EffectView] = (),
) -> Confidence:
    """The grade of `cause` from its claims that hold, its hypothesis, and the effects on its service."""
    return grade_with_grounds(cause, claims, evidence, hypotheses, effects).confidence


def grade_with_grounds(
    cause: Cause,
    claims: Sequence[Claim],
    evidence: Mapping[str, EvidenceView],
    hypotheses: Sequence[Hypothesis] = (),
    effects: Sequence[EffectView] = (),
    asked: str | None = None,
) -> CauseGrade:
    """The grade of `cause`, with what is shown for it; `asked` is the service that the question is about."""
    cited = {
        e
        for claim in claims
        if claim.id in cause.claims and claim.status != "unsupported"
        for e in claim.evidence
    }
    own = [h for h in hypotheses if is_hypothesis_of_cause(h, cause)]
    views = [evidence[e] for e in sorted(cited) if e in evidence and evidence[e].shows]
    against = {e for h in own for e in h.contradicting if e in evidence and evidence[e].shows}
    cured = any(e.state in ("done", "resolved") and e.checked and e.service == cause.service for e in effects)
    tested = cured or any(_has_withstood_test(h, evidence) for h in own)
    shown = tuple(list_cause_grounds(cause, views, evidence, tested=tested, asked=asked))
    confidence = grade_cause(
        signals=len({view.signal for view in views} - {DERIVED}),
        pieces=len(views),
        against=len(against),
        tested=tested,
        shown=shown,
    )
    return CauseGrade(confidence, shown, find_cause_sequence(cause, views, evidence))


def with_confidence(
    conclusion: Conclusion,
    evidence: Mapping[str, EvidenceView],
    hypotheses: Sequence[Hypothesis] = (),
    effects: Sequence[EffectView] = (),
    asked: str | None = None,
) -> Conclusion:
    """The conclusion with the computed grade on each cause; `asked` is the service that the question is about."""
    causes = [
        cause.model_dump()
        | grade_with_grounds(cause, conclusion.claims, evidence, hypotheses, effects, asked)._asdict()
        for cause in conclusion.causes
    ]
    return Conclusion.model_validate(conclusion.model_dump() | {"causes": causes})


def is_hypothesis_of_cause(hypothesis: Hypothesis, cause: Cause) -> bool:
    """Whether the hypothesis is the cause that was concluded."""
    return hypothesis.service == cause.service and hypothesis.kind in (None, cause.kind)


def _has_withstood_test(hypothesis: Hypothesis, evidence: Mapping[str, EvidenceView]) -> bool:
    """Whether a call was made to test the hypothesis, gave a result, and nothing it gave refuted it.

    A search of logs that matched nothing could not have refuted it: the log may not write such lines at all.
    """
    if hypothesis.status == "refuted":
        return False
    tests = [view for view in evidence.values() if view.tests == hypothesis.id and view.shows]
    return any(view.id in hypothesis.supporting and not _is_empty_log_search(view) for view in tests)


def _is_empty_log_search(view: EvidenceView) -> bool:
    return view.tool == "logs_search" and view.status == ResultStatus.NONE_MATCHED
