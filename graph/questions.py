"""What the graph waits for becomes rows that people answer, and their answers become what the graph resumes with."""

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.types import StateSnapshot

from opsleuth.checkpoints.approvals import Approval, Question
from opsleuth.checkpoints.effects import EffectRow
from opsleuth.checkpoints.store import Store
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call
from opsleuth.state.canonical import digest

ANSWERED = frozenset({"approved", "denied", "used"})


def ask(snapshot: StateSnapshot, deps: Deps) -> tuple[Approval, ...]:
    """Store a question for each call and each unknown effect that waits; returns those still pending.

    Asking again changes nothing. An approval that expired stays: act finds it and asks anew after a fresh look.
    """
    known = {approval.id for approval in deps.store.approvals.list(deps.run)}
    asked = [_asked(call, deps) for call in _calls(snapshot)]
    asked += [deps.store.approvals.request(deps.run, _about_effect(row)) for row in _unknown(deps)]
    for approval in asked:
        if approval.id not in known:
            _announce(approval, deps)
    return tuple(approval for approval in asked if approval.status == "pending")


def unanswered(store: Store, run: str, snapshot: StateSnapshot) -> bool:
    """Whether something that the graph waits for was put to people and has no answer yet."""
    waits = {call["id"] for call in _calls(snapshot)} | {e["id"] for e in _effects(snapshot)}
    return any(approval.subject in waits for approval in store.approvals.list(run, "pending"))


def answers(snapshot: StateSnapshot, deps: Deps, limits: Mapping[str, Any]) -> dict[str, Any]:
    """What every interrupt resumes with, once nothing is pending; `limits` are new totals."""
    given = {a.subject: a for a in deps.store.approvals.list(deps.run) if a.status in ANSWERED}
    answers = {call["id"]: _answer(given[call["id"]]) for call in _calls(snapshot) if call["id"] in given}
    return _resumed(snapshot, answers, limits)


def edited(snapshot: StateSnapshot, approval: Approval, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the interrupt resumes with when a person changed the arguments of one call; the rest stays asked."""
    answer = {"decision": "edited", "digest": approval.digest, "arguments": dict(arguments)}
    return _resumed(snapshot, {approval.subject: answer})


def nothing(snapshot: StateSnapshot) -> dict[str, Any]:
    """Resume without any answer: what waits is asked again, unless the run is to be stopped."""
    return _resumed(snapshot, {})


def _resumed(
    snapshot: StateSnapshot, given: Mapping[str, Any], limits: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    answers = {"answers": dict(given), "limits": dict(limits or {})}
    return {interrupt.id: answers for interrupt in snapshot.interrupts}


def _asked(call: Mapping[str, Any], deps: Deps) -> Approval:
    same = [a for a in deps.store.approvals.list(deps.run) if a.subject == call["id"] and a.about == "call"]
    if same and same[-1].status in ANSWERED and same[-1].digest == call["digest"]:
        return same[-1]
    return deps.store.approvals.request(deps.run, _about_call(call, deps))


def _about_call(call: Mapping[str, Any], deps: Deps) -> Question:
    spec = deps.toolbox.known(call["tool"])
    document = {name: call[name] for name in Call.model_fields}
    if spec is not None:
        document |= {
            "undo": spec.undo,
            "environment": spec.environment,
            "checked_after": spec.postcondition is not None,
            "can_be_probed": spec.probe is not None,
            "origin": spec.origin,
        }
    asked = [a for a in deps.store.approvals.list(deps.run) if a.subject == call["id"]]
    if asked and asked[-1].digest != call["digest"]:
        document["before"] = asked[-1].document.get("arguments")
    if call["repeat_of"]:
        same = deps.store.effects.lookup(deps.run, call["tool"], call["arguments"], call["target"])
        document["earlier"] = _facts(same) if same else None
    return Question(
        about="call",
        subject=call["id"],
        digest=call["digest"],
        policy_version=deps.toolbox.policy.version,
        document=document,
    )


def _about_effect(row: EffectRow) -> Question:
    return Question(
        about="effect",
        subject=row.call_id,
        digest=digest([row.key, row.tries]),
        document=_facts(row) | {"key": row.key},
    )


def _facts(row: EffectRow) -> dict[str, Any]:
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


def _announce(approval: Approval, deps: Deps) -> None:
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
        hash=approval.digest,
        rule=document.get("gate_reason", ""),
    )


def _unknown(deps: Deps) -> Iterable[EffectRow]:
    """Effects of this run that nobody knows about; also those that a stopped run will not come back to."""
    return deps.store.effects.list(deps.run, "unknown")


def _calls(snapshot: StateSnapshot) -> list[dict[str, Any]]:
    return [call for interrupt in snapshot.interrupts for call in interrupt.value["calls"]]


def _effects(snapshot: StateSnapshot) -> list[dict[str, Any]]:
    return [effect for interrupt in snapshot.interrupts for effect in interrupt.value["effects"]]


def _answer(approval: Approval) -> dict[str, str]:
    decision = "denied" if approval.status == "denied" else "approved"
    return {"decision": decision, "digest": approval.digest, "reason": approval.reason}
