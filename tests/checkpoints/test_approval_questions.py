"""Questions about calls: asked once, answered once by whoever is first, and open until they expire."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from ledger_calls import approved, no, question, rollback, yes

from opsleuth.checkpoints.approvals import LIFETIME, ApprovalAnswer, ApprovalRequest, Decision
from opsleuth.checkpoints.errors import (
    AlreadyDecidedError,
    ConflictError,
    NotApprovedError,
    NotFoundError,
    WrongDigestError,
)
from opsleuth.checkpoints.run_rows import insert_row, rows_of
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import FakeClock

LIFE = LIFETIME.total_seconds()


def test_asking_the_same_again_is_one_question(store: Store, second: Store, run: str) -> None:
    asked = store.approvals.request(run, question(rollback()))
    assert (asked.id, asked.status, asked.document) == ("A1", "pending", {"args": {"to": 41}})
    assert second.approvals.request(run, question(rollback())) == asked
    assert store.approvals.request(run, question(rollback("r/t1c2"))).id == "A2"
    assert [a.id for a in store.approvals.list(status="pending")] == ["A1", "A2"]


def test_a_question_of_an_older_version_holds_nothing_up(store: Store, run: str) -> None:
    """Older versions could ask a question of the run itself, which no command answers any more."""
    db = store.database
    old = {
        "run": run,
        "id": "Q1",
        "about": "question",
        "subject": "Which cluster?",
        "digest": "",
        "document": "{}",
    }
    insert_row(
        db,
        "approvals",
        {**old, "policy_version": "", "status": "pending", "requested": "2026", "reason": ""},
        "",
    )
    assert store.approvals.list(run) == store.approvals.pending("", 10) == ()
    with pytest.raises(NotFoundError, match="no approval 'Q1'"):
        store.approvals.get(run, "Q1")
    assert store.approvals.request(run, question(rollback())).id == "A1"
    assert [row["id"] for table, row in rows_of(db, run) if table == "approvals"] == ["Q1", "A1"]


def test_the_first_answer_stands(store: Store, second: Store, run: str) -> None:
    asked = store.approvals.request(run, question(rollback()))
    answered = store.approvals.answer(run, asked.id, yes(rollback()))
    assert (answered.status, answered.answered_by, answered.via) == ("approved", "ann", "tty")
    assert answered.answered
    assert answered.expires
    lasts = datetime.fromisoformat(answered.expires) - datetime.fromisoformat(answered.answered)
    assert lasts == timedelta(seconds=LIFE)
    with pytest.raises(AlreadyDecidedError, match="already decided: approved by ann via tty"):
        second.approvals.answer(run, asked.id, yes(rollback()))
    assert store.approvals.get(run, asked.id) == answered


def test_an_approval_may_be_denied_until_it_is_used(store: Store, second: Store, run: str) -> None:
    effect = rollback()
    asked = store.approvals.request(run, question(effect))
    store.approvals.answer(run, asked.id, yes(effect))
    denied = second.approvals.answer(run, asked.id, no())
    assert (denied.status, denied.via, denied.expires) == ("denied", "command", None)
    with pytest.raises(NotApprovedError, match="is denied"):
        store.approvals.use(run, asked.id, subject=asked.subject, digest=effect.digest, policy_version="p1")
    with pytest.raises(AlreadyDecidedError, match="already decided: denied"):
        store.approvals.answer(run, asked.id, yes(effect))


def test_a_used_approval_cannot_be_denied(store: Store, second: Store, run: str) -> None:
    effect = rollback()
    grant = approved(store, run, effect)
    asked = store.approvals.get(run, grant.approval)
    store.approvals.use(run, asked.id, subject=asked.subject, digest=effect.digest, policy_version="p1")
    with pytest.raises(AlreadyDecidedError, match="already decided: used"):
        second.approvals.answer(run, asked.id, no())


@pytest.mark.parametrize("digits", ["", "maybe", "9f3c-21aa", "0" * 16, "0" * 65, "9" * 15])
def test_only_what_was_seen_can_be_approved(store: Store, run: str, digits: str) -> None:
    asked = store.approvals.request(run, question(rollback()))
    with pytest.raises(WrongDigestError):
        store.approvals.answer(
            run, asked.id, ApprovalAnswer(decision="approved", by="ann", via="command", digest=digits)
        )
    assert store.approvals.get(run, asked.id) == asked
    dashed = "-".join(rollback().digest[i : i + 4] for i in range(0, 16, 4)).upper()
    named = ApprovalAnswer(decision="approved", by="ann", via="command", digest=dashed)
    assert store.approvals.answer(run, asked.id, named).status == "approved"


@pytest.mark.parametrize(
    ("about", "decision"),
    [("call", "answered"), ("effect", "denied"), ("effect", "approved")],
)
def test_an_answer_fits_its_question(store: Store, run: str, about: str, decision: Decision) -> None:
    asked = store.approvals.request(run, ApprovalRequest(about=about, subject="x", digest="a" * 64))  # type: ignore[arg-type]
    with pytest.raises(ConflictError, match="cannot be"):
        store.approvals.answer(
            run, asked.id, ApprovalAnswer(decision=decision, by="ann", via="tty", digest="a" * 64)
        )


def test_what_was_changed_is_asked_again(store: Store, run: str) -> None:
    first = store.approvals.request(run, question(rollback()))
    edited = store.approvals.request(run, question(rollback(revision=40)))
    assert (first.id, edited.id) == ("A1", "A2")
    assert store.approvals.get(run, "A1").reason == "the call was changed"
    with pytest.raises(AlreadyDecidedError, match="no longer asked"):
        store.approvals.answer(run, "A1", yes(rollback()))
    other_policy = store.approvals.request(run, question(rollback(revision=40), policy="p2"))
    assert other_policy.id == "A3"


def test_a_denial_is_not_asked_again(store: Store, run: str) -> None:
    asked = store.approvals.request(run, question(rollback()))
    store.approvals.answer(run, asked.id, no("too risky"))
    again = store.approvals.request(run, question(rollback(), policy="p2"))
    assert (again.id, again.status, again.reason) == ("A1", "denied", "too risky")
    assert not store.approvals.stale(run, "A1", "x")


def test_an_approval_expires(store: Store, run: str, clock: FakeClock) -> None:
    grant = approved(store, run, rollback())
    if isinstance(store.place, Path):
        clock.advance(LIFE - 1)
        assert store.approvals.is_valid(store.approvals.get(run, "A1"))
        clock.advance(1)
    else:  # a server goes by its own clock
        clock.advance(2 * LIFE)
        assert store.approvals.is_valid(store.approvals.get(run, "A1"))
        store.database.change("UPDATE approvals SET expires = '2026-11-29T14:35:00.000Z'")
    assert not store.approvals.is_valid(store.approvals.get(run, "A1"))
    with pytest.raises(NotApprovedError, match=r"expired at 2026-11-29T14:35"):
        store.effects.start(run, rollback(), attempt=1, grant=grant)
    assert store.effects.list(run) == ()
    assert store.approvals.request(run, question(rollback())).id == "A2"
    assert store.approvals.get(run, "A1").status == "stale"


def test_a_question_does_not_expire(store: Store, run: str, clock: FakeClock) -> None:
    store.approvals.request(run, question(rollback()))
    clock.advance(100 * LIFE)
    assert store.approvals.answer(run, "A1", yes(rollback())).status == "approved"
