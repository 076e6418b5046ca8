"""The ranking beside a run that made none: a failing model must not leave less than no model would.

It stands beside a conclusion about a cause, which may then blame the first suspect or rule it out, and beside a run
that found none.

One read call of the program's own, like any other on the record; no model is asked. The check of the conclusion then
puts the first suspect before all else, in words that say whose it is.
"""

from opsleuth.models.planner import OFFLINE
from opsleuth.nodes.act.node import finish_call
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, CallGate, CallRequest
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation
from opsleuth.state.run_status import StopReason, Verdict
from opsleuth.verification.unaddressed_suspects import RANKING

PURPOSE = "what the ranking shows, since no cause was found"
BESIDE_DRAFT = "what the ranking shows beside a conclusion that was drawn without one"
GIVEN_UP = frozenset(
    {
        StopReason.TURN_LIMIT,
        StopReason.TOKEN_LIMIT,
        StopReason.COST_LIMIT,
        StopReason.STAGNATION,
        StopReason.MODEL_UNAVAILABLE,
        StopReason.MALFORMED_DECISIONS,
    }
)
"""Ends that still leave time for a look. Where a person must fix something, or said stop, nothing more is done."""


def found_nothing(state: Investigation, said: Conclusion) -> bool:
    """Whether the run ends, by itself or at a limit, with nothing found. A question on an ended run asks for no cause."""
    ends = state.stop_reason is None or state.stop_reason in GIVEN_UP
    return state.follow_up is None and ends and said.verdict is Verdict.INCONCLUSIVE and not said.causes


def blames_unranked(state: Investigation, draft: Conclusion) -> bool:
    """Whether the planner drew a conclusion about a cause; what it rests on shows once a ranking stands beside it."""
    drawn = draft.verdict is Verdict.HEALTHY or (draft.verdict is Verdict.CAUSE_FOUND and bool(draft.causes))
    return state.draft is not None and state.stop_reason is None and state.follow_up is None and drawn


async def add_fallback_ranking(state: Investigation, deps: Deps, purpose: str = PURPOSE) -> Investigation:
    """The state with a ranking as its newest observation; as it was where there is one, or none may be made."""
    call = _build_ranking_call(state, deps, purpose)
    if call is None:
        return state
    if deps.store.results.get(deps.run, call.id, call.digest) is None:
        await finish_call(call, state, deps)
    if result := deps.store.results.get(deps.run, call.id, call.digest):
        deps.observed.record(call, result, state.budget.used.turns)
    return state.changed(observations=call.number, budget=state.budget.plus(tool_calls=1))


def _build_ranking_call(state: Investigation, deps: Deps, purpose: str) -> Call | None:
    """The call, where the tool is offered and free. The offline investigator has ranked, or never came to it."""
    made = any(o.tool == RANKING for o in deps.observed.upto(state.observations))
    if made or deps.planner.name == OFFLINE or deps.toolbox.known(RANKING) is None:
        return None
    request = CallRequest(tool=RANKING, purpose=purpose)
    call = deps.toolbox.check(request).call(
        request, call_id=f"{deps.run}/ranking", number=state.observations + 1
    )
    return call if call.gate is CallGate.FREE else None
