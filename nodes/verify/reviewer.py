"""The reviewer's word on a draft, after the deterministic checks and within the same limits."""

from typing import Literal, NamedTuple

from opsleuth.models.planner import ModelUnavailableError, PlannerError
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.model_costs import charge_model_cost
from opsleuth.nodes.verify.draft_checks import CheckedDraft
from opsleuth.state.conclusion import Conclusion, ReviewOutcome
from opsleuth.state.investigation import Investigation

By = Literal["checks", "reviewer", "checks+reviewer"]


class ReviewerOpinion(NamedTuple):
    """The state after the review was paid for, what the reviewer objects to, and who has looked."""

    state: Investigation
    objections: tuple[str, ...] = ()
    by: By = "checks"
    outcome: ReviewOutcome = "none"


async def ask_reviewer(
    draft: Conclusion, checked: CheckedDraft, state: Investigation, deps: Deps
) -> ReviewerOpinion:
    """Ask the reviewer if there is one and no limit is hit. One that fails is told in the trace and left out."""
    reviewer = deps.second_opinion
    if reviewer is None:
        return ReviewerOpinion(state, outcome="failed" if deps.reviewer_lost else "none")
    state = deps.cap_limits(state)
    if state.budget.find_exceeded_limit(deps.active_seconds(state)) or deps.find_spending_refusal():
        return ReviewerOpinion(state, outcome="skipped")
    cited = {evidence for claim in draft.claims for evidence in claim.evidence}
    seen = [o for o in deps.observed.upto(state.observations) if f"E{o.number}" in cited]
    took = deps.stopwatch()
    try:
        reviewed = await deps.stopping.run(reviewer.review(state, draft, seen, checked.gaps))
    except PlannerError as error:
        if isinstance(error, ModelUnavailableError):
            deps.reviewer_lost = True
        deps.trace.emit("warning", code="reviewer", message=str(error), hint="checked by the program alone")
        paid = charge_model_cost(state, error, deps, role="reviewer", ms=took())
        return ReviewerOpinion(paid, outcome="failed")
    gaps = (
        ()
        if reviewed.review.accepted
        else tuple(f"The reviewer: {gap}"[:1000] for gap in reviewed.review.gaps)
    )
    paid = charge_model_cost(state, reviewed, deps, role="reviewer", ms=took())
    return ReviewerOpinion(paid, gaps, "checks+reviewer", "objected" if gaps else "accepted")
