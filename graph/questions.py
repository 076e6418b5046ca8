"""What the graph waits for becomes rows that people answer, and their answers become what the graph resumes with."""

from typing import Any

from langgraph.types import StateSnapshot

from opsleuth.checkpoints.approvals import Approval, Question
from opsleuth.checkpoints.store import Store


def ask(store: Store, run: str, snapshot: StateSnapshot, policy_version: str) -> tuple[Approval, ...]:
    """Store a question for each call that waits; asking again changes nothing. Returns those still pending."""
    asked = [
        store.approvals.request(
            run,
            Question(
                about="call",
                subject=call["id"],
                digest=call["digest"],
                policy_version=policy_version,
                document=call,
            ),
        )
        for call in _calls(snapshot)
    ]
    return tuple(approval for approval in asked if approval.status == "pending")


def answers(store: Store, run: str, snapshot: StateSnapshot, policy_version: str) -> dict[str, Any] | None:
    """What every interrupt resumes with, or None while a call still has no answer."""
    if ask(store, run, snapshot, policy_version):
        return None
    given = {a.subject: a for a in store.approvals.list(run) if a.about == "call" and a.status != "stale"}
    return {
        interrupt.id: {
            "answers": {call["id"]: _answer(given[call["id"]]) for call in interrupt.value["calls"]}
        }
        for interrupt in snapshot.interrupts
    }


def _calls(snapshot: StateSnapshot) -> list[dict[str, Any]]:
    return [call for interrupt in snapshot.interrupts for call in interrupt.value["calls"]]


def _answer(approval: Approval) -> dict[str, str]:
    decision = "approved" if approval.status in ("approved", "used") else "denied"
    return {"decision": decision, "digest": approval.digest, "reason": approval.reason}
