"""After an effect the world is read again, until what should be true is true, or its deadline passes.

The last reading is an observation of its own, so that the planner can cite it and nobody has to believe a word.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from langgraph.errors import GraphDrained

from opsleuth.checkpoints.effects import EffectRow
from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.models.planner import Observation
from opsleuth.nodes.deps import Deps, Step
from opsleuth.nodes.effects import call_of
from opsleuth.nodes.halt import STOPS
from opsleuth.state.calls import ResultStatus
from opsleuth.state.investigation import Investigation, Notice
from opsleuth.state.results import CallResult
from opsleuth.tools.registry import identity

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two readings: doubled from the first to the longest."""


class _Sorted(NamedTuple):
    """The effects of a turn: those to check, those that nobody knows about, and what to say of the rest."""

    happened: list[EffectRow]
    unknown: list[EffectRow]
    said: list[str]


async def after_effects(state: Investigation, deps: Deps) -> Step:
    """Check each effect of the turn against the outside world; what is unknown goes to a person."""
    found = _sorted(
        row for call_id in state.unverified if (row := deps.store.effects.of_call(deps.run, call_id))
    )
    said = list(found.said)
    for row in found.happened:
        result = await _checked(row, state, deps)
        if result is not None:
            state = _observed(row, result, state, deps)
            said.append(_verdict(row, result, deps))
    notices = tuple(Notice(code="checked", text=text[:1000]) for text in said)
    state = state.changed(notices=(*state.notices, *notices)[-12:])
    if found.unknown and deps.halted() not in STOPS:
        return Step(state.changed(unverified=tuple(row.call_id for row in found.unknown)), "approve")
    return Step(state.changed(unverified=()), "plan")


def _sorted(rows: Iterable[EffectRow]) -> _Sorted:
    found = _Sorted([], [], [])
    for row in rows:
        if row.happened:
            found.happened.append(row)
        elif row.outcome == "absent":
            found.said.append(f"{row.tool} ({row.call_id}) did not happen: {row.result.get('reason', '')}")
        elif row.status != "failed_clean":
            found.unknown.append(row)
    return found


async def _checked(row: EffectRow, state: Investigation, deps: Deps) -> CallResult | None:
    """The last reading, None where no check exists. Stored, so that a second run of the node finds it."""
    spec = deps.toolbox.known(row.tool)
    if spec is None or spec.postcondition is None:
        return None
    name = f"{row.call_id}/check"
    if (stored := deps.store.results.get(deps.run, name)) is None:
        stored = replace(await _settled(row, spec.settles, state, deps), call_id=name)
        deps.store.results.put(deps.run, name, stored)
    return stored


async def _settled(row: EffectRow, seconds: float, state: Investigation, deps: Deps) -> CallResult:
    """Read until it holds, cannot be told, or the time is over. A cancelled run looks once."""
    call = call_of(row)
    context = replace(deps.context(state, call), result=row.result, idempotency_key=row.key)
    deadline = deps.clock.monotonic() + min(seconds, deps.seconds_left(state))
    pause, waited = FIRST_PAUSE, 0.0
    while True:
        work = deps.executor.run(call, context, part="postcondition")
        result = await deps.stopping.patiently(work, 0.0, lambda: None)
        if deps.stopping.wished:
            raise GraphDrained("stopped")
        waited += pause
        over = deps.clock.monotonic() + pause > deadline or waited > seconds or deps.halted() in STOPS
        if over or result.status in (ResultStatus.OK, ResultStatus.NOT_RECORDED):
            return result
        await deps.stopping.run(deps.executor.pause(pause))
        pause = min(pause * 2, LONGEST_PAUSE)


def _verdict(row: EffectRow, result: CallResult, deps: Deps) -> str:
    """Write the verdict into the ledger, and say it in words for the planner."""
    if result.status is ResultStatus.NOT_RECORDED:
        return f"After {row.tool}: nobody can tell whether it had its effect: {result.headline}"
    passed = result.status is ResultStatus.OK

    def write() -> None:
        deps.store.effects.check(deps.run, row.key, passed=passed, seen=result.headline)

    if row.verified is None:
        facts = {"id": row.call_id, "tool": row.tool, "passed": passed, "seen": result.headline}
        deps.trace.emit("effect.checked", along=write, **facts)
    return (
        f"After {row.tool}: what should be true {'holds' if passed else 'does not hold'}: {result.headline}"
    )


def _observed(row: EffectRow, result: CallResult, state: Investigation, deps: Deps) -> Investigation:
    """The state with the reading as its next observation."""
    number, tool = state.observations + 1, f"{row.tool}.check"
    meta = EvidenceMeta(
        call_id=result.call_id,
        tool=tool,
        status=result.status,
        headline=result.headline,
        source=result.source,
        query=result.query,
        target=row.target,
        arguments=dict(row.arguments),
        scanned=result.scanned,
        matched=result.matched,
        redactions=result.redactions,
    )
    observation = Observation(
        number=number,
        call_id=result.call_id,
        turn=state.budget.used.turns,
        tool=tool,
        arguments=dict(row.arguments),
        purpose=f"whether {row.tool} had its effect",
        status=result.status,
        evidence=f"E{number}",
        headline=result.headline,
        record=result.record,
        target=row.target,
        source=result.source,
    )
    with deps.store.transaction():
        deps.store.evidence.put(deps.run, number, meta, result.record)
        deps.observed.add(observation, identity(tool, row.arguments, row.target, result.call_id))
    return state.changed(observations=number)
