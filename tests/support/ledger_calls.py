"""A call that needs approval, with its question and answers, for tests of what the store keeps of them."""

from opsleuth.checkpoints.approvals import ApprovalAnswer, ApprovalRequest
from opsleuth.checkpoints.effects import Effect, EffectGrant
from opsleuth.checkpoints.store import Store


def rollback(
    call_id: str = "r/t1c1", revision: int = 41, repeat_of: str | None = None, risk: str = "high"
) -> Effect:
    return Effect(
        call_id=call_id,
        tool="service_rollback",
        arguments={"to": revision},
        target="prod-1/checkout",
        risk=risk,
        repeat_of=repeat_of,
    )


def question(effect: Effect, policy: str = "p1") -> ApprovalRequest:
    return ApprovalRequest(
        about="call",
        subject=effect.call_id,
        digest=effect.digest,
        policy_version=policy,
        document={"args": {"to": 41}},
    )


def yes(effect: Effect) -> ApprovalAnswer:
    return ApprovalAnswer(decision="approved", by="ann", via="tty", digest=effect.digest[:16])


def no(reason: str = "not now") -> ApprovalAnswer:
    return ApprovalAnswer(decision="denied", by="ann", via="command", reason=reason)


def approved(store: Store, run: str, effect: Effect) -> EffectGrant:
    asked = store.approvals.request(run, question(effect))
    store.approvals.answer(run, asked.id, yes(effect))
    return EffectGrant(asked.id, effect.digest, "p1")
