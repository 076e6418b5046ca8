"""act: run this turn's calls. Every result is stored under its call id before the node returns.

Run again after a crash or a stop, the node finds what is stored and runs only the rest. A change whose approval
has lost its force is asked again; what is done by then stays done.
"""

import asyncio
from collections.abc import Sequence

from langgraph.errors import GraphDrained

from opsleuth.checkpoints.errors import NotApprovedError
from opsleuth.nodes.act.effects import find_valid_grant, is_effect_begun, perform_effect
from opsleuth.nodes.approve.precheck import with_gate
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.nodes.not_run import refuse_call, repeat_answer, stop_call
from opsleuth.nodes.operator_requests import STOPS
from opsleuth.state.calls import Call, CallGate, ResultStatus, Risk
from opsleuth.state.investigation import Investigation
from opsleuth.tools.spec import CallResult


async def act(state: Investigation, deps: Deps) -> NodeStep:
    """Reads side by side, effects one at a time after them, refusals at once."""
    missing = [call for call in state.pending if _is_unanswered(call, deps)]
    asked = await _run_reads_together([call for call in missing if call.risk is Risk.READ], state, deps)
    for call in missing:
        if call.risk is not Risk.READ:
            try:
                await finish_call(call, state, deps)
            except NotApprovedError as why:
                asked[call.id] = str(why)
    if not asked:
        return NodeStep(state, "observe")
    for call_id, reason in asked.items():
        _mark_approval_stale(call_id, reason, deps)
    pending = tuple(with_gate(c, CallGate.ASK, asked[c.id]) if c.id in asked else c for c in state.pending)
    return NodeStep(state.changed(pending=pending), "approve")


async def _run_reads_together(calls: Sequence[Call], state: Investigation, deps: Deps) -> dict[str, str]:
    """Run them side by side; returns those that a person must be asked about (again), each with the reason."""
    outcomes = await asyncio.gather(
        *(finish_call(call, state, deps) for call in calls), return_exceptions=True
    )
    for outcome in outcomes:
        if outcome is not None and not isinstance(outcome, NotApprovedError):
            raise outcome
    return {call.id: str(why) for call, why in zip(calls, outcomes, strict=True) if why is not None}


def _mark_approval_stale(call_id: str, why: str, deps: Deps) -> None:
    """What was approved has lost its force: the row says so, and the question is put again."""
    for approval in deps.store.approvals.list(deps.run, "approved"):
        if approval.subject == call_id:
            deps.trace.emit(
                "approval.stale",
                along=lambda a=approval: deps.store.approvals.stale(deps.run, a.id, why),  # type: ignore[misc]
                id=approval.id,
                call=call_id,
                reason=why,
            )


def _is_unanswered(call: Call, deps: Deps) -> bool:
    """Whether the call has no result yet. An ancestor's refusal says nothing about a call approved here."""
    result = deps.store.results.get(deps.run, call.id, call.digest)
    if result is None:
        return True
    refused = result.status in (ResultStatus.NOT_PERMITTED, ResultStatus.CANCELED)
    return refused and call.gate is CallGate.APPROVED and not deps.store.results.own(deps.run, call.id)


async def finish_call(call: Call, state: Investigation, deps: Deps) -> None:
    """Run one call, store its result, and say so. The executor turns every failure into a result."""
    ruling = deps.toolbox.ruling(call)  # the policy may have changed since the call was planned
    if ruling.gate is CallGate.REFUSED and not is_effect_begun(call, deps):
        call = with_gate(call, CallGate.REFUSED, ruling.reason)
    if call.gate in (CallGate.DENIED, CallGate.REFUSED):
        result = refuse_call(call)
    elif deps.halted() in STOPS and not is_effect_begun(call, deps):
        result = stop_call(call)
    elif call.risk is Risk.READ and (earlier := deps.observed.answer(call.digest)):
        result = repeat_answer(call, earlier)
    else:
        result = await _run_call(call, state, deps)
    _store_result(call, result, deps)


async def _run_call(call: Call, state: Investigation, deps: Deps) -> CallResult:
    left, context = deps.seconds_left(state), deps.context(state, call)
    if call.risk is not Risk.READ:
        if deps.stopping.wished and not is_effect_begun(call, deps):
            raise GraphDrained("stopped")
        deps.trace.emit("tool.started", id=call.id, tool=call.tool, risk=call.risk)
        return await perform_effect(call, context, left, deps)
    find_valid_grant(call, deps)
    deps.trace.emit("tool.started", id=call.id, tool=call.tool, risk=call.risk)
    return await deps.read(call, context, left)


def _store_result(call: Call, result: CallResult, deps: Deps) -> None:
    """The result and the event that reports it, both or neither."""
    denied = call.gate in (CallGate.DENIED, CallGate.REFUSED) and not call.refused_by_target
    kind = (
        "tool.denied"
        if denied
        else "tool.canceled"
        if result.status is ResultStatus.CANCELED
        else "tool.completed"
    )
    deps.trace.emit(
        kind,
        along=lambda: deps.store.results.put(deps.run, call.id, result, digest=call.digest),
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
