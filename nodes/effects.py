"""A change of the outside world: once, or a person decides. Every step is a row of the ledger before it is taken.

fresh → start (uses up the approval) → run → done | failed_clean | unknown
unknown → probe → found: done · absent, and the target tells repeats apart: once more · else: a person
"""

from opsleuth.checkpoints.effects import Effect, EffectRow, Grant
from opsleuth.checkpoints.errors import NotApproved
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, ResultStatus, Risk
from opsleuth.state.results import CallResult
from opsleuth.tools.spec import ToolContext

MAY_HAVE_HAPPENED = frozenset(
    {ResultStatus.UNKNOWN, ResultStatus.TRANSIENT, ResultStatus.CANCELED, ResultStatus.INTERNAL}
)


async def perform(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult:
    """Make the change of this call, or say why not. `left` is the run's active time that remains, in seconds."""
    row = deps.store.effects.of_call(deps.run, call.id)
    if row is None:
        same = deps.store.effects.lookup(deps.run, call.tool, call.arguments, call.target)
        if same is not None and same.call_id != call.repeat_of:
            return _recorded(call, same)
        try:
            row = deps.store.effects.start(
                deps.run, _effect(call), attempt=deps.attempt, grant=_grant(call, deps)
            )
        except NotApproved as error:
            return _result(call, ResultStatus.NOT_PERMITTED, str(error))
        return await _run(call, row, context, left, deps)
    if row.status == "started" and row.attempt != deps.attempt:
        deps.store.effects.orphans(deps.run, attempt=deps.attempt)
        row = deps.store.effects.get(deps.run, row.key)
    if row.status == "unknown":
        return await _settle(call, row, context, left, deps)
    return _recorded(call, row)


async def _run(call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps) -> CallResult:
    result = await deps.executor.run(call, context, seconds_left=left)
    if result.status is ResultStatus.OK:
        deps.store.effects.finish(deps.run, row.key, "done", result.record, attempt=deps.attempt)
        return result
    if result.status not in MAY_HAVE_HAPPENED:
        deps.store.effects.finish(deps.run, row.key, "failed_clean", result.record, attempt=deps.attempt)
        return result
    unknown = deps.store.effects.finish(deps.run, row.key, "unknown", result.record, attempt=deps.attempt)
    return await _settle(call, unknown, context, left, deps)


async def _settle(call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps) -> CallResult:
    """Ask the target what became of an unknown effect; without a clear answer it stays unknown."""
    spec = deps.toolbox.spec(call.tool)
    if spec.probe is None:
        return _unknown(call, "its target cannot be asked whether it was made")
    probed = await deps.executor.run(call, context, part="probe", seconds_left=left)
    if probed.status is ResultStatus.OK:
        return _recorded(call, deps.store.effects.found(deps.run, row.key, probed.record))
    if probed.status is ResultStatus.NONE_MATCHED and spec.takes_key and row.tries == 1:
        again = deps.store.effects.again(deps.run, row.key, attempt=deps.attempt)
        return await _run(call, again, context, left, deps)
    return _unknown(call, probed.headline)


def call_of(row: EffectRow) -> Call:
    """The call that a row of the ledger came from, to look at the world with its arguments."""
    return Call(
        id=row.call_id,
        number=1,
        tool=row.tool,
        arguments=dict(row.arguments),
        risk=Risk(row.risk),
        target=row.target,
        digest=row.digest,
    )


def _effect(call: Call) -> Effect:
    return Effect(
        call_id=call.id,
        tool=call.tool,
        arguments=call.arguments,
        target=call.target,
        risk=call.risk,
        repeat_of=call.repeat_of,
    )


def _grant(call: Call, deps: Deps) -> Grant | None:
    """The newest approval of exactly this call, where one is needed."""
    if call.risk is Risk.LOW and call.repeat_of is None:
        return None
    mine = [a for a in deps.store.approvals.list(deps.run, "approved") if a.subject == call.id]
    return Grant(mine[-1].id, call.digest, deps.toolbox.policy.version) if mine else None


def _recorded(call: Call, row: EffectRow) -> CallResult:
    """What the ledger holds of this change; nothing is done again."""
    status = ResultStatus.OK if row.happened else ResultStatus.UNKNOWN
    record = {"effect": row.call_id, "status": row.status, "started": row.started, "result": dict(row.result)}
    text = f"recorded as {row.status} since {row.started} ({row.call_id}): not executed again"
    return CallResult(call_id=call.id, status=status, record=record, headline=text, tries=0)


def _unknown(call: Call, why: str) -> CallResult:
    return _result(call, ResultStatus.UNKNOWN, f"it is not known whether {call.tool} was executed: {why}")


def _result(call: Call, status: ResultStatus, text: str) -> CallResult:
    return CallResult(call_id=call.id, status=status, record={"error": text}, headline=text[:300], tries=0)
