"""After an effect, read the service until the expected state is reached or the deadline passes.

The last reading is an observation of its own, so that the planner can cite it and nobody has to believe a word.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from langgraph.errors import GraphDrained

from opsleuth.checkpoints.effects import EffectRow
from opsleuth.nodes.act.effects import call_from_effect
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.nodes.operator_requests import STOPS
from opsleuth.state.backoff import Backoff
from opsleuth.state.calls import Call, ResultStatus
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.state.results import CallResult
from opsleuth.tools.registry import compute_content_digest

READINGS = Backoff(first=0.1, longest=5.0)
"""How long to wait between two readings."""


class _EffectsByOutcome(NamedTuple):
    """The effects of a turn: those to check, those that nobody knows about, and what to say of the rest."""

    happened: list[EffectRow]
    unknown: list[EffectRow]
    said: list[str]


async def check_effects(state: Investigation, deps: Deps) -> NodeStep:
    """Check each effect of the turn against the outside world; what is unknown goes to a person."""
    found = _sort_effects_by_outcome(
        row for call_id in state.unverified if (row := deps.store.effects.of_call(deps.run, call_id))
    )
    said = list(found.said)
    for row in found.happened:
        result = await _read_postcondition_once(row, state, deps)
        if result is not None:
            call = _check_of(row, result, state.observations + 1)
            deps.observed.record(call, result, state.budget.used.turns)
            state = state.changed(observations=call.number)
            said.append(_record_check_verdict(row, result, deps))
    notices = tuple(PlannerNotice(code="checked", text=text[:1000]) for text in said)
    state = state.changed(notices=(*state.notices, *notices)[-12:])
    if found.unknown and deps.halted() not in STOPS:
        return NodeStep(state.changed(unverified=tuple(row.call_id for row in found.unknown)), "approve")
    return NodeStep(state.changed(unverified=()), "plan")


def _sort_effects_by_outcome(rows: Iterable[EffectRow]) -> _EffectsByOutcome:
    found = _EffectsByOutcome([], [], [])
    for row in rows:
        if row.happened or row.is_replayed:
            found.happened.append(row)
        elif row.outcome == "absent":
            found.said.append(f"{row.tool} ({row.call_id}) did not happen: {row.result.get('reason', '')}")
        elif row.status != "failed_clean":
            found.unknown.append(row)
    return found


async def _read_postcondition_once(row: EffectRow, state: Investigation, deps: Deps) -> CallResult | None:
    """The last reading, None where no check exists. Stored, so that a second run of the node finds it."""
    spec = deps.toolbox.known(row.tool)
    if spec is None:
        _record_unchecked(row, f"{row.tool} is not offered in this attempt", deps)
        return None
    if spec.postcondition is None:
        return None
    name = f"{row.call_id}/check"
    if (stored := deps.store.results.get(deps.run, name)) is None:
        stored = replace(await _poll_postcondition(row, spec.settles, state, deps), call_id=name)
        deps.store.results.put(deps.run, name, stored)
    return stored


async def _poll_postcondition(row: EffectRow, seconds: float, state: Investigation, deps: Deps) -> CallResult:
    """Read until it holds, cannot be told, or the time is over. A cancelled run looks once."""
    call = call_from_effect(row)
    context = replace(deps.context(state, call), result=row.result, idempotency_key=row.key)
    deadline = deps.clock.monotonic() + min(seconds, deps.seconds_left(state))
    readings, waited = 0, 0.0
    while True:
        readings += 1
        pause = READINGS.seconds(readings)
        work = deps.executor.run(call, context, part="postcondition")
        result = await deps.stopping.patiently(work, 0.0, lambda: None)
        if deps.stopping.wished:
            raise GraphDrained("stopped")
        waited += pause
        over = deps.clock.monotonic() + pause > deadline or waited > seconds or deps.halted() in STOPS
        if over or result.status in (ResultStatus.OK, ResultStatus.NOT_RECORDED):
            return result
        await deps.stopping.run(deps.executor.pause(pause))


def _record_check_verdict(row: EffectRow, result: CallResult, deps: Deps) -> str:
    """Write the verdict into the ledger, and say it in words for the planner."""
    if result.status is ResultStatus.NOT_RECORDED:
        _record_unchecked(row, result.headline, deps)
        return f"After {row.tool}: it is not known whether it had its effect: {result.headline}"
    passed = result.status is ResultStatus.OK

    def write() -> None:
        deps.store.effects.check(deps.run, row.key, passed=passed, seen=result.headline)

    if row.verified is None and not row.is_replayed:
        facts = {"id": row.call_id, "tool": row.tool, "passed": passed, "seen": result.headline}
        deps.trace.emit("effect.checked", along=write, **facts)
    return (
        f"After {row.tool}: what should be true {'holds' if passed else 'does not hold'}: {result.headline}"
    )


def _record_unchecked(row: EffectRow, why: str, deps: Deps) -> None:
    """Write into the ledger that a check gave no verdict: that is not a pass."""
    if row.verified is not None or row.is_replayed:
        return

    def write() -> None:
        deps.store.effects.leave_unchecked(deps.run, row.key, why)

    deps.trace.emit("effect.checked", along=write, id=row.call_id, tool=row.tool, passed=None, seen=why)


def _check_of(row: EffectRow, result: CallResult, number: int) -> Call:
    """The check as a call of its own: its reading is the observation of this number. No other call is equal to it."""
    tool = f"{row.tool}.check"
    return Call(
        id=result.call_id,
        number=number,
        tool=tool,
        arguments=dict(row.arguments),
        purpose=f"whether {row.tool} had its effect",
        target=row.target,
        digest=compute_content_digest(tool, row.arguments, row.target, result.call_id),
    )
