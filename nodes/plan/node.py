"""plan: ask the planner for the next step, and turn its decision into checked, numbered, gated calls."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from opsleuth.models.planner import (
    MalformedReplyError,
    ModelRefusedError,
    ModelUnavailableError,
    PlannerResult,
    PlannerView,
)
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.nodes.model_costs import charge_model_cost
from opsleuth.nodes.operator_requests import add_operator_notes
from opsleuth.nodes.plan import decision_checks
from opsleuth.nodes.plan.offered_tools import list_offered_tools
from opsleuth.nodes.plan.partial_decisions import NOT_RUN, drop_unusable_changes, keep_valid_calls
from opsleuth.nodes.plan.unseen_notices import notices_for_unseen_names
from opsleuth.nodes.stagnation import STALLED, describe_stall, stalled_notice
from opsleuth.nodes.trace import trace_hypothesis_changes
from opsleuth.state.base import to_json
from opsleuth.state.calls import Call, CallGate, CallRequest, Risk
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.state.near_limits import find_near_limits
from opsleuth.state.run_status import StopReason
from opsleuth.tools.registry import CheckedCall
from opsleuth.tools.spec import InvalidArgumentsError
from opsleuth.tools.truncation import bound_record

LONGEST_CONCLUSION = 16_000
"""Bytes of one that was not valid, as it is kept to be shown again."""


async def plan(state: Investigation, deps: Deps) -> NodeStep:
    """One turn's decision. A limit is checked before the planner is asked; a bad decision is told to it.

    A run that was stopped comes by once more when its last change has been checked: no planner is asked then.
    """
    if state.stop_reason is not None:
        return NodeStep(state, "verify")
    state = deps.cap_limits(state)
    if limit := state.budget.find_exceeded_limit(deps.active_seconds(state)):
        return _stop_run(state, limit, f"the {limit.value.replace('_', ' ')} was reached")
    if refused := deps.find_spending_refusal():
        return _stop_run(state, refused.reason, refused.text)
    for near in find_near_limits(state.budget, deps.active_seconds(state)):
        deps.warn_of_limit(near.name, near.text)
    notes = [asked for asked in deps.store.control.pending(deps.run) if asked.kind == "note"]
    state = add_operator_notes(
        state.changed(budget=state.budget.plus(turns=1), review=None), [n.text for n in notes]
    )
    view = PlannerView(
        state=state,
        observations=deps.observed.upto(state.observations),
        tools=list_offered_tools(deps),
        not_available=deps.toolbox.not_available,
    )
    took = deps.stopwatch()
    try:
        decided = await deps.stopping.run(deps.planner.decide(view))
    except MalformedReplyError as error:
        state = charge_model_cost(state, error, deps, ms=took())
        return _return_malformed_decision(state, deps, str(error), error.conclusion)
    except ModelRefusedError as error:
        return _stop_run(
            charge_model_cost(state, error, deps, ms=took()), StopReason.MODEL_REFUSED, str(error)
        )
    except ModelUnavailableError as error:
        return _stop_run(
            charge_model_cost(state, error, deps, ms=took()), StopReason.MODEL_UNAVAILABLE, str(error)
        )
    with deps.store.transaction():  # one wait for the disk, not two
        step = _handle_decision(decided, state, deps, took())
    if notes and not step.state.malformed:
        deps.noted = notes[-1].id
    return step


def _handle_decision(decided: PlannerResult, state: Investigation, deps: Deps, ms: int) -> NodeStep:
    """What comes of a decision that took `ms`: it is charged for, and taken or sent back."""
    state = charge_model_cost(state, decided, deps, ms=ms)
    if decided.instead:
        deps.trace.emit("warning", code="degraded", message=decided.instead, hint="from this turn on")
    try:
        return _accept_decision(decided, state, deps, ms)
    except MalformedReplyError as error:
        fault = str(error)
    except ValidationError as error:
        fault = _describe_bound_violations(error)
    concluded = decided.decision.conclusion
    return _return_malformed_decision(state, deps, fault, to_json(concluded) if concluded else None)


def _describe_bound_violations(error: ValidationError) -> str:
    """What of a decision does not fit into the state: too many steps or hypotheses, a name too long."""
    found = error.errors(include_input=False, include_url=False)[:4]
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in found)


def _accept_decision(decided: PlannerResult, before: Investigation, deps: Deps, ms: int) -> NodeStep:
    """Apply a decision that took `ms`; raises `MalformedReplyError` with every fault in it."""
    observed = deps.observed.upto(before.observations)
    decision, dropped = drop_unusable_changes(_redact_decision(decided.decision, deps), before, observed)
    if found := decision_checks.find_decision_faults(decision, before, observed):
        raise MalformedReplyError("; ".join(found))
    kept = keep_valid_calls(
        decision.calls, lambda request, at, number: _build_checked_call(request, at, number, before, deps)
    )
    decision = decision.model_copy(update={"calls": kept.requests})
    unread = [f"{NOT_RUN}: {fault}" for fault in decided.unreadable]
    hints = tuple(
        PlannerNotice(code="dropped", text=deps.redact(text)[0][:1000])
        for text in (*dropped, *kept.faults, *unread)
    )
    calls = _keep_reason(kept.calls, decision.reason)
    state = decision_checks.apply_decision(decision, before).changed(
        malformed=0,
        malformed_conclusion=None,
        notices=(*hints, *notices_for_unseen_names(decision, before, deps))[:12],
        pending=calls,
        draft=decision.conclusion or before.draft,
    )
    for hint in hints:
        deps.trace.emit("warning", code="dropped", message=hint.text, hint="the rest of the decision is used")
    _trace_decision(decision, before, state, deps, ms)
    if decision.conclusion is not None:
        return NodeStep(state, "verify")
    if not calls:
        return _end_turn_without_calls(state)
    return NodeStep(state, "approve" if any(call.gate is CallGate.ASK for call in calls) else "act")


def _redact_decision(decision: Decision, deps: Deps) -> Decision:
    """The decision redacted, before any of it enters the state. Raises MalformedReplyError for a secret among arguments."""
    clean, hits = deps.redact(to_json(decision))
    if not hits:
        return decision
    for number, (call, as_clean) in enumerate(zip(decision.calls, clean["calls"], strict=True), start=1):
        if call.arguments != as_clean["arguments"]:
            raise MalformedReplyError(
                f"call {number} ({call.tool}): its arguments hold a secret; name where it is kept, never the secret itself"
            )
    return Decision.model_validate(clean)


def _end_turn_without_calls(state: Investigation) -> NodeStep:
    """A turn that only changed the plan or the hypotheses: allowed, but nothing new came of it."""
    stalled = state.stalled + 1
    why = "only the plan or a hypothesis was changed"
    state = state.changed(stalled=stalled, notices=(*state.notices, *stalled_notice(stalled, why))[-12:])
    if stalled > STALLED:
        return _stop_run(state, StopReason.STAGNATION, describe_stall(stalled, why))
    return NodeStep(state, "plan")


def _build_checked_call(
    request: CallRequest, index: int, number: int, state: Investigation, deps: Deps
) -> Call:
    """The call that is place `index` of the reply and `number` of those that are made. Raises MalformedReplyError."""
    try:
        checked = deps.toolbox.check(request)
    except InvalidArgumentsError as error:
        raise MalformedReplyError(f"call {index} ({request.tool}): {error}") from None
    if request.repeat_of is not None and checked.spec.risk is not Risk.READ:
        _check_repeat(index, request, checked, deps)
    call_id = f"{deps.run}/t{state.budget.used.turns}c{number}"
    return checked.call(request, call_id=call_id, number=state.observations + number)


def _keep_reason(calls: tuple[Call, ...], reason: str) -> tuple[Call, ...]:
    """The calls, the first of them with the reason for all, unless its purpose says the same."""
    if not calls or reason.strip() in ("", calls[0].purpose.strip()):
        return calls
    return (calls[0].model_copy(update={"reason": reason}), *calls[1:])


def _check_repeat(index: int, request: CallRequest, checked: CheckedCall, deps: Deps) -> None:
    """Doing a change again on purpose names the one that was made. Raises `MalformedReplyError`."""
    same = deps.store.effects.lookup(deps.run, request.tool, checked.canonical, checked.target)
    if same is None or same.call_id != request.repeat_of:
        known = f"the latest is {same.call_id}" if same else "there is none: leave repeat_of out"
        raise MalformedReplyError(
            f"call {index} ({request.tool}): repeat_of must name an identical change; {known}"
        )


def _return_malformed_decision(
    state: Investigation, deps: Deps, text: str, conclusion: Mapping[str, Any] | None
) -> NodeStep:
    """The planner is told what is wrong, and shown the conclusion that it sent, redacted and bounded."""
    count, limit = state.malformed + 1, state.budget.limits.malformed
    deps.trace.emit("warning", code="malformed", message=text, hint=f"{count} of {limit} in a row")
    notice = PlannerNotice(code="malformed", text=f"Your last decision was not valid: {text}"[:1000])
    shown = bound_record(deps.redact(dict(conclusion))[0], LONGEST_CONCLUSION) if conclusion else None
    state = state.changed(malformed=count, malformed_conclusion=shown, notices=(notice,), pending=())
    if count >= limit:
        detail = f"{count} decisions in a row were not valid; the last: {text}"
        return _stop_run(state, StopReason.MALFORMED_DECISIONS, detail)
    return NodeStep(state, "plan")


def _stop_run(state: Investigation, reason: StopReason, detail: str) -> NodeStep:
    return NodeStep(state.changed(stop_reason=reason, stop_detail=detail[:1000], pending=()), "verify")


def _trace_decision(
    decision: Decision, before: Investigation, after: Investigation, deps: Deps, ms: int
) -> None:
    if after.plan != before.plan:
        changed = [s for s in after.plan if s not in before.plan]
        deps.trace.later(
            "plan.updated", steps=[{"id": s.id, "text": s.text, "status": s.status} for s in changed]
        )
    trace_hypothesis_changes(before.hypotheses, after.hypotheses, deps.trace)
    for call in after.pending:
        deps.trace.later(
            "tool.requested",
            id=call.id,
            evidence=f"E{call.number}",
            tool=call.tool,
            args=call.arguments,
            why=call.purpose,
            risk=call.risk,
            gate=call.gate,
        )
    deps.trace.emit(
        "decision.made",
        reason=decision.reason,
        calls=[call.id for call in after.pending],
        concludes=decision.conclusion is not None,
        ms=ms,
    )
