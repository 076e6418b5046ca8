"""observe: results become observations. Pure but for storing them, which is idempotent by number."""

from collections.abc import Iterable, Mapping, Sequence

from opsleuth.analysis.orders import order_in
from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.models.planner import Observation
from opsleuth.nodes.deps import Deps, Step
from opsleuth.nodes.progress import STALLED, stalled_notice
from opsleuth.state.calls import Call, Gate, ResultStatus, Risk
from opsleuth.state.investigation import Investigation, Notice
from opsleuth.state.outcome import StopReason
from opsleuth.tools.spec import CallResult


async def observe(state: Investigation, deps: Deps) -> Step:
    """One observation for each pending call; then decide whether anything new came of this turn."""
    deps.warn()
    deps.observed.upto(state.observations)
    asked = {call.number: deps.observed.times_answered(call.tool, call.arguments) for call in state.pending}
    results = {call.id: deps.store.results.get(deps.run, call.id) for call in state.pending}
    if missing := [call_id for call_id, result in results.items() if result is None]:
        raise RuntimeError(
            f"no stored result for {', '.join(missing)}: act ends only when every call has one"
        )
    with deps.store.transaction():
        new = [stored(call, result, state, deps) for call in state.pending if (result := results[call.id])]
    _tell_orders(new, deps)
    stalled = 0 if _progress(new, asked, state.budget.limits.repeats) else state.stalled + 1
    effects = tuple(
        c.id for c in state.pending if c.risk is not Risk.READ and c.gate in (Gate.FREE, Gate.APPROVED)
    )
    state = state.changed(
        observations=state.observations + len(new),
        pending=(),
        unverified=effects,
        stalled=stalled,
        notices=(*state.notices, *_notices(new, stalled))[-12:],
        budget=state.budget.plus(tool_calls=len(new)),
    )
    if stalled >= STALLED:
        detail = f"{stalled} turns in a row asked again for what was known"
        return Step(state.changed(stop_reason=StopReason.STAGNATION, stop_detail=detail), "verify")
    return Step(state, "verify" if effects else "plan")


def _tell_orders(new: Iterable[Observation], deps: Deps) -> None:
    """Say in the trace where data gives orders; the report mentions it, nobody follows it."""
    for o in new:
        if o.evidence == f"E{o.number}" and not o.status.is_error and (said := order_in(o.record)):
            message = f'{o.evidence} ({o.tool}) holds text that gives orders: "{said[:300]}"'
            deps.trace.emit(
                "warning", code="orders", message=message, hint="it is data, and was not followed"
            )


def stored(call: Call, result: CallResult, state: Investigation, deps: Deps) -> Observation:
    """The observation, stored with its evidence; an answer from the record cites what is stored already."""
    if result.from_record is None:
        meta = EvidenceMeta(
            call_id=call.id,
            tool=call.tool,
            status=result.status,
            headline=result.headline,
            source=result.source,
            query=result.query,
            target=call.target,
            arguments=call.arguments,
            scanned=result.scanned,
            matched=result.matched,
            redactions=result.redactions,
        )
        deps.store.evidence.put(deps.run, call.number, meta, result.record)
    observation = _observation(call, result, state)
    deps.observed.add(observation, call.digest)
    return observation


def _observation(call: Call, result: CallResult, state: Investigation) -> Observation:
    return Observation(
        number=call.number,
        call_id=call.id,
        turn=state.budget.used.turns,
        tool=call.tool,
        arguments=call.arguments,
        purpose=call.purpose,
        status=result.status,
        evidence=result.from_record or f"E{call.number}",
        headline=result.headline,
        record=result.record,
        target=call.target,
        source=result.source,
        tests=call.tests,
    )


def _progress(new: Sequence[Observation], asked: Mapping[int, int], repeats: int) -> bool:
    """Whether any of the new observations is worth a turn: not from the record, and not one more of a kind.

    A drift (`limit=100, 101, 102`) asks the same with other numbers: `repeats` answers to that are enough.
    """
    return any(
        o.evidence == f"E{o.number}" and not o.status.is_error and asked[o.number] < repeats for o in new
    )


def _notices(new: Iterable[Observation], stalled: int) -> Iterable[Notice]:
    for o in new:
        if o.status is ResultStatus.NOT_PERMITTED:
            yield Notice(code="denied", text=f"{o.tool} did not run: {o.headline}"[:1000])
        elif o.status in (ResultStatus.UNAVAILABLE, ResultStatus.TIMEOUT, ResultStatus.TRANSIENT):
            yield Notice(
                code="breaker", text=f"{o.tool} failed ({o.status}): {o.headline}. Find another way."[:1000]
            )
        elif o.evidence != f"E{o.number}":
            yield Notice(
                code="repeated", text=f"O{o.number} repeats {o.evidence}: it is recorded, cite {o.evidence}"
            )
    yield from stalled_notice(stalled)
