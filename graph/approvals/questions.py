"""Turn what the graph waits for into rows that people answer, and their answers into the value that resumes it."""

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.types import StateSnapshot

from opsleuth.checkpoints.approvals import Approval, ApprovalRequest
from opsleuth.checkpoints.effects import EffectRow
from opsleuth.checkpoints.store import Store
from opsleuth.nodes.approve.bound_call import BoundCall, bind_call
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, CallGate
from opsleuth.state.canonical_json import canonical_sha256

ANSWERED = frozenset({"approved", "denied", "used"})


def request_approvals(snapshot: StateSnapshot, deps: Deps) -> tuple[Approval, ...]:
    """Store a question for each call and each unknown effect that waits; returns those still pending.

    Asking again changes nothing. An approval that expired stays: act finds it and asks again after a fresh look.
    """
    known = {approval.id for approval in deps.store.approvals.list(deps.run)}
    asked = [_request_call_approval(call, deps) for call in _interrupted_calls(snapshot)]
    asked += [deps.store.approvals.request(deps.run, _about_effect(row)) for row in _unknown_effects(deps)]
    for approval in asked:
        if approval.id not in known:
            _emit_approval_requested(approval, deps)
    return tuple(approval for approval in asked if approval.status == "pending")


def has_unanswered_approval(store: Store, run: str, snapshot: StateSnapshot) -> bool:
    """Whether something that the graph waits for was put to people and has no answer yet."""
    waits = {call["id"] for call in _interrupted_calls(snapshot)} | {
        e["id"] for e in _interrupted_effects(snapshot)
    }
    return any(approval.subject in waits for approval in store.approvals.list(run, "pending"))


def resume_value_from_answers(
    snapshot: StateSnapshot, deps: Deps, limits: Mapping[str, Any]
) -> dict[str, Any]:
    """What every interrupt resumes with, once nothing is pending; `limits` are new totals."""
    latest = {a.subject: a for a in deps.store.approvals.list(deps.run)}
    given = {subject: a for subject, a in latest.items() if a.status in ANSWERED}
    answers = {
        call["id"]: _answer_document(given[call["id"]])
        for call in _interrupted_calls(snapshot)
        if call["id"] in given
    }
    return _resume_value(snapshot, answers, limits)


def resume_value_for_edit(
    snapshot: StateSnapshot, approval: Approval, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """What the interrupt resumes with when a person changed the arguments of one call; the rest stays asked."""
    answer = {"decision": "edited", "digest": approval.document["digest"], "arguments": dict(arguments)}
    return _resume_value(snapshot, {approval.subject: answer})


def resume_value_without_answers(snapshot: StateSnapshot) -> dict[str, Any]:
    """Resume without any answer: what waits is asked again, unless the run is to be stopped."""
    return _resume_value(snapshot, {})


def _resume_value(
    snapshot: StateSnapshot, given: Mapping[str, Any], limits: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    answers = {"answers": dict(given), "limits": dict(limits or {})}
    return {interrupt.id: answers for interrupt in snapshot.interrupts}


def _request_call_approval(call: Mapping[str, Any], deps: Deps) -> Approval:
    same = [a for a in deps.store.approvals.list(deps.run) if a.subject == call["id"] and a.about == "call"]
    parsed = Call.model_validate(call)
    bound = bind_call(parsed, deps)
    lost = (
        bool(same) and same[-1].status == "used" and deps.store.effects.of_call(deps.run, call["id"]) is None
    )
    valid = (bound.digest, _denied_digest(same[-1], call)) if same and not lost else ()
    # A call that is refused by now needs no new question: act tells the planner who refused it, and why.
    refused = deps.toolbox.ruling(parsed).gate is CallGate.REFUSED
    if same and same[-1].status in ANSWERED and (refused or same[-1].digest in valid):
        return same[-1]
    return deps.store.approvals.request(deps.run, _about_call(call, bound, deps), anew=lost)


def _denied_digest(approval: Approval, call: Mapping[str, Any]) -> str | None:
    """The digest of a denied question about the same call: a denial holds whatever the call would run by now."""
    same = approval.status == "denied" and approval.document.get("digest") == call["digest"]
    return approval.digest if same else None


def _about_call(call: Mapping[str, Any], bound: BoundCall, deps: Deps) -> ApprovalRequest:
    spec = deps.toolbox.known(call["tool"])
    document = dict(call) | {
        "binding": bound.binding,
        "elsewhere": [_effect_facts(row) for row in bound.elsewhere],
        "elsewhere_keys": [[row.run, row.key] for row in bound.elsewhere],
    }
    if spec is not None:
        document |= {
            "undo": spec.undo,
            "environment": spec.environment,
            "checked_after": spec.postcondition is not None,
            "can_be_probed": spec.probe is not None,
            "origin": spec.origin,
        }
    asked = [a for a in deps.store.approvals.list(deps.run) if a.subject == call["id"]]
    if asked and asked[-1].document.get("digest") != call["digest"]:
        document["before"] = asked[-1].document.get("arguments")
    if call["repeat_of"]:
        same = deps.store.effects.lookup(deps.run, call["tool"], call["arguments"], call["target"])
        document["earlier"] = _effect_facts(same) if same else None
    return ApprovalRequest(
        about="call",
        subject=call["id"],
        digest=bound.digest,
        policy_version=deps.toolbox.policy.version,
        document=document,
    )


def _about_effect(row: EffectRow) -> ApprovalRequest:
    return ApprovalRequest(
        about="effect",
        subject=row.call_id,
        digest=canonical_sha256([row.key, row.tries]),
        document=_effect_facts(row) | {"key": row.key},
    )


def _effect_facts(row: EffectRow) -> dict[str, Any]:
    return {
        "id": row.call_id,
        "run": row.run,
        "tool": row.tool,
        "target": row.target,
        "arguments": dict(row.arguments),
        "risk": row.risk,
        "status": row.status,
        "started": row.started,
        "approval": row.approval,
        "result": dict(row.result),
    }


def _emit_approval_requested(approval: Approval, deps: Deps) -> None:
    document = approval.document
    deps.trace.emit(
        "approval.requested",
        id=approval.id,
        about=approval.about,
        call=approval.subject,
        tool=document.get("tool"),
        args=document.get("arguments"),
        target=document.get("target"),
        risk=document.get("risk"),
        digest=approval.digest,
        hash=approval.digest,  # as earlier versions called it; goes with the next version
        rule=document.get("gate_reason", ""),
    )


def _unknown_effects(deps: Deps) -> Iterable[EffectRow]:
    """Effects of this run that nobody knows about; also those that a stopped run will not come back to."""
    return deps.store.effects.list(deps.run, "unknown")


def _interrupted_calls(snapshot: StateSnapshot) -> list[dict[str, Any]]:
    """The calls that wait, with every field of today: an older version may have stored fewer."""
    waiting = [call for interrupt in snapshot.interrupts for call in interrupt.value["calls"]]
    return [Call.model_validate(call).model_dump(mode="json") for call in waiting]


def _interrupted_effects(snapshot: StateSnapshot) -> list[dict[str, Any]]:
    return [effect for interrupt in snapshot.interrupts for effect in interrupt.value["effects"]]


def _answer_document(approval: Approval) -> dict[str, str]:
    decision = "denied" if approval.status == "denied" else "approved"
    return {"decision": decision, "digest": approval.document["digest"], "reason": approval.reason}
