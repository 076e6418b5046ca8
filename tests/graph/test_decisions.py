"""One way in for a person's answer, whatever it came over: terminal, command or API."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsleuth.checkpoints.approvals import Approval, ApprovalRequest
from opsleuth.checkpoints.effects import Effect
from opsleuth.checkpoints.errors import AlreadyDecidedError, WrongDigestError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.approvals.decisions import AnsweringPerson, OperatorReply, record_answer
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock
from opsleuth.state.errors import UsageError

RUN = "inv-20261129-7k3f"
ANN = AnsweringPerson("ann", "api")
RESTART = Effect(
    call_id="r/t1c1",
    tool="service_restart",
    arguments={"service": "checkout"},
    target="prod/checkout",
    risk="high",
)
WIPE = Effect(
    call_id="r/t1c2", tool="volume_delete", arguments={"volume": "a"}, target="prod/a", risk="irreversible"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    clock = FakeClock(datetime(2026, 11, 29, 14, 5, tzinfo=UTC))
    with Store.open(tmp_path / "opsleuth.db", clock, Redactor()) as opened:
        opened.runs.create(RunRow(id=RUN, question="checkout 5xx"))
        yield opened


def asked(store: Store, effect: Effect) -> Approval:
    document = {"tool": effect.tool, "target": effect.target, "risk": effect.risk}
    question = ApprovalRequest(about="call", subject=effect.call_id, digest=effect.digest, document=document)
    return store.approvals.request(RUN, question)


def lost(store: Store) -> Approval:
    """An effect whose outcome nobody saw, and the question about it."""
    row = store.effects.start(RUN, RESTART, attempt=1, grant=None, allowed=True)
    store.effects.finish(RUN, row.key, "unknown", {}, attempt=1)
    question = ApprovalRequest(
        about="effect", subject=row.call_id, digest=row.digest, document={"key": row.key}
    )
    return store.approvals.request(RUN, question)


def test_each_answer_leaves_its_row_and_one_event(store: Store) -> None:
    first, second = asked(store, RESTART), asked(store, WIPE)
    approved = OperatorReply("approved", digest=second.digest, confirm="prod/a")
    assert (
        record_answer(store, RUN, first.id, OperatorReply("denied", reason="not now"), ANN).status == "denied"
    )
    assert record_answer(store, RUN, second.id, approved, ANN).status == "approved"
    told = [(e["data"]["id"], e["data"]["decision"], e["data"]["by"]) for e in store.events.read(RUN)]
    assert told == [("A1", "denied", "ann"), ("A2", "approved", "ann")]


def test_a_word_on_an_effect_changes_question_and_ledger(store: Store) -> None:
    question = lost(store)
    reply = OperatorReply("resolved", digest=question.digest, outcome="absent", reason="looked")
    assert record_answer(store, RUN, question.id, reply, ANN).status == "answered"
    assert store.effects.get(RUN, RESTART.key).outcome == "absent"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (OperatorReply("approved"), WrongDigestError),
        (OperatorReply("approved", digest="0" * 16), WrongDigestError),
        (OperatorReply("denied", digest="0" * 16), WrongDigestError),
        (OperatorReply("resolved", outcome="happened"), UsageError),
        (OperatorReply("resolved"), UsageError),
        (OperatorReply("edited", arguments={"service": "cart"}), UsageError),
    ],
)
def test_an_answer_that_does_not_fit_changes_nothing(
    store: Store, reply: OperatorReply, error: type[Exception]
) -> None:
    question = asked(store, RESTART)
    with pytest.raises(error):
        record_answer(store, RUN, question.id, reply, ANN)
    assert store.approvals.get(RUN, question.id) == question
    assert store.events.read(RUN) == []


def test_what_cannot_be_undone_needs_its_target_by_name(store: Store) -> None:
    question = asked(store, WIPE)
    with pytest.raises(UsageError, match="--confirm-target prod/a"):
        record_answer(
            store, RUN, question.id, OperatorReply("approved", digest=question.digest, confirm="prod/b"), ANN
        )


def test_the_first_answer_stands(store: Store) -> None:
    question = asked(store, RESTART)
    record_answer(store, RUN, question.id, OperatorReply("denied", digest=question.digest), ANN)
    for late in (
        OperatorReply("approved", digest=question.digest),
        OperatorReply("denied", digest=question.digest),
    ):
        with pytest.raises(AlreadyDecidedError, match="denied by ann via api"):
            record_answer(store, RUN, question.id, late, ANN)
