"""After an effect the world is read again, until what should be true is true, or its deadline passes."""

from opsleuth.nodes.deps import Deps, Step
from opsleuth.nodes.effects import call_of
from opsleuth.state.calls import ResultStatus
from opsleuth.state.investigation import Investigation, Notice


async def after_effects(state: Investigation, deps: Deps) -> Step:
    """Check each effect of the turn against the outside world; the planner is told what was seen."""
    notices = list(state.notices)
    for call_id in state.unverified:
        row = deps.store.effects.of_call(deps.run, call_id)
        if row is None or not row.happened:
            continue
        if deps.toolbox.spec(row.tool).postcondition is None:
            continue
        call = call_of(row)
        checked = await deps.executor.run(call, deps.context(state, call), part="postcondition")
        passed = checked.status is ResultStatus.OK
        deps.store.effects.check(deps.run, row.key, passed=passed, seen=checked.headline)
        deps.trace.emit("effect.checked", id=call_id, tool=row.tool, passed=passed, seen=checked.headline)
        word = "holds" if passed else "does not hold"
        notices.append(
            Notice(
                code="note", text=f"After {row.tool}: what should be true {word}: {checked.headline}"[:1000]
            )
        )
    return Step(state.changed(unverified=(), notices=tuple(notices)[-12:]), "plan")
