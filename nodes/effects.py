"""A change of the outside world: once, or a person decides. Every step is a row of the ledger before it is taken.

fresh → precheck → start (uses up the approval) → run → done | failed_clean | unknown
unknown → probe → found: done · absent, and the target tells repeats apart: once more · else: a person
"""

from dataclasses import replace
from datetime import datetime

from opsleuth.checkpoints.effects import Effect, EffectRow, Grant
from opsleuth.checkpoints.errors import AlreadyStarted, NotApproved
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, Gate, ResultStatus, Risk
from opsleuth.state.results import CallResult
from opsleuth.tools.spec import ToolContext

CLEAN = frozenset({ResultStatus.UNAVAILABLE, ResultStatus.INVALID_ARGUMENTS, ResultStatus.NOT_PERMITTED})
"""Nothing was sent, or the target said that it refused. Whatever else is not `ok` leaves the outcome open."""

SHOWN = 120
"""Characters of what would change that a question certainly shows."""

GRACE_SECONDS = 10.0
"""How long a change in flight is waited for when somebody wants the run to stop."""


async def perform(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult:
    """Make the change of this call, or say what became of it. `left` is the run's active time left, in seconds.

    Raises NotApproved if a person must be asked (again): never asked, expired, another policy.
    """
    row = deps.store.effects.of_call(deps.run, call.id) or _same(call, deps)
    if row is None:
        return await _begin(call, context, left, deps)
    if row.run != deps.run:
        return _recorded(call, row)
    return await _go_on(call, row, context, left, deps)


def begun(call: Call, deps: Deps) -> bool:
    """Whether the ledger holds this call: then it must be settled, whatever else is wanted."""
    return call.risk is not Risk.READ and deps.store.effects.of_call(deps.run, call.id) is not None


def effect_of(call: Call) -> Effect:
    """The ledger's view of a call; its key is what the target may tell repeats apart by."""
    return Effect(
        call_id=call.id,
        tool=call.tool,
        arguments=call.arguments,
        target=call.target,
        risk=call.risk,
        repeat_of=call.repeat_of,
    )


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
        repeat_of=row.repeat_of,
    )


def _same(call: Call, deps: Deps) -> EffectRow | None:
    """An equal change that was made or may have been made, by this run or an ancestor, and not on purpose again."""
    same = deps.store.effects.lookup(deps.run, call.tool, call.arguments, call.target)
    return None if same is None or same.call_id == call.repeat_of else same


