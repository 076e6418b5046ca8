"""A change of the outside world: once, or a person decides. Every step is a row of the ledger before it is taken.

fresh → precheck → start (uses up the approval) → run → done | failed_clean | unknown
unknown → probe → found: done · absent, and the target recognises repeats: once more · else: a person
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.effects import REPLAYED, Effect, EffectGrant, EffectRow
from opsleuth.checkpoints.errors import AlreadyStartedError, NotApprovedError
from opsleuth.nodes.approve.bound_call import BoundCall, bind_call, describe_elsewhere
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.not_run import leave_unknown, repeat_effect, time_out_call
from opsleuth.state.calls import Call, CallGate, ResultStatus, Risk
from opsleuth.state.results import CallResult
from opsleuth.tools.spec import ToolContext

CLEAN = frozenset({ResultStatus.UNAVAILABLE, ResultStatus.INVALID_ARGUMENTS, ResultStatus.NOT_PERMITTED})
"""Nothing was sent, or the target said that it refused. Whatever else is not `ok` leaves the outcome open."""

SHOWN = 120
"""Characters of what would change that a question certainly shows."""

GRACE_SECONDS = 10.0
"""How long a change in flight is waited for when somebody wants the run to stop."""


async def perform_effect(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult:
    """Make the change of this call, or say its outcome. `left` is the run's active time left, in seconds.

    Raises NotApprovedError if a person must be asked (again): never asked, expired, another policy.
    """
    row = deps.store.effects.of_call(deps.run, call.id, effect_from_call(call).digest) or _find_equal_effect(
        call, deps
    )
    if row is None:
        return await _begin_effect(call, context, left, deps)
    if row.run != deps.run:
        return repeat_effect(call, row)
    return await _resume_effect(call, row, context, left, deps)


def is_effect_begun(call: Call, deps: Deps) -> bool:
    """Whether the ledger holds this call, which then must be settled first."""
    if call.risk is Risk.READ:
        return False
    return deps.store.effects.of_call(deps.run, call.id, effect_from_call(call).digest) is not None


def effect_from_call(call: Call) -> Effect:
    """The ledger's view of a call; its key is what the target may recognise repeats by."""
    return Effect(
        call_id=call.id,
        tool=call.tool,
        arguments=call.arguments,
        target=call.target,
        risk=call.risk,
        repeat_of=call.repeat_of,
    )


def call_from_effect(row: EffectRow) -> Call:
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


def _find_equal_effect(call: Call, deps: Deps) -> EffectRow | None:
    """An equal change that was made or may have been made, by this run or an ancestor, and not on purpose again."""
    same = deps.store.effects.lookup(deps.run, call.tool, call.arguments, call.target)
    return None if same is None or same.call_id == call.repeat_of else same


