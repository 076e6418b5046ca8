"""What becomes of a claim: by ids, by an operation, in prose; and what may never stand as measured or computed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Cause, Claim, Conclusion
from opsleuth.state.investigation import Window
from opsleuth.state.run_status import Verdict
from opsleuth.verification.answer_absence import find_absence_problems
from opsleuth.verification.claim_resolution import resolve_claim, resolve_claims
from opsleuth.verification.conclusion_basis import ConclusionBasis, EffectView, EvidenceView
from opsleuth.verification.effect_claims import find_success_problems
from opsleuth.verification.question_demands import parse_question_demands

WINDOW = Window(start=datetime(2026, 5, 12, 8, 30, tzinfo=UTC), end=datetime(2026, 5, 12, 9, 30, tzinfo=UTC))


def finding(service: str, now: float, usual: float, onset: str, **more: Any) -> dict[str, Any]:
    made = {
        "service": service,
        "kind": "errors",
        "direction": "cause",
        "metric": "error_rate",
        "onset": onset,
        "detector": "resources.errors",
        "text": f"error_rate of {service} went from {usual} to {now} %",
        "figures": {"incident": now, "usual": usual, "unit": "%"},
    }
    return made | more


RECORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "E1": (
        "metrics_anomalies",
        {
            "matched": 2,
            "scanned_series": 9,
            "findings": [
                finding("till", 91.6, 0.12, "2026-05-12T09:00:00Z"),
                finding("web", 12.5, 0.25, "2026-05-12T09:19:00Z", direction="victim"),
            ],
        },
    ),
    "E2": ("logs_search", {"service": "ledger", "level": "error", "scanned": 431, "matched": 0}),
    "E3": (
        "changes_list",
        {
            "scanned": 1,
            "matched": 1,
            "changes": [{"time": "2026-05-12T08:59:00Z", "service": "till", "kind": "deploy", "summary": "till 3.1: tax table", "version": "3.1", "author": "alice"}],
        },
    ),
    "E4": ("logs_search", {"service": "cart", "scanned": 90, "matched": 0, "incomplete": "stopped after 90 lines"}),
    "E5": (
        "objects_get",
        {
            "scanned": 3,
            "matched": 3,
            "others": [{"kind": "Pod", "name": f"till-{i}", "ready": 1, "desired": 1, "restarts": 0} for i in (1, 2, 3)],
        },
    ),
    "E6": ("metrics_query", {"service": "till", "metric": "retrans_per_sec", "max": {"time": "2026-05-12T09:03:00Z", "value": 9.07}}),
    "E7": ("cache_flush", {"answer": "ok", "zone": "shop"}),
}  # fmt: skip


def basis(**more: Any) -> ConclusionBasis:
    views = {
        id_: EvidenceView(id_, tool, "x", ResultStatus.NONE_MATCHED if record.get("matched") == 0 else ResultStatus.OK, record)
        for id_, (tool, record) in RECORDS.items()
    }  # fmt: skip
    return ConclusionBasis(views, WINDOW, ("till", "web", "ledger"), **more)


def resolve(**claim: Any) -> tuple[Claim, list[str]]:
    made, problems = resolve_claim(Claim(id="C1", **claim), basis())
    return made, [problem.text for problem in problems]


def test_a_fact_by_its_id_is_said_by_code() -> None:
    made, problems = resolve(facts=("E1.1",), text="till is fine")
    assert problems == []
    assert (made.basis, made.text) == (
        "measured",
        "error_rate of till went from 0.12 to 91.6 % (since 2026-05-12T09:00:00Z)",
    )
    assert made.evidence == ("E1",)
    assert resolve_claim(made, basis()) == (made, ())


def test_an_unknown_fact_is_refused_with_the_choices() -> None:
    assert resolve(facts=("E1.99",))[1] == ["C1: E1.99 does not exist: its facts are E1.1 to E1.4"]
    assert "evidence of this run is E1, E2" in resolve(facts=("E9.1",))[1][0]


@pytest.mark.parametrize(
    ("op", "facts", "said"),
    [
        ("before", ("E3.2", "E1.1"), "1 min before"),
        ("duration", ("E1.1", "E1.2"), "19 min lie between"),
        ("ratio", ("E1.1", "E1.2"), "is 7.33 times"),
        ("ratio", ("E1.2",), "50 times as much as usual"),
        ("difference", ("E1.1", "E1.2"), "79.1 %"),
        ("count", ("E5.2", "E5.3", "E5.4"), "3: "),
        ("absent", ("E2.1",), "none found: lines_matching for service ledger, level error, 431 searched"),
        ("all_of", ("E5.2", "E5.3", "E5.4"), "all 3: "),
    ],
)
def test_what_code_computes(op: Any, facts: tuple[str, ...], said: str) -> None:
    made, problems = resolve(facts=facts, op=op)
    assert problems == []
    assert (made.basis, said in made.text) == ("computed", True), made.text


@pytest.mark.parametrize(
    ("op", "facts", "why"),
    [
        ("before", ("E1.1", "E3.2"), "is not before"),
        ("before", ("E1.1", "E2.1"), "has no time of its own"),
        ("ratio", ("E1.1", "E6.1"), "compare one unit"),
        ("absent", ("E4.1",), "did not go through everything (incomplete: stopped after 90 lines)"),
        ("absent", ("E1.1",), "is not a search"),
        ("absent", ("E3.1",), "matched 1 of 1"),
        ("all_of", ("E5.2", "E5.3"), "leaves out E5.4"),
        ("same_as_usual", ("E1.1",), "that is not as usual"),
    ],
)
def test_what_does_not_hold_is_refused_with_the_reason(op: Any, facts: tuple[str, ...], why: str) -> None:
    made, problems = resolve(facts=facts, op=op)
    assert why in problems[0]
    assert made.basis == "inferred"


def test_an_order_takes_the_time_of_the_same_finding_in_another_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undated = {k: v for k, v in finding("till", 91.6, 0.12, "").items() if k != "onset"}
    monkeypatch.setitem(RECORDS, "E9", ("object_view", {"findings": [undated]}))
    made, problems = resolve(facts=("E3.2", "E9.1"), op="before")
    assert problems == []
    assert made.text.endswith("since 2026-05-12T09:00:00Z")
    assert "before error_rate of till" in made.text


def test_an_inferred_claim_has_figures_only_in_slots_and_times_of_its_facts() -> None:
    made, problems = resolve(facts=("E3.2", "E1.1"), say="the new tax table throws, so {E1.1} rises")
    assert problems == []
    assert (made.basis, made.text) == ("inferred", "the new tax table throws, so till error_rate 0.12 → 91.6 % 2026-05-12T09:00:00Z rises")  # fmt: skip
    bare = resolve(facts=("E1.1",), say="the table throws for 91.6 % of requests")[1]
    assert bare == ['C1: "91.6 %" stands bare in an inferred sentence: use {E1.1} instead']
    assert resolve(facts=("E1.1",), say="the table is read since 09:00Z")[1] == []
    [other] = resolve(facts=("E1.1",), say="the table is read since 09:07Z")[1]
    assert '"09:07Z" stands bare' in other
    assert "is not its direction" in resolve(facts=("E1.1",), say="so {E1.1} falls")[1][0]
    assert "billing-gateway" in resolve(facts=("E1.1",), say="billing-gateway drags it down, so {E1.1}")[1][0]


@pytest.mark.parametrize(
    ("text", "evidence", "facts"),
    [
        ("till fails 91.6 % of its requests since 09:00Z, usually 0.12 %", ("E1",), ("E1.1",)),
        ("12 May 2026 11:00:00 +0200: till began to fail", ("E1",), ("E1.1",)),
        ("At 11:00 CEST: till began to fail", ("E1",), ("E1.1",)),
        ("till retransmits 9.07retrans at its peak", ("E6",), ("E6.1",)),
        ("till 3.1 was switched on by alice at 08:59Z", ("E3",), ("E3.2",)),
        ("till's error_rate rose by a factor of 763x to 91.6 %", ("E1",), ("E1.1",)),
        ("web followed within 19 minutes of till (09:00Z, 09:19Z)", ("E1",), ("E1.1", "E1.2")),
        ("three pods of till are ready", ("E5",), ("E5.2", "E5.3", "E5.4")),
        ("no errors in ledger", ("E2",), ("E2.1",)),
    ],
)
def test_true_prose_becomes_its_facts(text: str, evidence: tuple[str, ...], facts: tuple[str, ...]) -> None:
    made, problems = resolve(text=text, evidence=evidence)
    assert problems == []
    assert made.basis in ("measured", "computed")
    assert sorted(made.facts) == sorted(facts)
    assert resolve_claim(made, basis())[0].text == made.text


@pytest.mark.parametrize(
    "tail",
    [
        " because the database was overloaded",
        ", and all other services were healthy",
        ", which never happened before",
        ", so web is the cause",
    ],
)
def test_words_that_no_fact_holds_do_not_stand_as_measured(tail: str) -> None:
    made, problems = resolve(text=f"till fails 91.6 % of its requests since 09:00Z{tail}", evidence=("E1",))
    assert problems == []
    assert tail.strip(" ,") not in made.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("web fails 91.6 % of its requests", "E1.1 says it of till"),
        ("till's error_rate fell to 91.6 % from 0.12 %", "is not what E1.1 says"),
        ("till fails 93.1 % of its requests", "93.1"),
        ("till fails 91.6 % since 09:07Z", "stands bare"),
        ("billing-gateway fails 91.6 % of its requests", "billing-gateway"),
    ],
)
def test_what_is_false_is_refused(text: str, why: str) -> None:
    assert why in resolve(text=text, evidence=("E1",))[1][0]


def test_a_cause_rests_on_a_measured_claim_that_code_adds_where_there_is_one() -> None:
    claims = (Claim(id="C1", text="till is broken", evidence=("E1",)),)
    draft = Conclusion(
        verdict=Verdict.CAUSE_FOUND, answer="till.", causes=(Cause(service="till", kind="errors", claims=("C1",)),), claims=claims
    )  # fmt: skip
    made = resolve_claims(draft, basis())
    assert [(c.basis, c.facts) for c in made.claims] == [("inferred", ()), ("measured", ("E1.1",))]
    assert made.causes[0].claims == ("C1", "C2")
    assert resolve_claims(made, basis()) == made


FLUSH = EffectView("r/t1c1", "cache_flush", "proxy/shop", "done", checked=False, evidence=("E7",))


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("The zone shop was flushed successfully.", True),
        ("The flush is done.", True),
        ("shop has been emptied.", True),
        ("缓存 shop 已清空，成功。", True),
        ("The zone shop was flushed, but its check failed.", False),
        ("It is not known whether shop was flushed.", False),
        ("Flush shop again.", False),
        ("web was deployed at 08:59Z.", False),
    ],
)
def test_success_is_told_from_the_check_alone(text: str, refused: bool) -> None:
    assert bool(list(find_success_problems(text, "answer", "", basis(effects=(FLUSH,))))) is refused
    passed = EffectView("r/t1c1", "cache_flush", "proxy/shop", "done", checked=True, evidence=("E7",))
    assert list(find_success_problems(text, "answer", "", basis(effects=(passed,)))) == []


def test_no_claim_rests_only_on_what_an_effect_answered_itself() -> None:
    _, problems = resolve_claim(Claim(id="C1", text="zone shop", evidence=("E7",)), basis(effects=(FLUSH,)))
    assert "rests only on what cache_flush itself answered" in problems[-1].text


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("There were no errors in ledger.", False),
        ("There were no errors in cart.", True),
        ("There were no restarts in web.", True),
        ("ledger 没有错误。", False),
        ("web 没有异常。", True),
        ("There is no doubt about till.", False),
    ],
)
def test_absence_in_an_answer_needs_a_complete_search(text: str, refused: bool) -> None:
    assert bool(list(find_absence_problems(text, "answer", "", basis()))) is refused


@pytest.mark.parametrize(
    ("question", "kind", "count"),
    [
        ("输出三个选项", "options", 3),
        ("output exactly 3 options", "options", 3),
        ("return two candidates", "candidates", 2),
        ("Nenne drei mögliche Ursachen", "candidates", 3),
        ("返回两个候选原因", "candidates", 2),
    ],
)
def test_demands_for_a_number_are_recognised(question: str, kind: str, count: int) -> None:
    assert [(d.kind, d.count) for d in parse_question_demands(question)] == [(kind, count)]


def test_an_earlier_report_with_verified_claims_is_still_read() -> None:
    assert Claim.model_validate({"id": "C1", "text": "x", "status": "verified"}).status == "holds"


@pytest.mark.parametrize("stray", [("E2",), ("E3",), ("E5", "E6"), ("E4", "E7")])
@pytest.mark.parametrize(
    "text", ["error_rate of till went from 0.12 to 91.6 %", "error_rate of till is 91.6 %"]
)
def test_a_measured_claim_cites_only_what_shows_it(text: str, stray: tuple[str, ...]) -> None:
    made, problems = resolve(text=text, evidence=("E1", *stray))
    assert (problems, made.basis, made.evidence) == ([], "measured", ("E1",))


@pytest.mark.parametrize(
    "text",
    ["No recorded change explains it.", "No change explains the incident", "No listed change explains this."],
)
@pytest.mark.parametrize(
    ("read", "graded", "shown"),
    [(2, [], True), (2, [{"service": "till", "summary": "v2", "grade": "coincides"}], False)],
)
def test_that_no_change_explains_it_is_shown_by_a_ranking_that_weighed_some(
    text: str, read: int, graded: list[dict[str, str]], *, shown: bool
) -> None:
    record = {
        "verdict": "cause_found",
        "changes_read": read,
        "graded_changes": graded,
        "suspects": [{"service": "till", "score": 0.5}],
    }
    view = EvidenceView("E1", "rank_suspects", "derived", ResultStatus.OK, record)
    seen = ConclusionBasis({"E1": view}, WINDOW, ("till",))
    assert (not list(find_absence_problems(text, "answer", "", seen))) is shown


@pytest.mark.parametrize(
    "text",
    [
        "till-1 and till-2 have 0 restarts",
        "till-3, till-2 and till-1 have 0 restarts each",
        "till-2 has 1 desired and 0 restarts beside till-1",
    ],
)
def test_a_row_that_leaves_out_a_name_does_not_replace_the_sentence(text: str) -> None:
    made, problems = resolve(text=text, evidence=("E5",))
    assert problems == []
    assert all(name in made.text for name in ("till-1", "till-2") if name in text)


def test_a_row_of_another_count_does_not_replace_the_sentence() -> None:
    record = {"objects": [{"kind": "Deployment", "name": "ledger", "state": "ok", "replicas": 1}, {"name": "ledger", "ready": 1}]}  # fmt: skip
    view = EvidenceView("E8", "mcp_cluster", "objects", ResultStatus.OK, record)
    claim = Claim(id="C1", text="ledger has 1 ready replica", evidence=("E8",))
    made, problems = resolve_claim(claim, ConclusionBasis({"E8": view}, WINDOW, ("ledger",)))
    assert problems == ()
    assert "ready" in made.text
