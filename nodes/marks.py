"""What stands in a call or a plan step although nothing observed holds it: told to the planner in the same turn."""

from collections.abc import Sequence

from opsleuth.nodes.deps import Deps
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation, Notice
from opsleuth.verification.unseen import Seen, unseen_in_call, unseen_in_text

MOST = 6


def marks(decision: Decision, state: Investigation, deps: Deps) -> tuple[Notice, ...]:
    """One notice for each name or number of the decision that no alert, topology or observation holds."""
    seen = Seen(
        views=deps.observed.views(state.observations),
        texts=_said(state),
        names=deps.services(),
        window=state.window,
    )
    found = [item for call in decision.calls for item in unseen_in_call(call, seen)]
    found += [item for step in decision.plan for item in unseen_in_text(step.text, "plan", seen)]
    return tuple(
        Notice(
            code="unseen",
            text=f"{item.value!r} ({item.where}) stands in no alert and no observation so far"[:1000],
        )
        for item in found[:MOST]
    )


def _said(state: Investigation) -> Sequence[str]:
    if state.alert is None:
        return [state.question]
    labels = [str(value) for value in state.alert.labels.values()]
    return [state.question, state.alert.text, state.alert.service or "", *labels]
