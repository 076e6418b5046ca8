"""What appears in a call or a plan step although nothing observed holds it: told to the planner in the same turn."""

from collections.abc import Sequence

from opsleuth.nodes.deps import Deps
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.verification.unseen_values import RunObservations, find_unseen_in_call, find_unseen_in_text

MOST = 6


def notices_for_unseen_names(
    decision: Decision, state: Investigation, deps: Deps
) -> tuple[PlannerNotice, ...]:
    """One notice for each name or number of the decision that no alert, topology or observation holds."""
    seen = RunObservations(
        views=deps.observed.views(state.observations),
        texts=list_given_texts(state),
        names=deps.services(),
        window=state.window,
    )
    found = [item for call in decision.calls for item in find_unseen_in_call(call, seen)]
    found += [item for step in decision.plan for item in find_unseen_in_text(step.text, "plan", seen)]
    return tuple(
        PlannerNotice(
            code="unseen",
            text=f"{item.value!r} ({item.where}) appears in no alert and no observation so far"[:1000],
        )
        for item in found[:MOST]
    )


def list_given_texts(state: Investigation) -> Sequence[str]:
    """The question, and all words of the alert that the planner is shown."""
    if state.alert is None:
        return [state.question]
    labels = [str(value) for value in state.alert.labels.values()]
    return [state.question, state.alert.text, state.alert.service or "", state.alert.metric or "", *labels]
