"""The outcome of the hypotheses that a conclusion does not name: they are closed, with the reason."""

from collections.abc import Iterable, Sequence

from opsleuth.state.conclusion import Cause, Conclusion
from opsleuth.state.investigation import Hypothesis
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import Verdict
from opsleuth.verification.confidence import is_hypothesis_of_cause
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.record_facts import normalize_for_matching


def close_unnamed_hypotheses(
    hypotheses: Iterable[Hypothesis], conclusion: Conclusion
) -> tuple[Hypothesis, ...]:
    """The hypotheses as they stand once `conclusion` is accepted.

    Where a cause was found, or all is well, none stays open or supported beside it. An answer that leaves the
    cause open closes none.
    """
    if conclusion.verdict not in (Verdict.CAUSE_FOUND, Verdict.HEALTHY):
        return tuple(hypotheses)
    return tuple(
        _close_hypothesis(h, conclusion) if _is_left_open(h, conclusion.causes) else h for h in hypotheses
    )


def _is_left_open(hypothesis: Hypothesis, causes: Sequence[Cause]) -> bool:
    """Whether it is neither decided by evidence nor one of the causes."""
    if hypothesis.status in ("refuted", "not_concluded"):
        return False
    return not any(
        is_hypothesis_of_cause(hypothesis, cause) or _mentions_cause_service(hypothesis, cause)
        for cause in causes
    )


def _mentions_cause_service(hypothesis: Hypothesis, cause: Cause) -> bool:
    """Whether one without a service of its own is about the cause's."""
    return hypothesis.service is None and name_occurs_in(
        cause.service, [normalize_for_matching(hypothesis.text)]
    )


def _close_hypothesis(hypothesis: Hypothesis, conclusion: Conclusion) -> Hypothesis:
    found = ", ".join(f"{cause.service} ({cause.kind.replace('_', ' ')})" for cause in conclusion.causes)
    what = f"the cause that was found is {found}" if found else "nothing was found to be wrong"
    support = len(hypothesis.supporting)
    weighed = (
        f"{format_count(support, 'piece')} of evidence spoke for it"
        if support
        else "no evidence spoke for it"
    )
    changed = {"status": "not_concluded", "reason": f"{what}; {weighed}"[:1000]}
    return Hypothesis.model_validate(hypothesis.model_dump() | changed)
