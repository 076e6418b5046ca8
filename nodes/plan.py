"""plan: ask the planner for the next step, and turn its decision into checked, numbered, gated calls."""

from pydantic import ValidationError

from opsleuth.models.planner import Decided, Malformed, ModelRefused, ModelUnavailable, PlannerView
from opsleuth.nodes import decide
from opsleuth.nodes.charge import charged
from opsleuth.nodes.deps import Deps, Step
from opsleuth.nodes.halt import with_notes
from opsleuth.nodes.marks import marks
from opsleuth.nodes.progress import STALLED, stalled_notice
from opsleuth.nodes.trace import tell_hypotheses
from opsleuth.state.base import to_json
from opsleuth.state.calls import Call, CallRequest, Gate, Risk
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation, Notice
from opsleuth.state.outcome import StopReason
from opsleuth.tools.registry import Checked
from opsleuth.tools.spec import InvalidArguments


async def plan(state: Investigation, deps: Deps) -> Step:
    """One turn's decision. A limit is checked before the planner is asked; a bad decision is told to it.

    A run that was stopped comes by once more when its last change has been checked: no planner is asked then.
    """
    if state.stop_reason is not None:
        return Step(state, "verify")
    if limit := state.budget.exceeded(deps.active_seconds(state)):
        return _stop(state, limit, f"the {limit.value.replace('_', ' ')} was reached")
    notes = [asked for asked in deps.store.control.pending(deps.run) if asked.kind == "note"]
    state = with_notes(state.changed(budget=state.budget.plus(turns=1), review=None), [n.text for n in notes])
    view = PlannerView(
        state=state,
        observations=deps.observed.upto(state.observations),
        tools=deps.toolbox.specs,
        not_available=deps.toolbox.not_available,
    )
    took = deps.stopwatch()
    try:
        decided = await deps.stopping.run(deps.planner.decide(view))
    except Malformed as error:
        return _malformed(charged(state, error, deps, ms=took()), deps, str(error))
    except ModelRefused as error:
        return _stop(charged(state, error, deps, ms=took()), StopReason.MODEL_REFUSED, str(error))
    except ModelUnavailable as error:
        return _stop(charged(state, error, deps, ms=took()), StopReason.MODEL_UNAVAILABLE, str(error))
    with deps.store.transaction():  # one wait for the disk, not two
        step = _decided(decided, state, deps, took())
    if notes and not step.state.malformed:
        deps.noted = notes[-1].id
    return step


def _decided(decided: Decided, state: Investigation, deps: Deps, ms: int) -> Step:
    """What comes of a decision that took `ms`: it is charged for, and taken or sent back."""
    state = charged(state, decided, deps, ms=ms)
    if decided.instead:
        deps.trace.emit("warning", code="degraded", message=decided.instead, hint="from this turn on")
    try:
        return _take(decided, state, deps, ms)
    except Malformed as error:
        return _malformed(state, deps, str(error))
    except ValidationError as error:
        return _malformed(state, deps, _out_of_bounds(error))


def _out_of_bounds(error: ValidationError) -> str:
    """What of a decision does not fit into the state: too many steps or hypotheses, a name too long."""
    found = error.errors(include_input=False, include_url=False)[:4]
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in found)


def _take(decided: Decided, before: Investigation, deps: Deps, ms: int) -> Step:
    """Apply a decision that took `ms`; raises `Malformed` with every fault in it."""
    decision = _without_secrets(decided.decision, deps)
    if found := decide.faults(decision, before, deps.observed.upto(before.observations)):
        raise Malformed("; ".join(found))
    calls = tuple(_call(request, i, before, deps) for i, request in enumerate(decision.calls, start=1))
    state = decide.apply(decision, before).changed(
        malformed=0,
        notices=marks(decision, before, deps),
        pending=calls,
        draft=decision.conclusion or before.draft,
    )
    _trace_decision(decision, before, state, deps, ms)
    if decision.conclusion is not None:
        return Step(state, "verify")
    if not calls:
        return _thought(state)
    return Step(state, "approve" if any(call.gate is Gate.ASK for call in calls) else "act")


def _without_secrets(decision: Decision, deps: Deps) -> Decision:
    """The decision redacted, before any of it enters the state. Raises Malformed for a secret among arguments."""
    clean, hits = deps.redact(to_json(decision))
    if not hits:
        return decision
    for number, (call, as_clean) in enumerate(zip(decision.calls, clean["calls"], strict=True), start=1):
        if call.arguments != as_clean["arguments"]:
            raise Malformed(
                f"call {number} ({call.tool}): its arguments hold a secret; name where it is kept, never the secret itself"
            )
    return Decision.model_validate(clean)


def _thought(state: Investigation) -> Step:
    """A turn that only changed the plan or the hypotheses: allowed, but nothing new came of it."""
    stalled = state.stalled + 1
    state = state.changed(stalled=stalled, notices=(*state.notices, *stalled_notice(stalled))[-12:])
    if stalled >= STALLED:
        return _stop(state, StopReason.STAGNATION, f"{stalled} turns in a row asked for nothing new")
    return Step(state, "plan")


def _call(request: CallRequest, index: int, state: Investigation, deps: Deps) -> Call:
    try:
        checked = deps.toolbox.check(request)
    except InvalidArguments as error:
        raise Malformed(f"call {index} ({request.tool}): {error}") from None
    if request.repeat_of is not None and checked.spec.risk is not Risk.READ:
        _check_repeat(index, request, checked, deps)
    call_id = f"{deps.run}/t{state.budget.used.turns}c{index}"
    return checked.call(request, call_id=call_id, number=state.observations + index)


def _check_repeat(index: int, request: CallRequest, checked: Checked, deps: Deps) -> None:
    """Doing a change again on purpose names the one that was made. Raises `Malformed`."""
    same = deps.store.effects.lookup(deps.run, request.tool, checked.canonical, checked.target)
    if same is None or same.call_id != request.repeat_of:
        known = f"the latest is {same.call_id}" if same else "there is none: leave repeat_of out"
        raise Malformed(f"call {index} ({request.tool}): repeat_of names no equal change; {known}")


def _malformed(state: Investigation, deps: Deps, text: str) -> Step:
    count, limit = state.malformed + 1, state.budget.limits.malformed
    deps.trace.emit("warning", code="malformed", message=text, hint=f"{count} of {limit} in a row")
    notice = Notice(code="malformed", text=f"Your last decision was not valid: {text}"[:1000])
    state = state.changed(malformed=count, notices=(notice,), pending=())
    if count >= limit:
        detail = f"{count} decisions in a row were not valid; the last: {text}"
        return _stop(state, StopReason.MALFORMED_DECISIONS, detail)
    return Step(state, "plan")


def _stop(state: Investigation, reason: StopReason, detail: str) -> Step:
    return Step(state.changed(stop_reason=reason, stop_detail=detail[:1000], pending=()), "verify")


def _trace_decision(
    decision: Decision, before: Investigation, after: Investigation, deps: Deps, ms: int
) -> None:
    if after.plan != before.plan:
        changed = [s for s in after.plan if s not in before.plan]
        deps.trace.later(
            "plan.updated", steps=[{"id": s.id, "text": s.text, "status": s.status} for s in changed]
        )
    tell_hypotheses(before.hypotheses, after.hypotheses, deps.trace)
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
