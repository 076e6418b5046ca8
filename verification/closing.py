"""What becomes of the hypotheses that a conclusion does not name: they are closed, with the reason."""

from collections.abc import Iterable, Sequence

from opsleuth.state.conclusion import Cause, Conclusion
from opsleuth.state.investigation import Hypothesis
from opsleuth.state.outcome import Verdict
from opsleuth.state.words import counted
from opsleuth.verification.confidence import concerns
from opsleuth.verification.figures import squeeze
from opsleuth.verification.names import occurs


def closed(hypotheses: Iterable[Hypothesis], conclusion: Conclusion) -> tuple[Hypothesis, ...]:
    """The hypotheses as they stand once `conclusion` is accepted.

    Where a cause was found, or all is well, none stays open or supported beside it. An answer that leaves the
    cause open closes none.
    """
    if conclusion.verdict not in (Verdict.CAUSE_FOUND, Verdict.HEALTHY):
        return tuple(hypotheses)
    return tuple(_closed(h, conclusion) if _left(h, conclusion.causes) else h for h in hypotheses)


def _left(hypothesis: Hypothesis, causes: Sequence[Cause]) -> bool:
    """Whether it is neither decided by evidence nor one of the causes."""
    if hypothesis.status in ("refuted", "not_concluded"):
        return False
    return not any(concerns(hypothesis, cause) or _names(hypothesis, cause) for cause in causes)


def _names(hypothesis: Hypothesis, cause: Cause) -> bool:
    """Whether one without a service of its own speaks of the cause's."""
    return hypothesis.service is None and occurs(cause.service, [squeeze(hypothesis.text)])


def _closed(hypothesis: Hypothesis, conclusion: Conclusion) -> Hypothesis:
    found = ", ".join(f"{cause.service} ({cause.kind.replace('_', ' ')})" for cause in conclusion.causes)
    what = f"the cause that was found is {found}" if found else "nothing was found to be wrong"
    support = len(hypothesis.supporting)
    weighed = (
        f"{counted(support, 'piece')} of evidence spoke for it" if support else "no evidence spoke for it"
    )
    changed = {"status": "not_concluded", "reason": f"{what}; {weighed}"[:1000]}
    return Hypothesis.model_validate(hypothesis.model_dump() | changed)
