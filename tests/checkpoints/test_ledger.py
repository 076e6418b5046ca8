"""Effects and their approvals: each transition once, by whoever is first; every order of events against a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
import servers
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger_calls import approved, no, question, rollback, yes
from tiers import COSTLY

from opsleuth.checkpoints.approvals import LIFETIME
from opsleuth.checkpoints.database_urls import Place, PostgresServer
from opsleuth.checkpoints.effects import Effect, EffectGrant
from opsleuth.checkpoints.errors import (
    AlreadyDecidedError,
    AlreadyStartedError,
    ConflictError,
    NotApprovedError,
    NotFoundError,
    WrongDigestError,
)
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock

LIFE = LIFETIME.total_seconds()


def test_start_uses_the_approval_and_marks_the_effect_or_neither(
    store: Store, second: Store, run: str
) -> None:
    effect = rollback()
    grant = approved(store, run, effect)
    row = store.effects.start(run, effect, attempt=1, grant=grant)
    assert (row.status, row.tries, row.approval, row.attempt) == ("started", 1, "A1", 1)
    assert store.approvals.get(run, "A1").status == "used"
    with pytest.raises(AlreadyStartedError) as raised:
        second.effects.start(run, effect, attempt=2, grant=grant)
    assert (raised.value.run, raised.value.key) == (run, effect.key)
    other = rollback(revision=39)
    with pytest.raises(NotApprovedError, match="is used"):
        second.effects.start(run, other, attempt=2, grant=grant)
    assert [r.key for r in store.effects.list(run)] == [effect.key]


@pytest.mark.parametrize("wrong", ["digest", "policy", "call", "pending", "none", "unknown"])
def test_no_effect_without_exactly_its_approval(store: Store, run: str, wrong: str) -> None:
    effect = rollback()
    grant: EffectGrant | None = EffectGrant("A1", effect.digest, "p1")
    asked = store.approvals.request(run, question(effect))
    if wrong != "pending":
        store.approvals.answer(run, asked.id, yes(effect))
    if wrong == "digest":
        effect = rollback(revision=40)
        grant = EffectGrant("A1", effect.digest, "p1")
    elif wrong == "policy":
        grant = EffectGrant("A1", effect.digest, "p2")
    elif wrong == "call":
        effect = rollback("r/t2c1")
    elif wrong == "none":
        grant = None
    elif wrong == "unknown":
        grant = EffectGrant("A9", effect.digest, "p1")
    with pytest.raises(NotFoundError if wrong == "unknown" else NotApprovedError):
        store.effects.start(run, effect, attempt=1, grant=grant)
    assert store.effects.list(run) == ()
    assert store.approvals.get(run, "A1").status == ("pending" if wrong == "pending" else "approved")


def test_the_same_effect_under_another_call_is_not_done_again(store: Store, run: str) -> None:
    low = rollback(risk="low")
    store.effects.start(run, low, attempt=1)
    store.effects.finish(run, low.key, "done", {"revision": 41}, attempt=1)
    child = store.runs.create(RunRow(id="inv-child", question="q", parent=run, forked_at_observation=0)).id
    for member in (run, child):
        found = store.effects.lookup(member, "service_rollback", {"to": 41.0}, "prod-1/checkout")
        assert found is not None
        assert (found.status, found.result) == ("done", {"revision": 41})
        with pytest.raises(AlreadyStartedError, match="repeat_of=r/t1c1"):
            store.effects.start(member, rollback("r/t2c1", risk="low"), attempt=1)
    assert store.effects.lookup(child, "service_rollback", {"to": 40}, "prod-1/checkout") is None
    assert store.effects.lookup(child, "service_rollback", {"to": 41}, "prod-2/checkout") is None

    again = rollback("r/t3c1", repeat_of="r/t1c1", risk="low")
    with pytest.raises(NotApprovedError):
        store.effects.start(run, again, attempt=1)
    assert store.effects.start(run, again, attempt=1, grant=approved(store, run, again)).status == "started"


def test_started_by_another_attempt_is_unknown(store: Store, run: str) -> None:
    one, two = rollback(risk="low"), rollback("r/t1c2", 40, risk="low")
    store.effects.start(run, one, attempt=1)
    store.effects.start(run, two, attempt=2)
    assert [r.key for r in store.effects.orphans(run, attempt=2)] == [one.key]
    with pytest.raises(ConflictError, match="is unknown"):
        store.effects.finish(run, one.key, "done", {}, attempt=1)
    assert store.effects.found(run, one.key, {"seen": True}).status == "done"
    with pytest.raises(ConflictError):
        store.effects.found(run, one.key, {})
    with pytest.raises(ConflictError):
        store.effects.finish(run, two.key, "done", {}, attempt=1)
    assert store.effects.finish(run, two.key, "done", {}, attempt=2).happened


def test_an_unknown_effect_is_tried_once_more_at_most(store: Store, run: str) -> None:
    effect = rollback(risk="low")
    store.effects.start(run, effect, attempt=1)
    store.effects.finish(run, effect.key, "unknown", {"error": "timeout"}, attempt=1)
    assert store.effects.again(run, effect.key, attempt=2).tries == 2
    store.effects.finish(run, effect.key, "unknown", {}, attempt=2)
    with pytest.raises(ConflictError, match="try 2"):
        store.effects.again(run, effect.key, attempt=3)


@pytest.mark.parametrize(("outcome", "blocks"), [("happened", True), ("absent", False)])
def test_a_persons_word_on_an_unknown_effect(store: Store, run: str, outcome: str, *, blocks: bool) -> None:
    effect = rollback(risk="low")
    store.effects.start(run, effect, attempt=1)
    store.effects.finish(run, effect.key, "unknown", {}, attempt=1)
    row = store.effects.resolve(run, effect.key, outcome, by="ann", reason="looked")  # type: ignore[arg-type]
    assert (row.status, row.outcome, row.happened) == ("resolved", outcome, blocks)
    assert row.result == {"by": "ann", "reason": "looked"}
    assert (store.effects.lookup(run, effect.tool, effect.arguments, effect.target) is not None) is blocks
    with pytest.raises(ConflictError):
        store.effects.resolve(run, effect.key, "happened", by="bob", reason="x")


def test_only_what_happened_is_checked(store: Store, run: str) -> None:
    effect = rollback(risk="low")
    store.effects.start(run, effect, attempt=1)
    with pytest.raises(ConflictError):
        store.effects.check(run, effect.key, passed=True, seen="ok")
    store.effects.finish(run, effect.key, "done", {}, attempt=1)
    assert store.effects.get(run, effect.key).verified is None
    assert store.effects.check(run, effect.key, passed=False, seen="errors 4 %").verified is False


class Ledger(RuleBasedStateMachine):
    """Two connections work on one run in any order; the world counts what was really done.

    Whatever happens, each approval is used once at most, nothing runs that was not approved in this form, and
    equal effects happen once unless a person said that the first did not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.clock = FakeClock(datetime(2026, 11, 29, 14, tzinfo=UTC))
        place = self.place(Path(self._folder.name))
        self.stores = [Store.open(place, self.clock, Redactor()) for _ in range(2)]
        self.run = self.stores[0].runs.create(RunRow(id="inv-a", question="q")).id
        self.attempt = 1
        self.world: dict[str, int] = {}
        self.absent: dict[str, int] = {}
        self.answers: dict[str, str] = {}
        self.allowed: dict[tuple[str, str], int] = {}

    @staticmethod
    def place(folder: Path) -> Place:
        return folder / "x.db"

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self._folder.cleanup()

    store = st.integers(0, 1)
    effect = st.builds(rollback, st.sampled_from(["r/t1c1", "r/t1c2", "r/t2c1"]), st.sampled_from([40, 41]))

    @initialize(effect=effect)
    def first(self, effect: Effect) -> None:
        self.ask(0, effect)

    @rule(store=store, effect=effect)
    def ask(self, store: int, effect: Effect) -> None:
        asked = self.stores[store].approvals.request(self.run, question(effect))
        assert (asked.subject, asked.digest) == (effect.call_id, effect.digest)
        assert asked.status != "stale"

    @rule(store=store, number=st.integers(1, 4), effect=effect, approve=st.booleans())
    def answer(self, store: int, number: int, effect: Effect, *, approve: bool) -> None:
        name = f"A{number}"
        with _allowed(NotFoundError, AlreadyDecidedError, WrongDigestError):
            row = self.stores[store].approvals.answer(self.run, name, yes(effect) if approve else no())
            taken_back = self.answers.get(name) == "approved" and not approve
            assert taken_back or name not in self.answers, "answered twice"
            assert not approve or row.digest == effect.digest
            self.answers[name] = row.status

    @rule(store=store, number=st.integers(1, 4), effect=effect, sent=st.booleans())
    def act(self, store: int, number: int, effect: Effect, *, sent: bool) -> None:
        grant = EffectGrant(f"A{number}", effect.digest, "p1")
        with _allowed(NotFoundError, NotApprovedError, AlreadyStartedError):
            row = self.stores[store].effects.start(self.run, effect, attempt=self.attempt, grant=grant)
            assert self.answers[f"A{number}"] == "approved"
            assert row.digest == effect.digest
            self.world[effect.digest] = self.world.get(effect.digest, 0) + sent
            self.absent[effect.key] = not sent

    @rule(store=store, how=st.sampled_from(["done", "failed_clean", "unknown"]))
    def finish(self, store: int, how: str) -> None:
        for row in self.stores[store].effects.list(self.run, "started"):
            truth = "failed_clean" if self.absent[row.key] and how == "done" else how
            truth = "unknown" if not self.absent[row.key] and how == "failed_clean" else truth
            with _allowed(ConflictError):
                self.stores[store].effects.finish(self.run, row.key, truth, {}, attempt=self.attempt)  # type: ignore[arg-type]

    @rule(store=store)
    def crash_and_resume(self, store: int) -> None:
        self.attempt += 1
        for row in self.stores[store].effects.orphans(self.run, attempt=self.attempt):
            assert row.status == "unknown"
        assert not self.stores[1 - store].effects.list(self.run, "started")

    @rule(store=store, retry=st.booleans(), sent=st.booleans())
    def probe(self, store: int, *, retry: bool, sent: bool) -> None:
        for row in self.stores[store].effects.list(self.run, "unknown"):
            if not self.absent[row.key]:
                self.stores[store].effects.found(self.run, row.key, {})
            elif retry and row.tries == 1:
                self.stores[store].effects.again(self.run, row.key, attempt=self.attempt)
                self.world[row.digest] = self.world.get(row.digest, 0) + sent
                self.absent[row.key] = not sent
            else:
                self.stores[store].effects.resolve(self.run, row.key, "absent", by="ann", reason="looked")

    @rule(seconds=st.sampled_from([1.0, LIFE / 2, LIFE]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.answers)
    @invariant()
    def only_an_approval_that_is_unused_is_taken_back(self) -> None:
        rows = {a.id: a for a in self.stores[0].approvals.list(self.run)}
        for name, status in self.answers.items():
            assert (
                rows[name].status
                in {"approved": ("approved", "used", "stale"), "denied": ("denied",)}[status]
            )

    @invariant()
    def each_approval_has_one_effect_and_each_effect_happened_once(self) -> None:
        rows = self.stores[1].effects.list(self.run)
        used = [a.id for a in self.stores[1].approvals.list(self.run, "used")]
        assert sorted(row.approval or "" for row in rows) == sorted(used)
        assert [effect for effect, count in self.world.items() if count > 1] == []
        assert [row.call_id for row in rows if row.tries > 2] == []


@contextmanager
def _allowed(*kinds: type[Exception]) -> Iterator[None]:
    """These refusals are right answers; nothing has changed after them."""
    try:
        yield
    except kinds:
        return


class LedgerOnServer(Ledger):
    """The same; each example is a database of its own."""

    server: ClassVar[servers.Postgres]

    @staticmethod
    def place(folder: Path) -> Place:
        return PostgresServer(LedgerOnServer.server.database(), folder)


@pytest.mark.slow
def test_the_ledger_in_any_order() -> None:
    run_state_machine_as_test(Ledger, settings=MANY)


@pytest.mark.slow
def test_the_ledger_in_any_order_on_a_server(postgres: servers.Postgres) -> None:
    LedgerOnServer.server = postgres
    run_state_machine_as_test(LedgerOnServer, settings=settings(MANY, max_examples=15))


MANY = settings(COSTLY, max_examples=40, stateful_step_count=25)
