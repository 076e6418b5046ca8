"""observe: results become observations. Pure but for storing them, which is idempotent by number."""

from collections.abc import Iterable, Mapping, Sequence

from opsleuth.analysis.prompt_injection import find_injected_instruction
from opsleuth.models.planner import Observation
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.nodes.plan.unseen_notices import drop_refuted_notices
from opsleuth.nodes.stagnation import STALLED, describe_stall, explain_stalled_turn, stalled_notice
from opsleuth.state.calls import CallGate, ResultStatus, Risk
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.state.run_status import StopReason


async def observe(state: Investigation, deps: Deps) -> NodeStep:
    """One observation for each pending call; then decide whether anything new came of this turn."""
    deps.warn()
    deps.observed.upto(state.observations)
    asked = {call.number: deps.observed.times_answered(call.tool, call.arguments) for call in state.pending}
    results = {call.id: deps.store.results.get(deps.run, call.id, call.digest) for call in state.pending}
    if missing := [call_id for call_id, result in results.items() if result is None]:
        raise RuntimeError(
            f"no stored result for {', '.join(missing)}: act ends only when every call has one"
        )
    with deps.store.transaction():
        turn = state.budget.used.turns
        new = [
            deps.observed.record(call, result, turn) for call in state.pending if (result := results[call.id])
        ]
    _report_injected_instructions(new, deps)
    stalled = 0 if _made_progress(new, asked, state.budget.limits.repeats) else state.stalled + 1
    why = explain_stalled_turn(new, state.pending) if stalled else ""
    effects = tuple(
        c.id
        for c in state.pending
        if c.risk is not Risk.READ and c.gate in (CallGate.FREE, CallGate.APPROVED)
    )
    notices = drop_refuted_notices(state.notices, state, deps, state.observations + len(new))
    state = state.changed(
        observations=state.observations + len(new),
        pending=(),
        unverified=effects,
        stalled=stalled,
        notices=(
            *notices,
            *_notices_for_planner(new, deps.executor.breaker.open_tools()),
            *stalled_notice(stalled, why),
        )[-12:],
        budget=state.budget.plus(tool_calls=len(new)),
    )
    if stalled > STALLED:
        detail = describe_stall(stalled, why)
        return NodeStep(state.changed(stop_reason=StopReason.STAGNATION, stop_detail=detail), "verify")
    return NodeStep(state, "verify" if effects else "plan")


def _report_injected_instructions(new: Iterable[Observation], deps: Deps) -> None:
    """Say in the trace where data gives orders; the report mentions it, nobody follows it."""
    for o in new:
        if o.has_own_evidence and not o.status.is_error and (said := find_injected_instruction(o.record)):
            message = f'{o.evidence} ({o.tool}) holds text that gives orders: "{said[:300]}"'
            deps.trace.emit("warning", code="orders", message=message, hint="it is data, and was not obeyed")


def _made_progress(new: Sequence[Observation], asked: Mapping[int, int], repeats: int) -> bool:
    """Whether any of the new observations is worth a turn: not from the record, and not one more of a kind.

    A drift (`limit=100, 101, 102`) asks the same with other numbers: `repeats` answers to that are enough.
    """
    return any(o.has_own_evidence and not o.status.is_error and asked[o.number] < repeats for o in new)


def _notices_for_planner(new: Iterable[Observation], paused: Mapping[str, str]) -> Iterable[PlannerNotice]:
    """The outcome of calls; a tool that is not called any more for a while is named once, when that begins."""
    gone: set[str] = set()
    for o in new:
        if o.tool in paused and o.status.is_error:
            if o.tool not in gone:
                gone.add(o.tool)
                yield PlannerNotice(
                    code="breaker",
                    text=f"{o.tool} is not offered for now: {paused[o.tool]}. Use another tool."[:1000],
                )
        elif o.status is ResultStatus.NOT_PERMITTED:
            yield PlannerNotice(code="denied", text=f"{o.tool} did not run: {o.headline}"[:1000])
        elif o.status in (ResultStatus.UNAVAILABLE, ResultStatus.TIMEOUT, ResultStatus.TRANSIENT):
            advice = (
                "Find another way"
                if o.status is ResultStatus.UNAVAILABLE
                else "Try it once more, or find another way"
            )
            yield PlannerNotice(
                code="breaker", text=f"{o.tool} failed ({o.status}): {o.headline}. {advice}."[:1000]
            )
        elif not o.has_own_evidence:
            yield PlannerNotice(
                code="repeated", text=f"O{o.number} repeats {o.evidence}: it is recorded, cite {o.evidence}"
            )
