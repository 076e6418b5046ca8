"""Tokens, what came in, kinds of alerts, what is told to others, rates that many share."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.alert_runs import AlertKind
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.service.notices import OutgoingNotice
from opsleuth.checkpoints.service.rate_limits import LONGEST_WAIT
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.background_tasks import drop_notices_to_unknown
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import Status

KIND = "f" * 64


@pytest.fixture
def file_store(path: Path, clock: FakeClock) -> Iterator[Store]:
    """Gates of a file go by the clock that is given; those of a server by its own."""
    with Store.open(path, clock, Redactor()) as opened:
        yield opened


def test_a_token_opens_until_it_is_revoked_or_expires(store: Store, clock: FakeClock) -> None:
    token, text = store.tokens.create("ada", "shop", ["run"])
    clock.advance(1)
    _, short = store.tokens.create("bo", "shop", ["approve"], clock.now() + timedelta(minutes=5))
    found = store.tokens.check(text)
    assert found is not None
    assert (found.name, found.team, found.roles) == ("ada", "shop", frozenset({"view", "run"}))
    clock.advance(300)
    assert store.tokens.check(short) is None
    store.tokens.revoke(token.id)
    assert store.tokens.check(text) is None
    assert [token.name for token in store.tokens.list()] == ["ada", "bo"]
    with pytest.raises(NotFoundError, match="no token 'x'"):
        store.tokens.revoke("x")


def test_no_secret_of_a_token_is_stored(store: Store) -> None:
    _, text = store.tokens.create("ada", "shop", ["run"])
    stored = " ".join(map(str, store.database.rows("SELECT * FROM tokens")[0]))
    assert text.rpartition("_")[2] not in stored


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.text(max_size=80) | st.from_regex(r"opsleuth_[0-9a-f]{12}_.{0,60}"))
def test_other_texts_open_nothing(store: Store, text: str) -> None:
    if not store.tokens.list():
        store.tokens.create("ada", "shop", ["run"])
    assert store.tokens.check(text) is None


def test_a_run_is_found_by_its_senders_key_within_the_team(store: Store) -> None:
    taken = IntakeRow(
        run="inv-20261129-7k3f", team="shop", severity=3, sender="ada", request="k1", digest="d", strikes=0
    )
    store.intake.put(taken)
    assert store.intake.of_request("shop", "k1") == taken
    assert store.intake.of_request("bank", "k1") is None
    assert store.intake.get("inv-20261129-none") is None


def test_strikes_count_attempts_without_progress(store: Store) -> None:
    store.intake.put(IntakeRow(run="r", team="shop", severity=1, sender="ada", request=None, digest="d"))
    assert [store.intake.attempt("r", progress) for progress in (0, 0, 3, 3, 3, 4)] == [1, 2, 1, 2, 3, 1]


def kind_of(team: str, clock: FakeClock, severity: str = "warning") -> AlertKind:
    return AlertKind(team=team, fingerprint=KIND, service="api", severity=severity, began=clock.now())


def test_kind_of_alert_is_known_with_its_run_and_how_that_stands(store: Store, clock: FakeClock) -> None:
    for run in ("r1", "r2"):
        store.runs.create(RunRow(id=run, question="q"))
    store.alerts.put(kind_of("shop", clock), "r1", {"text": "slow"})
    for _ in range(3):
        store.alerts.count_again(kind_of("shop", clock, "critical"))
    known = store.alerts.find("shop", KIND)
    assert known is not None
    assert (known.run, known.count, known.severity, known.refired, known.is_live) == (
        "r1",
        4,
        "critical",
        0,
        True,
    )
    assert store.alerts.find("bank", KIND) is None
    assert store.alerts.count("r1") == 4
    store.alerts.over("shop", KIND)
    store.alerts.count_again(kind_of("shop", clock))
    store.runs.update("r1", status=Status.COMPLETED)
    again = store.alerts.find("shop", KIND)
    assert again is not None
    assert (again.refired, again.is_live) == (1, False)
    store.alerts.put(kind_of("shop", clock), "r2", {"text": "slow"})
    since, until = clock.now() - timedelta(minutes=30), clock.now() + timedelta(minutes=30)
    found = store.alerts.find_related("shop", ["api", "web"], since, until)
    assert [(seen.run, seen.count) for seen in found] == [("r2", 1)]
    assert store.alerts.find_related("shop", ["web"], since, until) == ()


def test_a_notice_is_written_once_and_stays_until_it_is_delivered(store: Store, clock: FakeClock) -> None:
    notice = OutgoingNotice(run="r", key="concluded", target="chat", kind="task.ended", document={"a": 1})
    assert store.notices.put(notice)
    assert not store.notices.put(notice)
    (due,) = store.notices.due("chat")
    until = clock.now() + timedelta(seconds=60)
    assert [store.notices.claim(due, until), store.notices.claim(due, until)] == [True, False]
    store.notices.later(due, clock.now() + timedelta(seconds=30), "connection refused")
    assert store.notices.due("chat") == ()
    clock.advance(30)
    assert [(again.id, again.tries) for again in store.notices.due("chat")] == [("r/concluded", 1)]
    store.notices.delivered(due)
    clock.advance(3600)
    assert (store.notices.due("chat"), store.notices.waiting()) == ((), 0)


def test_messages_to_a_target_that_nobody_knows_are_dropped_when_nobody_has_tried_for_long(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for target in ("chat", "gone"):
        store.notices.put(
            OutgoingNotice(run="r", key="concluded", target=target, kind="concluded", document={})
        )
    clock.advance(86_399)
    assert drop_notices_to_unknown(store, clock, ["chat"]) == 0
    clock.advance(2)
    assert drop_notices_to_unknown(store, clock, ["chat"]) == 1
    assert "gone" in caplog.text
    assert [notice.target for notice in store.notices.due("chat")] == ["chat"]
    assert store.notices.waiting() == 1


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0.01, 2)), min_size=1, max_size=30), st.floats(0, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_a_gate_lets_no_more_through_than_its_rate_and_burst(
    file_store: Store, clock: FakeClock, callers: list[tuple[float, float]], burst: float
) -> None:
    clock.advance(1_000_000)
    began, taken = clock.now().timestamp(), 0.0
    for pause, cost in callers:
        clock.advance(pause)
        wait = file_store.gates.take("model", cost, burst)
        through = clock.now().timestamp() + wait
        assert taken <= through - began + burst + 0.01
        taken += cost


def test_an_unused_gate_opens_at_once(file_store: Store, clock: FakeClock) -> None:
    assert file_store.gates.take("model", 2.0) == 0
    assert file_store.gates.take("model", 2.0) == pytest.approx(2.0, abs=0.01)
    assert file_store.gates.take("another", 2.0) == 0
    clock.advance(datetime(2026, 11, 30, tzinfo=UTC).timestamp() - clock.now().timestamp())
    assert file_store.gates.take("model", 2.0) == 0


def test_one_clock_that_is_wrong_makes_nobody_wait(store: Store, place: Place, clock: FakeClock) -> None:
    ahead = FakeClock(clock.now() + timedelta(hours=1))
    with Store.open(place, ahead, Redactor()) as other:
        other.gates.take("model", 1.0)
    assert store.gates.take("model", 1.0) <= (LONGEST_WAIT if isinstance(place, Path) else 1.0)
