"""Checks before a person is asked: is the change recorded already, and does it still make sense."""

from opsleuth.checkpoints.approvals import Approval
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, CallGate, ResultStatus, Risk
from opsleuth.state.investigation import Investigation

REFUSES = frozenset({ResultStatus.NOT_PERMITTED, ResultStatus.INVALID_ARGUMENTS})


async def precheck_gated_calls(state: Investigation, deps: Deps) -> Investigation | None:
    """The state with every gated call looked at, or None if that is done.

    A call that the ledger holds needs no question: it gets what is recorded. One whose precheck refuses is not
    worth a person's time.
    """
    if not any(needs_precheck(call) for call in state.pending):
        return None
    calls = [
        await _precheck_call(call, state, deps) if needs_precheck(call) else call for call in state.pending
    ]
    return state.changed(pending=tuple(calls))


def needs_precheck(call: Call) -> bool:
    return call.gate is CallGate.ASK and call.precheck is None


async def _precheck_call(call: Call, state: Investigation, deps: Deps) -> Call:
    if call.risk is not Risk.READ:
        same = deps.store.effects.lookup(deps.run, call.tool, call.arguments, call.target)
        if same is not None and same.call_id != call.repeat_of:
            return with_gate(call, CallGate.FREE, f"{same.status} since {same.started} as {same.call_id}")
    if denied := _find_denial(call, deps):
        return with_gate(call, CallGate.DENIED, denied.reason)
    spec = deps.toolbox.known(call.tool)
    if spec is None or spec.precheck is None:
        return with_gate(call, call.gate, call.gate_reason, "")
    looked = await deps.read(call, deps.context(state, call), deps.seconds_left(state), "precheck")
    if looked.status in REFUSES and not _was_edited(call, deps):
        return with_gate(call, CallGate.REFUSED, looked.headline, looked.headline)
    if looked.status in REFUSES:
        refused = with_gate(call, call.gate, call.gate_reason, f"REFUSED: {looked.headline}")
        return Call.model_validate(refused.model_dump() | {"unfit": True})
    text = looked.headline if looked.status is ResultStatus.OK else f"could not be made: {looked.headline}"
    return with_gate(call, call.gate, call.gate_reason, text)


def _was_edited(call: Call, deps: Deps) -> bool:
    """Whether a person has just made this call of another that was asked: it goes back to that person, whatever it is."""
    asked = deps.store.approvals.list(deps.run, "pending")
    return any(a.subject == call.id and a.document.get("digest") != call.digest for a in asked)


def _find_denial(call: Call, deps: Deps) -> Approval | None:
    """The denial of an equal call, in this run or one that it was forked from: a person is not asked twice."""
    for member, _ in deps.store.runs.lineage(deps.run):
        for approval in reversed(deps.store.approvals.list(member, "denied")):
            if approval.document.get("digest", approval.digest) == call.digest:
                return approval
    return None


def with_gate(call: Call, gate: CallGate, reason: str, precheck: str | None = None) -> Call:
    """The call with another gate."""
    changes = {
        "gate": gate,
        "gate_reason": reason[:1000],
        "precheck": precheck[:1000] if precheck else precheck,
    }
    return Call.model_validate(call.model_dump() | changes)
