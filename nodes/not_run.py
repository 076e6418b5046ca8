"""Results of calls for which no tool runs: refused, stopped, out of time, known already, or not known to anyone."""

from opsleuth.checkpoints.effects import EffectRow
from opsleuth.state.calls import Call, CallGate, ResultStatus
from opsleuth.state.results import CallResult, Observation


def refuse_call(call: Call) -> CallResult:
    """Not permitted. `decided` in the record says who refused; it is absent where the target itself said no."""
    if call.refused_by_target:
        text, decided = f"not executed: {call.gate_reason}", {}
    else:
        denied = call.gate is CallGate.DENIED
        text = "denied by the operator" if denied else "refused by policy"
        text = f"{text}: {call.gate_reason}" if call.gate_reason else text
        decided = {"decided": "operator" if denied else "policy"}
    return CallResult.not_run(call.id, ResultStatus.NOT_PERMITTED, text, record={"error": text, **decided})


def stop_call(call: Call) -> CallResult:
    """Canceled, because an operator stopped the run before the call began."""
    return CallResult.not_run(call.id, ResultStatus.CANCELED, "not begun: an operator stopped the run")


def time_out_call(call: Call) -> CallResult:
    """Out of time before it began: nothing was sent."""
    text = f"not executed: the run's time is used up before {call.tool} was begun"
    return CallResult.not_run(call.id, ResultStatus.TIMEOUT, text)


def repeat_answer(call: Call, earlier: Observation) -> CallResult:
    """The recorded answer to an equal read; it cites the evidence of the first one."""
    return CallResult.not_run(
        call.id,
        earlier.status,
        f"already recorded as {earlier.evidence}: {earlier.headline}",
        record=earlier.record,
        source=earlier.source,
        from_record=earlier.evidence,
    )


def repeat_effect(call: Call, row: EffectRow) -> CallResult:
    """What the ledger holds of this change; nothing is done again."""
    origin = "" if row.call_id.startswith(f"{row.run}/") and row.call_id == call.id else f" as {row.call_id}"
    status, text = _describe_effect_standing(row)
    text = f"{text} (recorded{origin} at {row.started}): not executed again"
    record = {
        "effect": row.call_id,
        "run": row.run,
        "status": row.status,
        "outcome": row.outcome,
        "started": row.started,
        "result": dict(row.result),
    }
    error = {} if status is ResultStatus.OK else {"error": text}
    return CallResult.not_run(call.id, status, text, record=record | error)


def leave_unknown(call: Call, why: str) -> CallResult:
    """An effect whose outcome nobody saw: a person has to find out."""
    text = f"it is not known whether {call.tool} was executed: {why}"
    return CallResult.not_run(call.id, ResultStatus.UNKNOWN, text)


def _describe_effect_standing(row: EffectRow) -> tuple[ResultStatus, str]:
    if row.happened:
        return ResultStatus.OK, f"{row.tool} was executed"
    if row.status == "failed_clean":
        return ResultStatus.UNAVAILABLE, f"{row.tool} was tried and refused: {row.result.get('error', '')}"
    if row.outcome == "absent":
        return ResultStatus.UNAVAILABLE, f"{row.tool} did not happen, a person says"
    return ResultStatus.UNKNOWN, f"it is not known whether {row.tool} was executed: see run {row.run}"
