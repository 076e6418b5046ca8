"""A claim passes with its evidence's own figures, and fails with any other number, time or name."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claims import find_claim_problems
from opsleuth.verification.conclusion_basis import ConclusionBasis, EffectView, EvidenceView
from opsleuth.verification.lexicon import ADJECTIVES, PARTNERS
from opsleuth.verification.name_extraction import extract_names

WINDOW = Window(
    start=datetime(2026, 11, 29, 13, 40, tzinfo=UTC), end=datetime(2026, 11, 29, 14, 20, tzinfo=UTC)
)
KNOWN = ("orders-api", "cart", "basket", "payments", "ledger")


def view(number: int, tool: str, signal: str, record: dict[str, Any], **more: Any) -> EvidenceView:
    status = more.pop("status", ResultStatus.OK)
    return EvidenceView(f"E{number}", tool, signal, status, record, **more)


EVIDENCE = {
    v.id: v
    for v in [
        view(
            1,
            "metrics_query",
            "metrics",
            {
                "service": "orders-api",
                "metric": "latency",
                "unit": "ms",
                "baseline": {"p50": 20.4, "p99": 110.2},
                "window": {"p50": 81.7, "p99": 1250.5, "peak_at": "2026-11-29T13:58:00Z"},
                "points": 412,
            },
        ),
        view(
            2,
            "logs_search",
            "logs",
            {"scanned": 14200, "matched": 0},
            status=ResultStatus.NONE_MATCHED,
            asked={"service": "payments", "query": "error"},
        ),
        view(3, "logs_search", "logs", {"reason": "no logs of dns"}, status=ResultStatus.NOT_RECORDED),
        view(
            4,
            "database_statements",
            "statements",
            {"error": "timed out after 10 s: pg-main:5432"},
            status=ResultStatus.TIMEOUT,
        ),
        view(
            5,
            "traces_compare",
            "traces",
            {
                "errors": 582,
                "requests": 14200,
                "rows": [{"service": "cart", "count": 30}, {"service": "orders-api", "count": 90}],
            },
        ),
        view(
            6,
            "changes_list",
            "changes",
            {
                "changes": [
                    {"timestamp": "2026-11-29T13:42:00Z", "service": "orders-api", "version": "v3.2.0"},
                    {"timestamp": "2026-11-29T12:10:00Z", "service": "cart", "version": "v1.9.1"},
                ]
            },
        ),
        view(
            7,
            "events_list",
            "events",
            {"events": [{"object": "cart-7f9dd8b6c4-x7gr9", "reason": "Restarted", "count": 8}]},
        ),
        view(8, "metrics_query", "metrics", {"start": "2026-11-28T09:00:00Z"}, window="baseline"),
    ]
}


def problems(text: str, *evidence: str, effects: tuple[EffectView, ...] = ()) -> list[str]:
    claim = Claim(id="C1", text=text, evidence=evidence)
    return [p.text for p in find_claim_problems(claim, ConclusionBasis(EVIDENCE, WINDOW, KNOWN, effects))]


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("orders-api p50 rose from 20 ms to 82 ms (4x) with its peak at 13:58Z", "E1"),
        ("orders-api p50 rose from 20 ms to 82 ms, a rise of 300%", "E1"),
        ("orders-api p99 reached 1.25 s", "E1"),
        ("orders-api p99 went up by 1,140 ms", "E1"),
        ("4.1 % of requests failed", "E5"),
        ("0.041 of the requests failed", "E5"),
        ("orders-api got 90 of 120 calls", "E5"),
        ("orders-api got 75% of the calls", "E5"),
        ("The peak came 16 minutes after the deploy of v3.2.0", "E1 E6"),
        ("Over the 40-minute window orders-api degraded", "E1"),
        ("cart was deployed at 12:10Z", "E6"),
        ("on 2026-11-28 at 09:00Z nothing was wrong: 0 errors", "E8 E2"),
        ("no errors in payments in the window", "E2"),
        ("No errors were logged: 0 of 14,200 lines matched", "E2"),
        ("DNS logs were not available", "E3"),
        ("The database statements could not be queried", "E4"),
        ("the container cart-7f9dd8b6c4-x7gr9 restarted 8 times", "E7"),
        ("two services were called", "E5"),
        ("orders-api 的 p50 从 20 毫秒升至 82 毫秒", "E1"),
        ("支付服务没有报错", "E2"),
        ("the affected service is slow end-to-end, out-of-memory excluded", "E1"),
    ],
)
def test_what_the_evidence_holds_may_be_said(text: str, evidence: str) -> None:
    assert problems(text, *evidence.split()) == []


@pytest.mark.parametrize(
    ("text", "evidence", "value"),
    [
        ("orders-api p99 reached 1.35 s", "E1", "1.35 s"),
        ("orders-api p99 reached 1250.5 s", "E1", "1250.5 s"),
        ("orders-api p50 rose by 250%", "E1", "250%"),
        ("4.3 % of requests failed", "E5", "4.3 %"),
        ("the peak came 19 minutes after the deploy", "E1 E6", "19 minutes"),
        ("twelve restarts of cart", "E5", "twelve"),
        ("cart-7f9dd8b6c4-x7gr9 was killed", "E1", "cart-7f9dd8b6c4-x7gr9"),
        ("cart-7f9dd8b6c4-zzzzz was killed", "E7", "cart-7f9dd8b6c4-zzzzz"),
        ("the ledger service is slow", "E1", "ledger"),
        ("the inventory service is slow", "E1", "inventory"),
        ("stock-service is slow", "E1", "stock-service"),
        ("orders-api runs v3.2.1", "E6", "v3.2.1"),
        ("orders-api failed at 15:10Z", "E6", "15:10Z"),
        ("orders-api failed at 2026-11-29T12:11Z", "E6", "2026-11-29T12:11Z"),
    ],
)
def test_what_it_does_not_hold_is_named(text: str, evidence: str, value: str) -> None:
    found = problems(text, *evidence.split())
    assert len(found) == 1
    assert f'"{value}"' in found[0]


def test_a_time_outside_the_window_needs_a_word_or_a_label() -> None:
    [problem] = problems("cart was changed at 12:10Z", "E6")
    assert "outside the window" in problem
    assert problems("cart was changed at 12:10Z, before the window", "E6") == []


def test_a_quotation_keeps_the_times_that_it_holds() -> None:
    record = {"message": "2024-08-03 17:00:08 FATAL: role missing", "time": "2026-11-29T13:50:00Z"}
    evidence = {"E1": view(1, "logs_search", "logs", record)}
    quoted = Claim(id="C1", text="cart logs 2024-08-03 17:00:08 FATAL: role missing", evidence=("E1",))
    retold = Claim(id="C1", text="cart failed at 2024-08-03 17:00:08", evidence=("E1",))
    known: tuple[str, ...] = ()
    assert find_claim_problems(quoted, ConclusionBasis(evidence, WINDOW, known)) == ()
    assert len(find_claim_problems(retold, ConclusionBasis(evidence, WINDOW, known))) == 1


@pytest.mark.parametrize("text", ["no errors in dns", "the database is the cause"])
@pytest.mark.parametrize("evidence", ["E3", "E4"])
def test_gaps_and_tool_errors_support_nothing_but_not_available(text: str, evidence: str) -> None:
    [problem] = problems(text, evidence)
    assert "not available" in problem


def test_the_text_of_a_tool_error_is_no_evidence_of_the_incident() -> None:
    [problem] = problems("pg-main timed out after 10 s", "E4")
    assert "an error of the tool" in problem


def test_a_gap_may_not_be_filled_with_a_plausible_value() -> None:
    assert problems("DNS answered in 3 ms", "E3")
    assert problems("DNS logs were not available, but the resolver dns-7f9dd8b6c4 answered", "E3")


POD = view(
    1,
    "objects_get",
    "objects",
    {"objects": [{"name": "web-1", "text": "Pending, no node assigned"}], "scanned": 2, "matched": 1},
)
LISTING = {
    "scanned": 2,
    "matched": 2,
    "statements": [
        {"statement": "SELECT 1", "wait": "IO:DataFileRead"},
        {"statement": "SELECT 2", "wait": "CPU"},
    ],
}


@pytest.mark.parametrize(
    ("text", "seen", "refused"),
    [
        ("web-1 is Pending and no node is assigned", POD, False),
        ("web-1 is Pending and no volume is bound", POD, True),
        ("No statement waits for locks", view(1, "database_statements", "statements", LISTING), False),
        ("No statement waits for CPU", view(1, "database_statements", "statements", LISTING), True),
        ("No errors occurred", view(1, "events_list", "events", {"scanned": 1, "matched": 1, "events": [{"reason": "errors"}]}), True),
        ("No statement waits for locks", view(1, "database_statements", "statements", LISTING | {"not_shown": 5}), True),
    ],
)  # fmt: skip
def test_an_absence_may_stand_in_a_row_or_in_a_complete_listing(
    text: str, seen: EvidenceView, refused: bool
) -> None:
    claim = Claim(id="C1", text=text, evidence=("E1",))
    found = find_claim_problems(claim, ConclusionBasis({"E1": seen}, WINDOW, ("web-1",)))
    assert any("claims an absence" in problem.text for problem in found) is refused


def test_an_absence_needs_a_search_that_matched_nothing() -> None:
    [problem] = problems("no deploy touched cart", "E7")
    assert "claims an absence" in problem


@pytest.mark.parametrize(
    "text",
    [
        "the queries queue up until it is slow",
        "the requests queue behind a lock",
        "the parcels queue until it is slow",
        "the machines host all of it",
        "the requests queue is full",
        "the shards cluster on one disk",
    ],
)
def test_an_english_plural_and_its_verb_are_no_name(text: str) -> None:
    assert extract_names(text, KNOWN) == []


@pytest.mark.parametrize(
    "text", ["the parcels queue is full", "the refunds service is slow", "the ledgers table is locked"]
)
def test_a_plural_that_names_a_thing_is_a_name(text: str) -> None:
    assert extract_names(text, KNOWN) == [text.split()[1]]


def test_a_claim_cites_what_exists() -> None:
    assert "cites no evidence" in problems("it is slow")[0]
    assert "E99, which does not exist" in problems("it is slow", "E99")[0]
    assert "E98, which does not exist" in problems("it is slow, see E98", "E1")[0]


DONE = EffectView("inv/t4c1", "service_restart", "orders-api", "done", checked=True, evidence=("E9",))


@pytest.mark.parametrize(
    ("text", "allowed_by"),
    [
        ("We restarted orders-api", "E1"),
        ("orders-api was rolled back", "E1"),
        ("the rollback of orders-api succeeded", "E1"),
        ("已回滚 orders-api", "E1"),
    ],
)
def test_an_action_needs_a_done_effect_whose_check_passed(text: str, allowed_by: str) -> None:
    [problem] = problems(text, allowed_by)
    assert "no effect that is done" in problem
    assert problems(text, allowed_by, effects=(DONE,)) == []
    failed = EffectView("inv/t4c1", "service_restart", "orders-api", "done", checked=False)
    assert problems(text, allowed_by, effects=(failed,))


FAILED = EffectView(
    "inv/t4c1", "service_restart", "plane/orders-api", "done", checked=False, evidence=("E5",)
)
WELL = [
    "orders-api is well again",
    "orders-api has recovered",
    "After the restart orders-api is healthy",
    "orders-api is back to normal since the restart",
    "the incident is over",
    "latency is no longer degraded",
    "orders-api works again, and it was slow",
    "orders-api 已恢复",
    "服务一切正常",
]


@pytest.mark.parametrize("text", WELL)
def test_nothing_is_well_again_where_the_last_look_failed(text: str) -> None:
    [problem] = problems(text, "E1", effects=(FAILED,))
    assert "the check of plane/orders-api failed" in problem
    mended = replace(FAILED, call_id="inv/t6c1", checked=True)
    assert problems(text, "E1", effects=(FAILED, mended)) == []
    assert problems(text, "E1", effects=(replace(FAILED, checked=None),)) == []
    assert problems(text, "E1") == []


@pytest.mark.parametrize(
    "text",
    [
        "orders-api is not healthy",
        "orders-api has not recovered",
        "orders-api should be healthy again after a rollback",
        "orders-api is slow",
        "orders-api 未恢复",
        "cart is healthy",
    ],
)
def test_what_is_not_said_to_be_well_may_be_said_after_a_failed_check(text: str) -> None:
    assert not [p for p in problems(text, "E1", "E5", effects=(FAILED,)) if "failed: say" in p]


def test_the_answer_of_an_effect_does_not_stand_for_its_check() -> None:
    said = "the restart of orders-api was successful"
    restarted = {**EVIDENCE, "E9": view(9, "service_restart", "effects", {"done": "restart of orders-api"})}
    claim = Claim(id="C1", text=said, evidence=("E9",))
    effect = replace(FAILED, evidence=("E9",))
    assert find_claim_problems(claim, ConclusionBasis(restarted, WINDOW, KNOWN, (effect,)))
    assert (
        find_claim_problems(
            claim, ConclusionBasis(restarted, WINDOW, KNOWN, (replace(effect, checked=True),))
        )
        == ()
    )


def test_what_the_evidence_reports_is_no_action_of_ours() -> None:
    assert problems("cart-7f9dd8b6c4-x7gr9 was restarted", "E7") == []
    assert problems("the restart of cart-7f9dd8b6c4-x7gr9 completed", "E7") == []
    assert problems("we saw requests fail, a fix is open", "E7") == []
    assert problems("We restarted cart-7f9dd8b6c4-x7gr9", "E7")


def test_advice_is_no_claim_of_an_action() -> None:
    assert problems("orders-api should be rolled back", "E1") == []


RECORD_VALUES = st.floats(0.01, 1e6, allow_nan=False).map(lambda v: float(f"{v:.6g}"))


@given(value=RECORD_VALUES, places=st.integers(0, 4), unit=st.sampled_from(["ms", "s", "%", "MB", ""]))
def test_a_records_own_figure_passes_at_any_rounding(value: float, places: int, unit: str) -> None:
    evidence = {"E1": view(1, "metrics_query", "metrics", {"service": "cart", "unit": unit, "value": value})}
    claim = Claim(id="C1", text=f"cart reached {value:,.{places}f} {unit}", evidence=("E1",))
    assert find_claim_problems(claim, ConclusionBasis(evidence, WINDOW, KNOWN)) == ()


@given(
    value=RECORD_VALUES, factor=st.floats(1.02, 40) | st.floats(0.02, 0.98), unit=st.sampled_from(["ms", "%"])
)
def test_a_perturbed_figure_fails(value: float, factor: float, unit: str) -> None:
    evidence = {"E1": view(1, "metrics_query", "metrics", {"service": "cart", "unit": unit, "value": value})}
    other = f"{value * factor:.8f}"
    claim = Claim(id="C1", text=f"cart reached {other} {unit}", evidence=("E1",))
    assert [p.value for p in find_claim_problems(claim, ConclusionBasis(evidence, WINDOW, KNOWN))] == [
        f"{other} {unit}"
    ]


@given(
    st.from_regex(r"[a-z]{3,8}-[0-9a-f]{8,10}-[0-9][a-z0-9]{4}", fullmatch=True)
    | st.from_regex(r"[a-z]{3,9}-(?:api|db|worker|gateway)", fullmatch=True).filter(
        lambda name: name.partition("-")[0] not in {*PARTNERS, *ADJECTIVES}
    )
    | st.from_regex(r"[a-z]{2,8}_[a-z]{2,8}", fullmatch=True)
)
def test_a_name_never_seen_fails(name: str) -> None:
    claim = Claim(id="C1", text=f"{name} is slow", evidence=("E1",))
    seen = EVIDENCE["E1"].facts.text
    expected = [] if name in seen else [name]
    assert [
        p.value for p in find_claim_problems(claim, ConclusionBasis({"E1": EVIDENCE["E1"]}, WINDOW))
    ] == expected
