"""The ranking beside a run in which nobody found a cause: a model that fails must not leave less than none would.

One read call of the program's own, like any other on the record; no model is asked. The check of the conclusion then
puts the first suspect before all else, in words that say whose it is.
"""

from opsleuth.models.planner import OFFLINE
from opsleuth.nodes.act import finish
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.observe import stored
from opsleuth.state.calls import Call, CallRequest, Gate
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation
from opsleuth.state.outcome import StopReason, Verdict
from opsleuth.verification.overruled import RANKING

PURPOSE = "what the ranking shows, since no cause was found"
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
"""Ends that still leave time for a look. Where a person must mend something, or said stop, nothing more is done."""


def undecided(state: Investigation, said: Conclusion) -> bool:
    """Whether the run ends, by itself or at a limit, with nothing found."""
    ends = state.stop_reason is None or state.stop_reason in GIVEN_UP
    return ends and said.verdict is Verdict.INCONCLUSIVE and not said.causes


async def ranked(state: Investigation, deps: Deps) -> Investigation:
    """The state with a ranking as its newest observation; as it was where there is one, or none may be made."""
    call = _call(state, deps)
    if call is None:
        return state
    if deps.store.results.get(deps.run, call.id) is None:
        await finish(call, state, deps)
    if result := deps.store.results.get(deps.run, call.id):
        with deps.store.transaction():
            stored(call, result, state, deps)
    return state.changed(observations=call.number, budget=state.budget.plus(tool_calls=1))


def _call(state: Investigation, deps: Deps) -> Call | None:
    """The call, where the tool is offered and free. The offline investigator has ranked, or never came to it."""
    made = any(o.tool == RANKING for o in deps.observed.upto(state.observations))
    if made or deps.planner.name == OFFLINE or deps.toolbox.known(RANKING) is None:
        return None
    request = CallRequest(tool=RANKING, purpose=PURPOSE)
    call = deps.toolbox.check(request).call(
        request, call_id=f"{deps.run}/ranking", number=state.observations + 1
    )
    return call if call.gate is Gate.FREE else None
