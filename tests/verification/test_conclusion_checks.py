"""A conclusion is held against its evidence as a whole; what fails is taken out and listed."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Demand, Hypothesis, Window
from opsleuth.state.run_status import Verdict
from opsleuth.verification.conclusion_basis import (
    ConclusionBasis,
    ConclusionProblem,
    EffectView,
    EvidenceView,
)
from opsleuth.verification.conclusion_checks import (
    NOTHING_LEFT,
    check_conclusion,
    split_sentences,
    strip_unsupported,
)
from opsleuth.verification.confidence import compute_confidence, grade_cause, with_confidence
from opsleuth.verification.question_demands import parse_question_demands

WINDOW = Window(
    start=datetime(2026, 11, 29, 13, 40, tzinfo=UTC), end=datetime(2026, 11, 29, 14, 20, tzinfo=UTC)
)
EVIDENCE = {
    "E1": EvidenceView(
        "E1",
        "metrics_query",
        "metrics",
        ResultStatus.OK,
        {"service": "orders-db", "metric": "cpu", "unit": "%", "peak": 97.4},
    ),
    "E2": EvidenceView(
        "E2",
        "logs_search",
        "logs",
        ResultStatus.OK,
        {"service": "orders-db", "matched": 231, "pattern": "lock wait"},
        tests="H1",
    ),
    "E3": EvidenceView(
        "E3",
        "logs_search",
        "logs",
        ResultStatus.NONE_MATCHED,
        {"service": "cart", "scanned": 14200, "matched": 0},
    ),
    "E4": EvidenceView(
        "E4", "traces_compare", "traces", ResultStatus.TIMEOUT, {"error": "timed out after 10 s"}
    ),
}
CPU = {
    "service": "orders-db", "kind": "cpu", "direction": "cause", "onset": "2026-11-29T14:00:00Z",
    "figures": {"incident": 97.4, "usual": 20, "unit": "%"}, "text": "cpu of orders-db went from 20 to 97.4 %",
}  # fmt: skip
GIVEN = "web-frontend is slow"
REFUTED = Hypothesis(id="H2", text="cart fails", service="cart", status="refuted", contradicting=("E3",))


def conclusion(**changes: Any) -> Conclusion:
    document: dict[str, Any] = {
        "verdict": "cause_found",
        "answer": "orders-db is overloaded. Its CPU peaked at 97.4 %.",
        "causes": [{"service": "orders-db", "kind": "cpu", "metric": "cpu", "claims": ["C1", "C2"]}],
        "claims": [
            {"id": "C1", "text": "orders-db CPU peaked at 97 %", "evidence": ["E1"]},
            {"id": "C2", "text": "orders-db logged 231 lock waits", "evidence": ["E2"]},
            {"id": "C3", "text": "no errors in cart", "evidence": ["E3"]},
        ],
        "ruled_out": [{"hypothesis": "cart fails", "id": "H2", "claims": ["C3"]}],
        "recommendations": [{"text": "Scale orders-db up", "claims": ["C1"]}],
        "fields": {"service": "orders-db", "peak": 97.4, "restarted": False},
        "propagation": [["orders-db", "cart"]],
    }
    return Conclusion.model_validate(document | changes)


def check(draft: Conclusion, **more: Any) -> list[ConclusionProblem]:
    basis = ConclusionBasis(
        EVIDENCE, WINDOW, ("orders-db", "cart"), given=GIVEN, vocabulary=("service_scale",)
    )
    return list(check_conclusion(draft, basis, **more))


def parts(draft: Conclusion, **more: Any) -> list[tuple[str, str]]:
    return [(p.part, p.ref) for p in check(draft, **more)]


def test_a_sound_conclusion_has_no_problems() -> None:
    assert check(conclusion()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": "orders-db is overloaded. It fell at 98.2 %."}, ("answer", "")),
        ({"answer": "orders-db was rolled back."}, ("answer", "")),
        ({"answer": "ledger-db is overloaded."}, ("answer", "")),
        ({"fields": {"peak": 98.2}}, ("field", "peak")),
        ({"fields": {"pods": ["orders-db-7f9dd8b6c4"]}}, ("field", "pods")),
        (
            {"recommendations": [{"text": "Raise the limit to 512 MB", "claims": ["C1"]}]},
            ("recommendation", "0"),
        ),
        ({"propagation": [["orders-db", "web-backend"]]}, ("propagation", "0")),
        ({"causes": []}, ("verdict", "")),
        ({"verdict": "healthy"}, ("verdict", "")),
        ({"causes": [{"service": "ledger", "kind": "cpu", "claims": ["C1"]}]}, ("cause", "0")),
        ({"causes": [{"service": "orders-db", "kind": "cpu", "claims": []}]}, ("cause", "0")),
        ({"causes": [{"service": "orders-db", "kind": "cpu", "claims": ["C1", "C9"]}]}, ("cause", "0")),
        ({"ruled_out": []}, ("rival", "")),
        ({"ruled_out": [{"hypothesis": "dns"}]}, ("ruled_out", "0")),
    ],
)
def test_each_part_is_checked(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    assert parts(conclusion(**changes)) == [expected]


@pytest.mark.parametrize(
    "advice",
    [
        "Lower autovacuum_vacuum_cost_limit on orders-db",
        "Set GOMAXPROCS_LIMIT for orders-db",
        "Compare targetPort with the port that orders-db listens on",
        "Look at the lock waits of cart as well",
    ],
)
def test_advice_may_name_settings_of_a_product_and_what_the_run_has_seen(advice: str) -> None:
    assert parts(conclusion(recommendations=[{"text": advice, "claims": ["C1"]}])) == []


@pytest.mark.parametrize(
    "advice", ["Restart orders-db-7f9dd8b6c4", "Restart ledger-db", "Raise it to 512 MB"]
)
def test_advice_names_no_part_of_the_system_that_was_not_seen(advice: str) -> None:
    assert parts(conclusion(recommendations=[{"text": advice, "claims": ["C1"]}])) == [
        ("recommendation", "0")
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"fields": {"kind": "slow_query", "verdict": "cause_found", "tool": "service_scale"}},
        {"answer": "web-frontend is slow because orders-db is overloaded."},
        {"recommendations": [{"text": "Run `scale orders-db --up` with service_scale", "claims": ["C1"]}]},
        {"answer": '{"service": "orders-db", "peak": "97.4 %"}'},
    ],
)
def test_own_words_and_the_questions_names_may_be_used(changes: dict[str, Any]) -> None:
    assert check(conclusion(**changes)) == []


def test_a_json_answer_stays_json_without_what_fails() -> None:
    draft = conclusion(answer='{"service": "orders-db", "peak": 98.2, "pod": "orders-db-7f9dd8b6c4"}')
    assert json.loads(strip_unsupported(draft, check(draft)).answer) == {"service": "orders-db"}


def test_a_direction_against_its_own_figures_is_refused() -> None:
    claims = [{"id": "C1", "text": "orders-db fell from 97.4 % to 231 %", "evidence": ["E1", "E2"]}]
    [problem] = [p for p in check(conclusion(claims=claims)) if "contradicts itself" in p.text]
    assert (problem.part, problem.ref) == ("claim", "C1")


@pytest.mark.parametrize(("suspects", "asked"), [(1, []), (2, [("rival", "")])])
def test_no_rival_is_asked_for_where_the_ranking_holds_one_suspect(
    suspects: int, asked: list[tuple[str, str]]
) -> None:
    ranking = EvidenceView("E5", "rank_suspects", "derived", ResultStatus.OK, {"suspects_total": suspects})
    basis = ConclusionBasis({**EVIDENCE, "E5": ranking}, WINDOW, ("orders-db", "cart"), given=GIVEN)
    found = check_conclusion(conclusion(ruled_out=[]), basis)
    assert [(p.part, p.ref) for p in found if p.part == "rival"] == asked


def test_a_rival_is_a_refuted_hypothesis_or_its_stated_absence() -> None:
    draft = conclusion(ruled_out=[])
    assert parts(draft) == [("rival", "")]
    assert check(draft, hypotheses=(REFUTED,)) == []
    assert check(conclusion(ruled_out=[], answer="orders-db is the only candidate.")) == []


def test_a_claim_on_a_failed_query_fells_its_cause() -> None:
    claims = [{"id": "C1", "text": "orders-db answered in 900 ms", "evidence": ["E4"]}]
    causes = [{"service": "orders-db", "kind": "latency", "claims": ["C1"]}]
    draft = conclusion(
        claims=claims, causes=causes, answer="orders-db is slow.", recommendations=[], fields={}
    )
    problems = check(draft)
    stripped = strip_unsupported(draft, problems)
    assert stripped.verdict is Verdict.INCONCLUSIVE
    assert stripped.causes == ()
    [claim] = stripped.claims
    assert claim.status == "unsupported"
    assert "not available" in claim.problems[0]


def test_what_fails_goes_and_what_holds_stays() -> None:
    draft = conclusion(
        answer="orders-db is overloaded. It served 12,345 calls. CPU peaked at 97.4 %.",
        claims=[
            *conclusion().model_dump()["claims"],
            {"id": "C4", "text": "ledger-db is down", "evidence": ["E1"]},
        ],
        causes=[
            {"service": "ledger-db", "kind": "crash", "claims": ["C4"]},
            {"service": "orders-db", "kind": "cpu", "claims": ["C1", "C4"]},
        ],
        fields={"peak": 97.4, "calls": 12345},
    )
    stripped = strip_unsupported(draft, check(draft))
    assert stripped.verdict is Verdict.CAUSE_FOUND
    assert [(c.service, c.claims) for c in stripped.causes] == [("orders-db", ("C1",))]
    assert stripped.answer == "orders-db is overloaded. CPU peaked at 97.4 %."
    assert stripped.fields == {"peak": 97.4}
    assert [c.status for c in stripped.claims] == ["holds", "holds", "holds", "unsupported"]
    assert check(stripped.model_copy(update={"claims": stripped.claims[:3]})) == []


def test_stripping_twice_changes_nothing() -> None:
    draft = conclusion(answer="It is ledger-db.", fields={"peak": 1.5})
    once = strip_unsupported(draft, check(draft))
    assert once.answer == NOTHING_LEFT
    assert strip_unsupported(once, check(once)) == once


def test_healthy_needs_a_claim_that_holds() -> None:
    draft = conclusion(
        verdict="healthy",
        causes=[],
        ruled_out=[],
        claims=[],
        answer="All is well.",
        recommendations=[],
        fields={},
    )
    assert parts(draft) == [("verdict", "")]
    assert strip_unsupported(draft, check(draft)).verdict is Verdict.INCONCLUSIVE
    kept = conclusion(
        verdict="healthy", causes=[], ruled_out=[], answer="No errors in cart.", recommendations=[], fields={}
    )
    assert check(kept) == []


def test_sentences_do_not_end_inside_numbers_and_names() -> None:
    assert split_sentences("CPU 97.4 % on a.b.c. Then v3.2.0 came! 然后变慢。好") == [
        "CPU 97.4 % on a.b.c.", " Then v3.2.0 came!", " 然后变慢。", "好",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Give me three options to fix orders-db", [("options", None, 3)]),
        ("请给出三个方案", [("options", None, 3)]),
        ("给出2种处理建议", [("options", None, 2)]),
        ("answer in JSON with field root_cause", [("format", "json", None), ("field", "root_cause", None)]),
        ("reply as JSON with fields service, kind and metric", [("format", "json", None), ("field", "service", None), ("field", "kind", None), ("field", "metric", None)]),
        ("以JSON返回，字段包括service、kind", [("format", "json", None), ("field", "service", None), ("field", "kind", None)]),
        ("why is it slow? Please answer in German", [("language", "de", None)]),
        ("请用英文回答", [("language", "en", None)]),
        ("fix it but do not touch payments", [("untouchable", "payments", None)]),
        ("不要重启支付服务，其余随意", [("untouchable", "支付服务", None)]),
        ("排查订单接口最近半个小时突然变慢的原因，并给出处理建议", []),
        ("why is the orders api slow since 14:00Z", []),
        ("three options were tried, none worked", []),
    ],
)  # fmt: skip
def test_demands_in_the_questions_own_words(question: str, expected: list[tuple[Any, ...]]) -> None:
    assert [
        (d.kind, d.name, d.count) for d in parse_question_demands(question, ("payments", "支付服务"))
    ] == expected


def demanded(question: str, **changes: Any) -> list[str]:
    return [
        p.text
        for p in check(
            conclusion(**changes), checklist=parse_question_demands(question, ("cart", "orders-db"))
        )
        if p.part == "demand"
    ]


def test_two_options_are_not_three() -> None:
    advice = [{"text": f"Scale orders-db {way}", "claims": ["C1"]} for way in ("up", "out", "down")]
    assert "asks for 3 options" in demanded("give me three options", recommendations=advice[:2])[0]
    assert demanded("give me three options", recommendations=advice) == []
    assert demanded("give me three options", recommendations=[advice[0], advice[0], advice[1]])


def test_form_of_the_answer() -> None:
    assert "asks for JSON" in demanded("answer in JSON")[0]
    assert demanded("answer in JSON", answer='{"service": "orders-db"}') == []
    assert '"owner"' in demanded("with field owner")[0]
    assert demanded("with field service") == []
    assert demanded("请用中文回答")
    assert demanded("请用中文回答", answer="orders-db 的 CPU 过载，达到 97.4 %。") == []
    assert demanded("answer in English", answer="数据库过载，需要扩容。")


def test_the_untouchable_is_not_touched() -> None:
    question = "fix it, do not touch orders-db"
    action = {"tool": "service_scale", "arguments": {"service": "orders-db"}}
    assert demanded(question, recommendations=[{"text": "Add a replica", "action": action}])
    assert demanded(question, recommendations=[{"text": "Restart orders-db"}])
    assert demanded(question, recommendations=[{"text": "Restart cart, do not touch orders-db"}]) == []


def test_demands_are_the_states_own() -> None:
    found = parse_question_demands("give me two ways, in JSON, do not touch cart")
    assert [type(demand) for demand in found] == [Demand] * 3


@pytest.mark.parametrize(
    ("signals", "pieces", "against", "tested", "expected"),
    [
        (2, 2, 0, True, "confirmed"),
        (3, 3, 0, False, "likely"),
        (1, 2, 0, True, "likely"),
        (1, 1, 0, True, "possible"),
        (3, 3, 1, True, "possible"),
        (0, 0, 0, False, "possible"),
    ],
)
def test_grades(*, signals: int, pieces: int, against: int, tested: bool, expected: str) -> None:
    assert grade_cause(signals=signals, pieces=pieces, against=against, tested=tested) == expected


def test_confidence_from_evidence_hypotheses_and_effects() -> None:
    draft = strip_unsupported(conclusion(), [])
    [cause] = draft.causes
    assert compute_confidence(cause, draft.claims, EVIDENCE) == "likely"
    held = Hypothesis(
        id="H1", text="cpu", service="orders-db", kind="cpu", status="supported", supporting=("E2",)
    )
    assert compute_confidence(cause, draft.claims, EVIDENCE, (held,)) == "likely"
    shown = {
        **EVIDENCE,
        "E1": replace(
            EVIDENCE["E1"], tool="metrics_anomalies", record={**EVIDENCE["E1"].record, "findings": [CPU]}
        ),
    }
    assert compute_confidence(cause, draft.claims, shown, (held,)) == "confirmed"
    assert with_confidence(draft, EVIDENCE, (held,)).causes[0].shown == ("path", "counter_test")
    silent = {**shown, "E2": replace(shown["E2"], status=ResultStatus.NONE_MATCHED)}
    assert with_confidence(draft, silent, (held,)).causes[0].shown == ("order", "path", "mechanism")
    doubted = held.model_copy(update={"contradicting": ("E3",)})
    assert compute_confidence(cause, draft.claims, EVIDENCE, (doubted,)) == "possible"
    cure = EffectView("r/t1c1", "service_scale", "orders-db", "done", checked=True)
    assert with_confidence(draft, shown, (), (cure,)).causes[0].confidence == "confirmed"


@pytest.mark.parametrize(("name", "problems"), [("orders-db", 0), (None, 0), ("orders-queue", 1)])
def test_object_of_a_cause_must_have_been_observed(name: str | None, problems: int) -> None:
    entity = {"kind": "Service", "namespace": "shop", "name": name}
    cause = {"service": "orders-db", "kind": "cpu", "claims": ["C1", "C2"], "entity": entity}
    found = [p for p in check(conclusion(causes=[cause])) if p.part == "cause"]
    assert len(found) == problems
