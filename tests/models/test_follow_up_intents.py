"""Questions of a known form are answered from what was measured, and never with a yes or no that was not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.models.follow_up_answers import decide_follow_up
from opsleuth.models.follow_up_intents import find_intent
from opsleuth.models.planner import PlannerView
from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Cause, CauseChange, Conclusion
from opsleuth.state.follow_up import FollowUp
from opsleuth.state.investigation import Alert, Investigation, Window
from opsleuth.state.results import Observation
from opsleuth.state.run_status import Verdict

WINDOW = Window(start=datetime(2026, 3, 3, 12, tzinfo=UTC), end=datetime(2026, 3, 3, 13, tzinfo=UTC))
ALERT = Alert(text="web is slow", service="web", metric="p95_ms", onset=datetime(2026, 3, 3, 12, 20, tzinfo=UTC))  # fmt: skip


def _seen(tool: str, number: int, record: dict[str, Any] | None = None, *, found: bool = True, **arguments: Any) -> Observation:  # fmt: skip
    return Observation(
        number=number,
        call_id=f"inv/t1c{number}",
        turn=1,
        tool=tool,
        arguments=arguments,
        purpose="",
        status=ResultStatus.OK if found else ResultStatus.NOT_RECORDED,
        evidence=f"E{number}",
        headline="",
        record=record or {},
    )


def _ask(question: str, *observations: Observation, causes: tuple[Cause, ...] = (), alert: Alert | None = ALERT, services: tuple[str, ...] = ()) -> Conclusion:  # fmt: skip
    about = FollowUp(run="inv-20260303-aaaa", question="why?", causes=causes, services=services)
    state = Investigation(question=question, follow_up=about, window=WINDOW, alert=alert)
    decision = decide_follow_up(PlannerView(state, observations, (), ()), about)
    assert decision.conclusion is not None
    return decision.conclusion


def _samples(*values: float) -> dict[str, Any]:
    """Samples of p95_ms, one each five minutes."""
    points = [
        {"time": f"2026-03-03T12:{5 * place:02}:00Z", "value": value} for place, value in enumerate(values)
    ]
    return {"service": "web", "metric": "p95_ms", "unit": "ms", "points": points}


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("is it fixed?", "state"),
        ("is it over?", "state"),
        ("is web still failing?", "state"),
        ("has it recovered?", "state"),
        ("is it back to normal?", "state"),
        ("who holds the lock?", "holder"),
        ("what blocks the orders table?", "holder"),
        ("which session is blocking?", "holder"),
        ("what is upstream of orders-api?", "neighbours"),
        ("what depends on orders-db?", "neighbours"),
        ("who calls orders-db?", "neighbours"),
        ("what share of requests of web fails?", "share"),
        ("how many requests fail?", "share"),
        ("what is the error rate of web?", "share"),
        ("was it the cache?", None),
        ("was it the release?", None),
        ("what was changed before?", None),
        ("how did the cpu of orders-db move?", None),
    ],
)
def test_the_form_of_a_question_is_known(question: str, intent: str | None) -> None:
    assert find_intent(question) == intent


@pytest.mark.parametrize(
    ("values", "first", "said"),
    [
        ((180, 190, 185, 182, 2100, 2200, 2300, 2250), "No: it still fails", "is 2250 ms at 2026-03-03T12:35:00Z, before it was between 180 and 190 ms"),
        ((180, 190, 185, 182, 2100, 190, 185, 182), "Yes, as far as it was measured", "is normal since 2026-03-03T12:25:00Z: 182 ms"),
        ((180, 190, 185, 182, 2100, 190, 2100, 182), "Not measured", "goes up and down"),
        ((180, 190, 185, 182, 181, 190, 182, 182), "Not measured", "did not leave its usual range"),
    ],
)  # fmt: skip
def test_whether_it_is_over_is_read_from_the_end_of_the_alarmed_metric(
    values: tuple[float, ...], first: str, said: str
) -> None:
    found = _ask("is it fixed?", _seen("metrics_query", 1, _samples(*values), service="web", metric="p95_ms"))
    assert found.answer.startswith(first)
    assert said in found.answer
    assert [claim.evidence for claim in found.claims] == [("E1",)]


@pytest.mark.parametrize(
    ("last", "spoke", "first"),
    [
        ("12:59:50", "12:59:59", "No: it still fails"),
        ("12:30:00", "12:59:59", "Yes, as far as it was measured"),
        ("12:30:00", "12:30:01", "Not measured"),
        ("12:30:00", None, "Not measured"),
    ],
)
def test_whether_it_is_over_is_read_from_the_last_lines_of_failure(
    last: str, spoke: str | None, first: str
) -> None:
    failing = {"matched": 60, "first": "2026-03-03T12:20:00Z", "last": f"2026-03-03T{last}Z"}
    every = {"matched": 900, "first": "2026-03-03T12:00:00Z", "last": f"2026-03-03T{spoke}Z"}
    seen = [_seen("logs_search", 1, failing, service="web", level="error")]
    seen += [_seen("logs_search", 2, every, service="web")] if spoke else []
    assert _ask("is it over?", *seen).answer.startswith(first)


@pytest.mark.parametrize("question", ["is it over?", "who holds the lock?", "what share of requests fails?", "what is upstream of web?"])  # fmt: skip
def test_what_nothing_measured_is_said_to_be_missing(question: str) -> None:
    found = _ask(question)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert found.answer.startswith(("Not measured: ", "Not recorded: "))
    assert found.claims == ()


LOCKED = [
    {"service": "orders-db", "message": "process 5001 still waiting for ShareLock on transaction 7 after 1000.1 ms"},
    {"service": "orders-db", "message": "Process holding the lock: 4711. Wait queue: 5001, 5002."},
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        ("Process holding the lock: 4711. Wait queue: 5001.", "Session 4711"),
        ("Process 5001 waits for ShareLock on transaction 7; blocked by process 4711.", "Session 4711"),
        ("2 sessions wait, held by process 4711, idle in transaction since 12:01", "Session 4711"),
        ("held by session 4711 (Sleep), its transaction open since 12:01", "Session 4711"),
        ("held by prepared transaction 'p1' of app since 12:01", "Prepared transaction 'p1'"),
    ],
)
def test_the_holder_of_a_lock_is_named_with_the_text_that_names_it(text: str, holder: str) -> None:
    found = _ask("who holds the lock?", _seen("events_list", 1, {"events": [{"message": text}]}))
    first, line = found.answer.splitlines()
    assert first == f"{holder} holds the lock. What it runs is not recorded."
    assert text in line
    assert found.claims[0].evidence == ("E1",)


def test_what_the_holder_does_is_quoted_where_a_line_says_it() -> None:
    doing = "process 4711 statement: ALTER TABLE orders ADD COLUMN channel text"
    found = _ask(
        "who holds the lock?",
        _seen("logs_search", 1, {"lines": LOCKED}, text="holding the lock"),
        _seen("logs_search", 2, {"lines": [LOCKED[1], {"message": doing}]}, text="4711"),
    )
    assert found.answer.splitlines()[0] == "Session 4711 holds the lock."
    assert f'It did: "{doing}"' in found.answer


def test_neighbours_are_those_one_call_away() -> None:
    record = {
        "service": "orders-api",
        "calls": [{"service": "orders-db", "distance": 1}, {"service": "disk", "distance": 2}],
        "called_by": [{"service": "web", "distance": 1}],
    }
    found = _ask(
        "what is downstream of orders-api?",
        _seen("topology", 1, record, service="orders-api"),
        services=("orders-api",),
    )
    assert "orders-api calls orders-db.\norders-api is called by web." in found.answer
    assert found.verdict == Verdict.ANSWERED


def test_a_share_is_stated_as_it_was_measured() -> None:
    row = {"service": "web", "respect": "failures", "unit": "%", "text": "12 % of requests to web failed, usually 0.2 %"}  # fmt: skip
    found = _ask("what share of requests of web fails?", _seen("metrics_anomalies", 1, {"impact": [row]}))
    assert found.answer.splitlines()[1] == f"{row['text']}."
    assert found.claims[0].evidence == ("E1",)


def _cause(grade: str | None) -> Cause:
    change = CauseChange.model_validate({"id": "V42", "kind": "migration", "service": "orders-db", "at": "2026-03-03T12:19:30Z", "grade": grade, "why": "30 s before the onset"}) if grade else None  # fmt: skip
    return Cause(service="orders-db", kind="locks", change=change)


@pytest.mark.parametrize(
    ("grade", "read", "first"),
    [
        ("cause", True, "Yes: the run blames orders-db"),
        ("coincides", True, "Not shown: the migration of orders-db at 2026-03-03T12:19:30Z fits in place and time only"),
        (None, False, "Not known, as nothing was read by changes_list"),
        (None, True, "Nothing points to a change"),
    ],
)  # fmt: skip
def test_a_release_is_blamed_only_where_its_part_is_shown(
    grade: str | None, first: str, *, read: bool
) -> None:
    found = _ask("was it the release?", _seen("changes_list", 1, found=read), causes=(_cause(grade),))
    assert found.answer.startswith(first)