async def _begin(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult:
    grant = granted(call, deps)
    if (refusal := await _refusal(call, context, left, deps)) is not None:
        if grant is not None:
            deps.store.approvals.stale(deps.run, grant.approval, f"not executed: {refusal.headline}")
        return refusal
    started: list[EffectRow] = []

    def start() -> None:
        allowed = call.gate is Gate.FREE
        started.append(
            deps.store.effects.start(
                deps.run, effect_of(call), attempt=deps.attempt, grant=grant, allowed=allowed
            )
        )

    try:
        deps.trace.emit(
            "approval.used" if grant else "effect.started",
            along=start,
            id=grant.approval if grant else call.id,
            call=call.id,
            tool=call.tool,
            target=call.target,
            rule=call.gate_reason,
        )
    except AlreadyStarted as error:
        return _recorded(call, deps.store.effects.get(error.run, error.key))
    return await _run(call, started[0], context, left, deps)


async def _refusal(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult | None:
    """Look at the target once more: what was approved an hour ago may no longer make sense.

    Without any time left nothing is begun: a change that was never sent must not end as one that nobody knows about.
    """
    if left <= 0:
        text = f"not executed: the run's time is used up before {call.tool} was begun"
        return CallResult(
            call_id=call.id, status=ResultStatus.TIMEOUT, record={"error": text}, headline=text, tries=0
        )
    spec = deps.toolbox.known(call.tool)
    if spec is None or spec.precheck is None:
        return None
    looked = await deps.read(call, context, left, "precheck")
    if looked.status is ResultStatus.OK:
        return _another(call, looked)
    return replace(looked, headline=f"not executed: {looked.headline}"[:300])


def _another(call: Call, looked: CallResult) -> CallResult | None:
    """A refusal where the target says that something else would change than it said when a person was asked."""
    change = str(looked.record.get("change") or "")[:SHOWN]
    if not change or call.precheck is None or change in call.precheck:
        return None
    text = f"not executed: it is no longer the change that was approved: {change}"
    return replace(looked, status=ResultStatus.NOT_PERMITTED, headline=text, record={"error": text})


async def _go_on(call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps) -> CallResult:
    """What became of a change of this run that was begun before."""
    if row.status == "started" and row.attempt != deps.attempt:
        deps.store.effects.orphans(deps.run, attempt=deps.attempt)
        row = deps.store.effects.get(deps.run, row.key)
    if row.status == "unknown":
        return await _settle(call, row, context, left, deps)
    return _recorded(call, row)


async def _run(call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps) -> CallResult:
    deps.store.ensure_still_held()  # this process may have stood still since the row was written
    work = deps.executor.run(call, _keyed(context, row), seconds_left=left)
    result = await deps.stopping.patiently(work, GRACE_SECONDS, lambda: _say_waiting(call, deps))
    if result.status is ResultStatus.OK:
        deps.store.effects.finish(deps.run, row.key, "done", result.record, attempt=deps.attempt)
        return result
    # A second try that is refused says nothing about the first one.
    if result.status in CLEAN and row.tries == 1:
        deps.store.effects.finish(deps.run, row.key, "failed_clean", result.record, attempt=deps.attempt)
        return result
    unknown = deps.store.effects.finish(deps.run, row.key, "unknown", result.record, attempt=deps.attempt)
    return await _settle(call, unknown, context, left, deps)


async def _settle(call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps) -> CallResult:
    """Ask the target what became of an unknown change; without a clear answer it stays unknown."""
    spec = deps.toolbox.known(call.tool)
    if spec is None or spec.probe is None:
        return _unknown(call, "its target cannot be asked whether it was made")
    probed = await deps.executor.run(call, _keyed(context, row), part="probe", seconds_left=left)
    if probed.status is ResultStatus.OK:
        return _recorded(call, deps.store.effects.found(deps.run, row.key, probed.record))
    if probed.status is ResultStatus.NONE_MATCHED and spec.takes_key and row.tries == 1:
        if deps.stopping.wished:
            return _unknown(call, f"{probed.headline}; the run was stopped before the second try")
        again = deps.store.effects.again(deps.run, row.key, attempt=deps.attempt)
        return await _run(call, again, context, left, deps)
    return _unknown(call, probed.headline)


def _keyed(context: ToolContext, row: EffectRow) -> ToolContext:
    return replace(context, idempotency_key=row.key, begun=datetime.fromisoformat(row.started))


def _say_waiting(call: Call, deps: Deps) -> None:
    deps.trace.emit(
        "warning",
        code="effect_in_flight",
        message=f"{call.tool} cannot be undone by stopping; waiting up to {GRACE_SECONDS:.0f} s",
        hint="a second signal leaves it unknown: it is looked up at resume",
    )


def granted(call: Call, deps: Deps) -> Grant | None:
    """The valid approval of exactly this call, None where policy lets it run by itself. Raises NotApproved."""
    ruling = deps.toolbox.ruling(call)
    if call.gate is Gate.FREE and ruling.gate is Gate.FREE:
        return None
    for approval in reversed(deps.store.approvals.list(deps.run, "approved")):
        if approval.subject == call.id and approval.digest == call.digest:
            if not deps.store.approvals.is_valid(approval):
                raise NotApproved(f"{approval.id} expired at {approval.expires}: it must be asked again")
            return Grant(approval.id, call.digest, deps.toolbox.policy.version)
    raise NotApproved(f"no valid approval for {call.id} ({call.tool}): a person must be asked")


def _recorded(call: Call, row: EffectRow) -> CallResult:
    """What the ledger holds of this change; nothing is done again."""
    origin = "" if row.call_id.startswith(f"{row.run}/") and row.call_id == call.id else f" as {row.call_id}"
    record = {
        "effect": row.call_id,
        "run": row.run,
        "status": row.status,
        "outcome": row.outcome,
        "started": row.started,
        "result": dict(row.result),
    }
    status, text = _standing(row)
    text = f"{text} (recorded{origin} at {row.started}): not executed again"
    if status is not ResultStatus.OK:
        record["error"] = text
    return CallResult(call_id=call.id, status=status, record=record, headline=text[:300], tries=0)


def _standing(row: EffectRow) -> tuple[ResultStatus, str]:
    if row.happened:
        return ResultStatus.OK, f"{row.tool} was executed"
    if row.status == "failed_clean":
        return ResultStatus.UNAVAILABLE, f"{row.tool} was tried and refused: {row.result.get('error', '')}"
    if row.outcome == "absent":
        return ResultStatus.UNAVAILABLE, f"{row.tool} did not happen, a person says"
    return ResultStatus.UNKNOWN, f"it is not known whether {row.tool} was executed: see run {row.run}"


def _unknown(call: Call, why: str) -> CallResult:
    text = f"it is not known whether {call.tool} was executed: {why}"
    return CallResult(
        call_id=call.id, status=ResultStatus.UNKNOWN, record={"error": text}, headline=text[:300], tries=0
    )
