"""The ranking beside a draft: overruled with evidence it stays behind, passed over it comes first."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Cause, Claim, Conclusion, RuledOut
from opsleuth.state.investigation import Hypothesis, Window
from opsleuth.state.run_status import Verdict
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView
from opsleuth.verification.unaddressed_suspects import (
    find_ranking_problems,
    find_unaddressed_suspect,
    with_unaddressed_suspect,
)

WINDOW = Window(start=datetime(2024, 5, 1, 14, tzinfo=UTC), end=datetime(2024, 5, 1, 15, tzinfo=UTC))
FINDING = {"text": "connections of ledger-db rose from 20 to 100", "from": 20, "to": 100}
RECORD: dict[str, Any] = {
    "verdict": "cause_found",
    "causes": 1,
    "suspects": [{"service": "ledger-db", "kind": "connections", "score": 9, "findings": [FINDING]}],
}
VICTIM = Conclusion(
    verdict=Verdict.CAUSE_FOUND,
    answer="web is slow.",
    causes=(Cause(service="web", kind="latency", claims=("C1",)),),
    claims=(Claim(id="C1", text="web is slow", evidence=("E1",), status="holds"),),
)


def basis(**changed: Any) -> ConclusionBasis:
    ranking = EvidenceView(
        id="E2",
        tool="rank_suspects",
        signal="derived",
        status=ResultStatus.OK,
        record=RECORD | changed,
        asked={},
    )
    return ConclusionBasis({"E2": ranking}, WINDOW)


def test_a_suspect_that_is_passed_over_is_told_and_then_comes_first() -> None:
    assert [p.text for p in find_ranking_problems(VICTIM, basis())] == [
        "E2 ranks ledger-db (connections) first: blame it, or rule it out with the evidence that speaks against it"
    ]
    kept = with_unaddressed_suspect(VICTIM, basis())
    assert [(c.service, c.claims) for c in kept.causes] == [("ledger-db", ("C2",)), ("web", ("C1",))]
    assert kept.claims[1].text == FINDING["text"]
    assert kept.answer.startswith("The ranking of all findings puts ledger-db (connections) first")
    assert find_unaddressed_suspect(kept, basis()) is None


@pytest.mark.parametrize(
    ("draft", "hypotheses"),
    [
        ({"causes": (Cause(service="ledger-db", kind="locks", claims=("C1",)),)}, ()),
        ({"ruled_out": (RuledOut(hypothesis="LEDGER-DB ran out of connections", claims=("C1",)),)}, ()),
        ({"ruled_out": (RuledOut(hypothesis="the database", id="H1"),)}, ("open",)),
        ({}, ("refuted",)),
        ({"verdict": Verdict.ANSWERED}, ()),
    ],
)
def test_who_blames_it_or_rules_it_out_is_believed(draft: Any, hypotheses: tuple[Any, ...]) -> None:
    made = Conclusion.model_validate(VICTIM.model_dump() | draft)
    known = [
        Hypothesis(id="H1", text="the store", service="ledger-db", status=status) for status in hypotheses
    ]
    assert with_unaddressed_suspect(made, basis(), known) == made


@pytest.mark.parametrize("changed", [{"verdict": "healthy"}, {"causes": 0}, {"suspects": []}])
def test_a_ranking_without_a_cause_says_nothing(changed: Any) -> None:
    assert find_unaddressed_suspect(VICTIM, basis(**changed)) is None


def test_nothing_is_healthy_that_the_ranking_gives_a_cause() -> None:
    calm = Conclusion(verdict=Verdict.HEALTHY, answer="All is well.")
    assert with_unaddressed_suspect(calm, basis()).verdict is Verdict.INCONCLUSIVE


def test_a_finding_that_does_not_hold_is_not_put_in() -> None:
    bad = {"text": "We restarted ledger-db."}
    suspect = RECORD["suspects"][0] | {"findings": [bad]}
    assert with_unaddressed_suspect(VICTIM, basis(suspects=[suspect])) == VICTIM


@pytest.mark.parametrize("answer", ['{"service": "web"}', '```json\n[{"service": "web"}]\n```'])
def test_an_answer_in_json_stays_parseable(answer: str) -> None:
    draft = Conclusion.model_validate(VICTIM.model_dump() | {"answer": answer})
    kept = with_unaddressed_suspect(draft, basis())
    assert kept.answer == answer
    assert [c.service for c in kept.causes] == ["ledger-db", "web"]
