"""act: run this turn's calls. Every result is stored under its call id before the node returns.

Run again after a crash or a stop, the node finds what is stored and runs only the rest. A change whose approval
has lost its force is asked again; what is done by then stays done.
"""

import asyncio
from collections.abc import Sequence

from langgraph.errors import GraphDrained

from opsleuth.checkpoints.errors import NotApproved
from opsleuth.models.planner import Observation
from opsleuth.nodes.asking import gated
from opsleuth.nodes.deps import Deps, Step
from opsleuth.nodes.effects import begun, granted, perform
from opsleuth.nodes.halt import STOPS
from opsleuth.state.calls import Call, Gate, ResultStatus, Risk
from opsleuth.state.investigation import Investigation
from opsleuth.tools.spec import CallResult


async def act(state: Investigation, deps: Deps) -> Step:
    """Reads side by side, effects one at a time after them, refusals at once."""
    missing = [call for call in state.pending if _open(call, deps)]
    asked = await _reads([call for call in missing if call.risk is Risk.READ], state, deps)
    for call in missing:
        if call.risk is not Risk.READ:
            try:
                await finish(call, state, deps)
            except NotApproved as why:
                asked[call.id] = str(why)
    if not asked:
        return Step(state, "observe")
    for call_id, reason in asked.items():
        _withdraw(call_id, reason, deps)
    pending = tuple(gated(c, Gate.ASK, asked[c.id]) if c.id in asked else c for c in state.pending)
    return Step(state.changed(pending=pending), "approve")


async def _reads(calls: Sequence[Call], state: Investigation, deps: Deps) -> dict[str, str]:
    """Run them side by side; returns those that a person must be asked about (again), each with the reason."""
    outcomes = await asyncio.gather(*(finish(call, state, deps) for call in calls), return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None and not isinstance(outcome, NotApproved):
            raise outcome
    return {call.id: str(why) for call, why in zip(calls, outcomes, strict=True) if why is not None}


def _withdraw(call_id: str, why: str, deps: Deps) -> None:
    """What was approved has lost its force: the row says so, and the question is put anew."""
    for approval in deps.store.approvals.list(deps.run, "approved"):
        if approval.subject == call_id:
            deps.trace.emit(
                "approval.stale",
                along=lambda a=approval: deps.store.approvals.stale(deps.run, a.id, why),  # type: ignore[misc]
                id=approval.id,
                call=call_id,
                reason=why,
            )


def _open(call: Call, deps: Deps) -> bool:
    """Whether the call has no result yet. An ancestor's refusal says nothing about a call approved here."""
    result = deps.store.results.get(deps.run, call.id)
    if result is None:
        return True
    refused = result.status in (ResultStatus.NOT_PERMITTED, ResultStatus.CANCELED)
    return refused and call.gate is Gate.APPROVED and not deps.store.results.own(deps.run, call.id)


async def finish(call: Call, state: Investigation, deps: Deps) -> None:
    """Run one call, store its result, and say so. The executor turns every failure into a result."""
    ruling = deps.toolbox.ruling(call)  # the policy may have changed since the call was planned
    if ruling.gate is Gate.REFUSED and not begun(call, deps):
        call = gated(call, Gate.REFUSED, ruling.reason)
    if call.gate in (Gate.DENIED, Gate.REFUSED):
        result = _refused(call)
    elif deps.halted() in STOPS and not begun(call, deps):
        result = _not_begun(call)
    elif call.risk is Risk.READ and (earlier := deps.observed.answer(call.digest)):
        result = _from_record(call, earlier)
    else:
        result = await _run(call, state, deps)
    _store(call, result, deps)


async def _run(call: Call, state: Investigation, deps: Deps) -> CallResult:
    left, context = deps.seconds_left(state), deps.context(state, call)
    if call.risk is not Risk.READ:
        if deps.stopping.wished and not begun(call, deps):
            raise GraphDrained("stopped")
        deps.trace.emit("tool.started", id=call.id, tool=call.tool, risk=call.risk)
        return await perform(call, context, left, deps)
    granted(call, deps)
    deps.trace.emit("tool.started", id=call.id, tool=call.tool, risk=call.risk)
    return await deps.read(call, context, left)


def _refused(call: Call) -> CallResult:
    """Not run. `decided` in the record says who refused; it is absent where the target itself said no."""
    if call.refused_by_target:
        text, record = f"not executed: {call.gate_reason}", {}
    elif call.gate is Gate.DENIED:
        text, record = "denied by the operator", {"decided": "operator"}
    else:
        text, record = "refused by policy", {"decided": "policy"}
    if record and call.gate_reason:
        text = f"{text}: {call.gate_reason}"
    return CallResult(
        call_id=call.id,
        status=ResultStatus.NOT_PERMITTED,
        record={"error": text, **record},
        headline=text,
        tries=0,
    )


def _not_begun(call: Call) -> CallResult:
    text = "not begun: an operator stopped the run"
    return CallResult(
        call_id=call.id, status=ResultStatus.CANCELED, record={"error": text}, headline=text, tries=0
    )


def _from_record(call: Call, earlier: Observation) -> CallResult:
    return CallResult(
        call_id=call.id,
        status=earlier.status,
        record=earlier.record,
        headline=f"already recorded as {earlier.evidence}: {earlier.headline}",
        source=earlier.source,
        from_record=earlier.evidence,
        tries=0,
    )


def _store(call: Call, result: CallResult, deps: Deps) -> None:
    """The result and the event that tells of it, both or neither."""
    denied = call.gate in (Gate.DENIED, Gate.REFUSED) and not call.refused_by_target
    kind = (
        "tool.denied"
        if denied
        else "tool.canceled"
        if result.status is ResultStatus.CANCELED
        else "tool.completed"
    )
    deps.trace.emit(
        kind,
        along=lambda: deps.store.results.put(deps.run, call.id, result),
        id=call.id,
        tool=call.tool,
        args=call.arguments,
        why=call.purpose,
        risk=call.risk,
        status=result.status,
        evidence=result.from_record or f"E{call.number}",
        headline=result.headline,
        spark=list(result.spark),
        source=result.source,
        scanned=result.scanned,
        matched=result.matched,
        tries=result.tries,
        ms=result.ms,
        error=result.record.get("error") if result.status.is_error else None,
    )
