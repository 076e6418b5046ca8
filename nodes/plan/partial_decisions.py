"""What of a decision can be used: one wrong part costs itself, not the valid calls beside it. Pure functions."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opsleuth.models.planner import MalformedReplyError, Observation
from opsleuth.nodes.plan.decision_checks import find_hypothesis_faults, find_plan_faults
from opsleuth.state.calls import Call, CallRequest
from opsleuth.state.decision import Decision, HypothesisChange, PlanChange
from opsleuth.state.investigation import Investigation

NOT_RUN = "Not run, the other calls of that turn were"


class KeptCalls(NamedTuple):
    """The calls of a reply that are valid, as they were requested and as they are made; `faults` says why others are not."""

    requests: tuple[CallRequest, ...]
    calls: tuple[Call, ...]
    faults: tuple[str, ...]


def keep_valid_calls(
    requests: Sequence[CallRequest], build_call: Callable[[CallRequest, int, int], Call]
) -> KeptCalls:
    """The calls that `build_call(request, place, number)` makes; raises MalformedReplyError where it makes none of several."""
    kept: list[tuple[CallRequest, Call]] = []
    faults: list[str] = []
    for place, request in enumerate(requests, start=1):
        try:
            kept.append((request, build_call(request, place, len(kept) + 1)))
        except MalformedReplyError as error:
            faults.append(str(error))
    if faults and not kept:
        raise MalformedReplyError("; ".join(faults))
    return KeptCalls(
        requests=tuple(request for request, _ in kept),
        calls=tuple(call for _, call in kept),
        faults=tuple(f"{NOT_RUN}: {fault}" for fault in faults),
    )


def drop_unusable_changes(
    decision: Decision, state: Investigation, observed: Sequence[Observation]
) -> tuple[Decision, list[str]]:
    """A decision with calls, without tags and changes that name what does not exist; and what was dropped, in words.

    A change that opens a hypothesis or a step stays, whatever is wrong with it: the others are numbered after it.
    """
    if not decision.calls:
        return decision, []
    hints: list[str] = []

    def is_usable(change: PlanChange | HypothesisChange, faults: Sequence[str]) -> bool:
        if change.id is None or not faults:
            return True
        hints.extend(f"Left out, the calls of that turn ran: {fault}" for fault in faults)
        return False

    plan = [step for step in decision.plan if is_usable(step, list(find_plan_faults([step], state)))]
    hypotheses = [
        change
        for change in decision.hypotheses
        if is_usable(change, list(find_hypothesis_faults(change, state, observed)))
    ]
    opened = sum(change.id is None for change in decision.hypotheses)
    known = {f"H{n}" for n in range(1, len(state.hypotheses) + opened + 1)}
    calls = [_drop_unknown_tag(call, known) for call in decision.calls]
    hints += _describe_dropped_tags(decision.calls, known)
    changed = {"plan": tuple(plan), "hypotheses": tuple(hypotheses), "calls": tuple(calls)}
    return decision.model_copy(update=changed), hints


def _drop_unknown_tag(call: CallRequest, known: set[str]) -> CallRequest:
    return call if call.tests is None or call.tests in known else call.model_copy(update={"tests": None})


def _describe_dropped_tags(calls: Sequence[CallRequest], known: set[str]) -> list[str]:
    """One sentence for each unknown hypothesis, with all tools that were called for it."""
    tools: dict[str, list[str]] = {}
    for call in calls:
        if call.tests is not None and call.tests not in known:
            tools.setdefault(call.tests, []).append(call.tool)
    choices = ", ".join(sorted(known, key=lambda id_: int(id_[1:]))) or "none yet"
    return [
        f"{', '.join(dict.fromkeys(names))} ran without the tag {tag}: no such hypothesis is open (open: {choices}); "
        "open it with hypothesis_update"
        for tag, names in tools.items()
    ]
