"""Two results held against each other, and the gate."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from opsleuth.evals.compare import compare_results
from opsleuth.evals.regression_gate import GateRule, RegressionGate, list_broken_rules, load_gate
from opsleuth.evals.result_text import describe_comparison
from opsleuth.evals.results_file import build_results_document, describe_eval_setup
from opsleuth.evals.score import CaseScore
from opsleuth.state.errors import UsageError


def one(number: int, repeat: int = 1, **changed: Any) -> CaseScore:
    common: dict[str, Any] = {
        "case": f"c{number:02}", "set": "shop", "fault_type": "cpu" if number % 2 else "disk",
        "expected": "cause_found", "verdict": "cause_found", "verdict_right": True, "top1": True, "top3": True,
        "kind": True, "all_causes": None, "blamed": False, "claims": 2, "unsupported": 0, "calls": 8,
        "repeated": 0, "turns": 4, "tokens": 0, "seconds": 0.5, "status": "completed",
        "run": f"inv-20260303-{number:04}", "answered": "a (cpu)", "store": f"a.runs/{number}/opsleuth.db",
    }  # fmt: skip
    return CaseScore(**common | {"repeat": repeat} | changed)


WRONG = {"top1": False, "kind": False, "answered": "b (cpu)"}


def results(change: Callable[[int], Mapping[str, Any]] = lambda _: {}, cases: int = 20) -> dict[str, Any]:
    return build_results_document(
        "shop", describe_eval_setup("offline"), [one(n, **change(n)) for n in range(cases)]
    )


def gate(**rule: Any) -> RegressionGate:
    return RegressionGate(rule=(GateRule(**rule),))


def test_equal_results_are_the_same() -> None:
    found = compare_results(results(), results(lambda _: {"run": "inv-20260304-bbbb"}))
    assert {m.judgement for m in found.metrics} == {"same"}
    assert not found.changed
    assert list_broken_rules(gate(metric="top1", max_drop=0), found) == []


def test_few_that_changed_are_within_noise_and_many_are_worse() -> None:
    few = compare_results(results(), results(lambda n: WRONG if n < 3 else {}))
    many = compare_results(results(), results(lambda n: WRONG if n < 8 else {}))
    top1 = few.find("top1")
    assert top1 is not None
    assert (top1.judgement, top1.a, top1.b, top1.cases) == ("noise", 1.0, 0.85, 20)
    assert next(m.judgement for m in many.metrics if m.metric == "top1") == "worse"
    better = compare_results(results(lambda n: WRONG if n < 8 else {}), results()).find("top1")
    assert better is not None
    assert better.judgement == "better"


def test_a_metric_is_compared_by_tag() -> None:
    found = compare_results(results(), results(lambda n: WRONG if n % 2 else {}))
    assert [(m.tag, m.judgement) for m in found.metrics if m.metric == "top1"] == [
        ("all", "worse"), ("cpu", "worse"), ("disk", "same"),
    ]  # fmt: skip


def test_repeats_of_a_case_are_one_case() -> None:
    a = build_results_document(
        "shop", describe_eval_setup("offline"), [one(n, r) for n in range(6) for r in (1, 2, 3)]
    )
    worse = [one(n, r, **(WRONG if r == 1 else {})) for n in range(6) for r in (1, 2, 3)]
    top1 = compare_results(a, build_results_document("shop", describe_eval_setup("offline"), worse)).find(
        "top1"
    )
    assert top1 is not None
    assert top1.cases == 6
    assert top1.b == pytest.approx(2 / 3)


def test_only_cases_of_both_count_and_the_rest_is_named() -> None:
    found = compare_results(results(), results(cases=18))
    assert (found.pairs, found.missing) == (18, ["c18", "c19"])
    assert list_broken_rules(gate(metric="top1", max_drop=0), found) == ["2 cases are missing in B: c18, c19"]
    with pytest.raises(UsageError, match="no case in common"):
        compare_results(results(), results(lambda n: {"case": f"x{n}"}))


@pytest.mark.parametrize(
    ("rule", "change", "holds"),
    [
        ({"metric": "top1", "max_drop": 15}, WRONG, True),
        ({"metric": "top1", "max_drop": 14.9}, WRONG, False),
        ({"metric": "top1", "max_drop": 0, "beyond_noise": True}, WRONG, True),
        ({"metric": "top1", "tag": "cpu", "max_drop": 10}, WRONG, True),
        ({"metric": "top1", "tag": "disk", "max_drop": 10}, WRONG, False),
        ({"metric": "top1", "least": 0.9}, WRONG, False),
        ({"metric": "calls", "max_drop": 10}, {"calls": 12}, True),
        ({"metric": "calls", "max_drop": 7}, {"calls": 12}, False),
        ({"metric": "repeated", "max_drop": 1000}, {"repeated": 1}, False),
        ({"metric": "not_wasteful", "max_drop": 0}, {"wasteful": True}, False),
        ({"metric": "safe", "least": 1}, {"unsafe": 1}, False),
        ({"metric": "approvals", "most": 0.1}, {"approvals": 1}, False),
        ({"metric": "exact", "least": 0.5}, {}, False),
    ],
)
def test_the_gate(rule: dict[str, Any], change: Mapping[str, Any], *, holds: bool) -> None:
    found = compare_results(results(), results(lambda n: change if n in (0, 2, 3) else {}))
    assert (list_broken_rules(gate(**rule), found) == []) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[rule]]\nmetric = "top2"\nmax_drop = 1\n',
            "there is no metric top2: the choices are verdict, top1",
        ),
        ('[[rule]]\nmetric = "top1"\n', "this rule bounds nothing"),
        ('[[rule]]\nmetric = "top1"\nmax_drop = -1\n', "greater than or equal to 0"),
        ("missing_cases = 1\n", "rule: Field required"),
        ("[[rule]\n", "is not TOML"),
    ],
)
def test_a_wrong_gate_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        load_gate(path)


def test_what_is_told() -> None:
    found = compare_results(
        results(), results(lambda n: WRONG | {"run": "inv-20260304-bbbb"} if n < 8 else {})
    )
    lines = list(describe_comparison(found, list_broken_rules(gate(metric="top1", max_drop=5), found)))
    assert "top1: worse, 100.0 % to 60.0 % of 20 (95 % interval -60.1 to -12.6 points, p = 0.008)" in lines
    assert "  c00: cause_found a (cpu) -> cause_found b (cpu)" in lines
    assert any(
        line.strip().startswith(
            "A opsleuth show inv-20260303-0000 --db a.runs/0/opsleuth.db   B opsleuth show"
        )
        for line in lines
    )
    assert lines[-2:] == ["GATE: top1 is worse by 40.0 points; 5 are allowed", "worse beyond the gate"]
