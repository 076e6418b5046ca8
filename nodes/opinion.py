"""The reviewer's word on a draft, after the deterministic checks and within the same limits."""

from typing import Literal, NamedTuple

from opsleuth.models.planner import ModelUnavailable, PlannerError
from opsleuth.nodes.charge import charged
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.review import Checked
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation

By = Literal["checks", "reviewer", "checks+reviewer"]


class Opinion(NamedTuple):
    """The state after the review was paid for, what the reviewer objects to, and who has looked."""

    state: Investigation
    objections: tuple[str, ...] = ()
    by: By = "checks"


async def second_opinion(draft: Conclusion, checked: Checked, state: Investigation, deps: Deps) -> Opinion:
    """Ask the reviewer if there is one and no limit is hit. One that fails is told in the trace and left out."""
    reviewer = deps.second_opinion
    if reviewer is None or state.budget.exceeded(deps.active_seconds(state)):
        return Opinion(state)
    cited = {evidence for claim in draft.claims for evidence in claim.evidence}
    seen = [o for o in deps.observed.upto(state.observations) if f"E{o.number}" in cited]
    took = deps.stopwatch()
    try:
        reviewed = await deps.stopping.run(reviewer.review(state, draft, seen, checked.gaps))
    except PlannerError as error:
        if isinstance(error, ModelUnavailable):
            deps.reviewer_lost = True
        deps.trace.emit("warning", code="reviewer", message=str(error), hint="checked by the program alone")
        return Opinion(charged(state, error, deps, role="reviewer", ms=took()))
    gaps = (
        ()
        if reviewed.review.accepted
        else tuple(f"The reviewer: {gap}"[:1000] for gap in reviewed.review.gaps)
    )
    return Opinion(charged(state, reviewed, deps, role="reviewer", ms=took()), gaps, "checks+reviewer")