async def _begin_effect(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult:
    grant = find_valid_grant(call, deps)
    if (refusal := await _precheck_again(call, context, left, deps)) is not None:
        if grant is not None:
            deps.store.approvals.stale(deps.run, grant.approval, f"not executed: {refusal.headline}")
        return refusal
    started: list[EffectRow] = []

    def start() -> None:
        allowed = call.gate is CallGate.FREE
        started.append(
            deps.store.effects.start(
                deps.run, effect_from_call(call), attempt=deps.attempt, grant=grant, allowed=allowed
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
    except AlreadyStartedError as error:
        return repeat_effect(call, deps.store.effects.get(error.run, error.key))
    return await _execute_effect(call, started[0], context, left, deps)


async def _precheck_again(call: Call, context: ToolContext, left: float, deps: Deps) -> CallResult | None:
    """Look at the target once more: what was approved an hour ago may no longer make sense.

    Without any time left nothing is started: a change that was never sent must not end as one that nobody knows about.
    """
    if left <= 0:
        return time_out_call(call)
    spec = deps.toolbox.known(call.tool)
    if spec is None or spec.precheck is None:
        return None
    looked = await deps.read(call, context, left, "precheck")
    if looked.status is ResultStatus.OK:
        return _refuse_other_change(call, looked)
    return replace(looked, headline=f"not executed: {looked.headline}"[:300])


def _refuse_other_change(call: Call, looked: CallResult) -> CallResult | None:
    """A refusal where the target says that something else would change than it said when a person was asked."""
    change = str(looked.record.get("change") or "")[:SHOWN]
    if not change or call.precheck is None or change in call.precheck:
        return None
    text = f"not executed: it is no longer the change that was approved: {change}"
    return replace(looked, status=ResultStatus.NOT_PERMITTED, headline=text, record={"error": text})


async def _resume_effect(
    call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps
) -> CallResult:
    """The outcome of a change of this run that was started before."""
    if row.status == "started" and row.attempt != deps.attempt:
        deps.store.effects.orphans(deps.run, attempt=deps.attempt)
        row = deps.store.effects.get(deps.run, row.key)
    if row.status == "unknown":
        return await _settle_unknown_effect(call, row, context, left, deps)
    return repeat_effect(call, row)


async def _execute_effect(
    call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps
) -> CallResult:
    deps.store.ensure_still_held()  # this process may have stood still since the row was written
    deps.store.make_durable()
    work = deps.executor.run(call, _context_with_key(context, row), seconds_left=left)
    result = await deps.stopping.patiently(work, GRACE_SECONDS, lambda: _warn_effect_in_flight(call, deps))
    if deps.executor.is_replaying:  # nothing was sent: the ledger must not say that it was
        record = {**result.record, REPLAYED: True, "error": "a replay: nothing was executed"}
        deps.store.effects.finish(deps.run, row.key, "failed_clean", record, attempt=deps.attempt)
        return result
    if result.status is ResultStatus.OK:
        deps.store.effects.finish(deps.run, row.key, "done", result.record, attempt=deps.attempt)
        return result
    # A second try that is refused says nothing about the first one.
    if result.status in CLEAN and row.tries == 1:
        deps.store.effects.finish(deps.run, row.key, "failed_clean", result.record, attempt=deps.attempt)
        return result
    unknown = deps.store.effects.finish(deps.run, row.key, "unknown", result.record, attempt=deps.attempt)
    return await _settle_unknown_effect(call, unknown, context, left, deps)


async def _settle_unknown_effect(
    call: Call, row: EffectRow, context: ToolContext, left: float, deps: Deps
) -> CallResult:
    """Ask the target the outcome of an unknown change; without a clear answer it stays unknown."""
    spec = deps.toolbox.known(call.tool)
    if spec is None or spec.probe is None:
        return leave_unknown(call, "its target cannot say whether it was made")
    probed = await deps.executor.run(call, _context_with_key(context, row), part="probe", seconds_left=left)
    if probed.status is ResultStatus.OK:
        return repeat_effect(call, deps.store.effects.found(deps.run, row.key, probed.record))
    if probed.status is ResultStatus.NONE_MATCHED and spec.takes_key and row.tries == 1:
        if deps.stopping.wished:
            return leave_unknown(call, f"{probed.headline}; the run was stopped before the second try")
        again = deps.store.effects.again(deps.run, row.key, attempt=deps.attempt)
        return await _execute_effect(call, again, context, left, deps)
    return leave_unknown(call, probed.headline)


def _context_with_key(context: ToolContext, row: EffectRow) -> ToolContext:
    return replace(context, idempotency_key=row.key, begun=datetime.fromisoformat(row.started))


def _warn_effect_in_flight(call: Call, deps: Deps) -> None:
    deps.trace.emit(
        "warning",
        code="effect_in_flight",
        message=f"{call.tool} cannot be undone by stopping; waiting up to {GRACE_SECONDS:.0f} s",
        hint="a second signal leaves its outcome unknown until resume checks it",
    )


def find_valid_grant(call: Call, deps: Deps) -> EffectGrant | None:
    """The valid approval of exactly this call, None where policy lets it run by itself. Raises NotApprovedError."""
    ruling, bound = deps.toolbox.ruling(call), bind_call(call, deps)
    if call.gate is CallGate.FREE and ruling.gate is CallGate.FREE and not bound.elsewhere:
        return None
    for approval in reversed(deps.store.approvals.list(deps.run, "approved")):
        if approval.subject == call.id:
            if approval.digest != bound.digest:
                raise NotApprovedError(_explain_rebinding(approval, bound))
            if not deps.store.approvals.is_valid(approval):
                raise NotApprovedError(
                    f"{approval.id} {deps.store.approvals.why_invalid(approval)}: it must be asked again"
                )
            seen = frozenset((row.run, row.key) for row in bound.elsewhere)
            return EffectGrant(approval.id, bound.digest, deps.toolbox.policy.version, seen)
    if bound.elsewhere:
        raise NotApprovedError(f"another branch did the same: {describe_elsewhere(bound.elsewhere)}")
    raise NotApprovedError(f"no valid approval for {call.id} ({call.tool}): a person must be asked")


def _explain_rebinding(approval: Approval, bound: BoundCall) -> str:
    """Why an approval does not fit any more: what is different now from what the person was shown."""
    shown: Mapping[str, Any] = approval.document.get("binding") or {}
    changed = [name for name in (*bound.binding, *shown) if shown.get(name) != bound.binding.get(name)]
    known = {tuple(row) for row in approval.document.get("elsewhere_keys") or ()}
    if new := tuple(row for row in bound.elsewhere if (row.run, row.key) not in known):
        return f"another branch did the same since {approval.id} was asked: {describe_elsewhere(new)}"
    what = ", ".join(dict.fromkeys(changed)) or "the call"
    return f"what {approval.id} approved has changed ({what}): it must be asked again"
