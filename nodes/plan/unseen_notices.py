"""What appears in a call or a plan step although nothing observed holds it: told to the planner in the same turn."""

from collections.abc import Sequence

from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import CallRequest, ResultStatus
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.verification.conclusion_basis import EvidenceView
from opsleuth.verification.unseen_values import (
    RunObservations,
    UnseenValue,
    find_unseen_in_call,
    find_unseen_in_text,
)

MOST = 6


def notices_for_unseen_names(
    decision: Decision, state: Investigation, deps: Deps
) -> tuple[PlannerNotice, ...]:
    """One notice for each name or number of the decision that no alert, topology or observation holds."""
    seen = _gather_observations(state, deps, deps.observed.views(state.observations))
    found = [item for call in decision.calls for item in find_unseen_in_call(call, seen)]
    found += [item for step in decision.plan for item in find_unseen_in_text(step.text, "plan", seen)]
    return tuple(PlannerNotice(code="unseen", text=_describe_unseen(item)) for item in found[:MOST])


def drop_refuted_notices(
    notices: Sequence[PlannerNotice], state: Investigation, deps: Deps, observed: int
) -> tuple[PlannerNotice, ...]:
    """The notices without those about names and numbers that one of the first `observed` results has shown since.

    Only results with data count: an error repeats the name that it was asked for.
    """
    if not any(notice.code == "unseen" for notice in notices):
        return tuple(notices)
    answered = [view for view in deps.observed.views(observed) if view.status is ResultStatus.OK]
    seen = _gather_observations(state, deps, answered)
    requests = [CallRequest(tool=c.tool, arguments=c.arguments, purpose=c.purpose) for c in state.pending]
    still = {_describe_unseen(item) for call in requests for item in find_unseen_in_call(call, seen)}
    still |= {
        _describe_unseen(u) for step in state.plan for u in find_unseen_in_text(step.text, "plan", seen)
    }
    return tuple(notice for notice in notices if notice.code != "unseen" or notice.text in still)


def _gather_observations(state: Investigation, deps: Deps, views: Sequence[EvidenceView]) -> RunObservations:
    return RunObservations(
        views=views, texts=list_given_texts(state), names=deps.services(), window=state.window
    )


def _describe_unseen(item: UnseenValue) -> str:
    return f"{item.value!r} ({item.where}) appears in no alert and no observation so far"[:1000]


def list_given_texts(state: Investigation) -> Sequence[str]:
    """The question, and all words of the alert that the planner is shown."""
    if state.alert is None:
        return [state.question]
    labels = [str(value) for value in state.alert.labels.values()]
    return [state.question, state.alert.text, state.alert.service or "", state.alert.metric or "", *labels]
