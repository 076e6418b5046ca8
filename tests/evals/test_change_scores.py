"""Changes that a report names against the guilty one; false calm and innocent changes counted, and gated."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opsleuth.evals.cases import EvalCase, expected_from_answer
from opsleuth.evals.compare import compare_results
from opsleuth.evals.regression_gate import list_broken_rules, load_gate
from opsleuth.evals.score import CaseScore, is_same_change, score_report
from opsleuth.evals.summary import summarize_scores

GUILTY = "9f1c2ab04d77e1c3b6a2f8d45e90ab12cd34ef56"
OTHER = "77de001bb2c94e6fa0d3b1c2a4958e7f6d5c4b3a"
GATE = """
[[rule]]
metric = "false_healthy"
max_more = 0

[[rule]]
metric = "innocent_change"
max_more = 0
"""


def report(*changes: str | None, verdict: str = "cause_found") -> dict[str, Any]:
    causes = [
        {"service": "shop", "kind": "errors", "change": None if c is None else {"id": c}} for c in changes
    ]
    return {"verdict": verdict, "causes": causes, "status": "completed"}


def score(culprit: str | None, said: dict[str, Any]) -> CaseScore:
    key = {"verdict": "cause_found", "root_cause_service": "shop", "kind": "errors", "culprit": culprit}
    return score_report(EvalCase("one", "set", Path(), expected_from_answer(key)), said)


@pytest.mark.parametrize(
    ("culprit", "named", "right", "innocent"),
    [
        (GUILTY, (GUILTY,), True, False),
        (GUILTY, (GUILTY[:9],), True, False),
        (GUILTY[:7], (GUILTY,), True, False),
        (GUILTY, (OTHER,), False, True),
        (GUILTY, (GUILTY, OTHER), True, True),
        (GUILTY, (None,), False, False),
        ("none", (None,), True, False),
        ("none", (OTHER,), False, True),
        (None, (OTHER,), None, None),
    ],
)
def test_a_change_is_held_against_the_guilty_one(
    culprit: str | None, named: tuple[str | None, ...], right: bool | None, innocent: bool | None
) -> None:
    found = score(culprit, report(*named))
    assert (found.change, found.innocent_change) == (right, innocent)


def test_a_few_digits_are_no_commit() -> None:
    assert not is_same_change(GUILTY[:4], GUILTY)
    assert is_same_change("v2", "v2")


@pytest.mark.parametrize(
    ("verdict", "false"), [("healthy", True), ("inconclusive", False), ("cause_found", False)]
)
def test_calm_is_false_where_there_is_a_cause(verdict: str, false: bool) -> None:
    assert score(GUILTY, report(verdict=verdict)).false_healthy is false


def test_the_summary_counts_them() -> None:
    scores = [
        score(GUILTY, report(OTHER)),
        score("none", report(None)),
        score(GUILTY, report(verdict="healthy")),
    ]
    summary = summarize_scores(scores)["all"]
    assert summary["false_healthy"] == {"count": 1, "total": 3}
    assert summary["innocent_change"] == {"count": 1, "total": 3}
    assert (summary["change"]["right"], summary["change"]["total"]) == (1, 3)


def document(*scores: CaseScore) -> dict[str, Any]:
    return {"scores": [replace(s, case=f"case-{i}").to_json() for i, s in enumerate(scores)]}


def test_the_gate_refuses_one_more_of_either(tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(GATE)
    gate = load_gate(path)
    good, calm, wrong = (
        score(GUILTY, report(GUILTY)),
        score(GUILTY, report(verdict="healthy")),
        score(GUILTY, report(OTHER)),
    )
    assert list_broken_rules(gate, compare_results(document(good, calm), document(calm, good))) == []
    (broken,) = list_broken_rules(gate, compare_results(document(good, good), document(good, calm)))
    assert broken == "false_healthy: 1 case more; 0 are allowed"
    (broken,) = list_broken_rules(gate, compare_results(document(good, good), document(wrong, good)))
    assert broken == "innocent_change: 1 case more; 0 are allowed"
