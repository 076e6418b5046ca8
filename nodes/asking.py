"""What is done before a person is asked: is the change recorded already, and does it make sense as things stand."""

from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, Gate, ResultStatus, Risk
from opsleuth.state.investigation import Investigation

REFUSES = frozenset({ResultStatus.NOT_PERMITTED, ResultStatus.INVALID_ARGUMENTS})


async def prepared(state: Investigation, deps: Deps) -> Investigation | None:
    """The state with every gated call looked at, or None if that is done.

    A call that the ledger holds needs no question: it gets what is recorded. One whose precheck refuses is not
    worth a person's time.
    """
    if not any(unprepared(call) for call in state.pending):
        return None
    calls = [await _prepared(call, state, deps) if unprepared(call) else call for call in state.pending]
    return state.changed(pending=tuple(calls))


def unprepared(call: Call) -> bool:
    return call.gate is Gate.ASK and call.precheck is None


async def _prepared(call: Call, state: Investigation, deps: Deps) -> Call:
    if call.risk is not Risk.READ:
        same = deps.store.effects.lookup(deps.run, call.tool, call.arguments, call.target)
        if same is not None and same.call_id != call.repeat_of:
            return gated(call, Gate.FREE, f"{same.status} since {same.started} as {same.call_id}")
    spec = deps.toolbox.known(call.tool)
    if spec is None or spec.precheck is None:
        return gated(call, call.gate, call.gate_reason, "")
    looked = await deps.read(call, deps.context(state, call), deps.seconds_left(state), "precheck")
    if looked.status in REFUSES:
        return gated(call, Gate.REFUSED, looked.headline, looked.headline)
    text = looked.headline if looked.status is ResultStatus.OK else f"could not be made: {looked.headline}"
    return gated(call, call.gate, call.gate_reason, text)


def gated(call: Call, gate: Gate, reason: str, precheck: str | None = None) -> Call:
    """The call with another gate."""
    changes = {
        "gate": gate,
        "gate_reason": reason[:1000],
        "precheck": precheck[:1000] if precheck else precheck,
    }
    return Call.model_validate(call.model_dump() | changes)
