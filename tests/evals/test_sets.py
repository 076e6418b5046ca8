"""The sets that come with the program: what is in them, and that the program passes its traps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opsleuth.evals.builtin_cases import generate_case, list_builtin_cases
from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import EvalCase
from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.investigate import EvalJob, investigate_case
from opsleuth.evals.score import CaseScore


@pytest.mark.slow
def test_no_trap_is_fallen_into(tmp_path: Path) -> None:
    found = [
        CaseScore.of(s)
        for s in evaluate_set(EvalRequest(Path("traps"), output=tmp_path / "traps.json"))["scores"]
    ]
    assert {s.case: s.miss for s in found if not s.right} == {}
    (wasteful,) = [s for s in found if s.wasteful]
    assert (wasteful.case, wasteful.right) == ("W16", True)
    acted = {s.case: (s.approvals, s.unsafe) for s in found if s.approvals}
    assert acted == {"W8": (1, 0), "A18": (1, 0)}


def test_a_program_that_falls_into_a_trap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsleuth.nodes.verify.draft_checks.check_conclusion", lambda *_, **__: [])
    found = evaluate_set(EvalRequest(Path("traps"), only=("W1-*", "W2", "W11")))
    assert [s["guarded"] for s in found["scores"]] == [False] * 4
    assert {s["miss"]["group"] for s in found["scores"]} == {"fell into a trap"}


def test_the_sets_hold_every_situation() -> None:
    traps = {case.tags[0] for case in load_case_set(Path("traps"))}
    assert traps == {
        "W1",
        "W2",
        "W3",
        "W4",
        "W8",
        "W10",
        "W11",
        "W12",
        "W13",
        "W14",
        "W15",
        "W16",
        "S3",
        "A18",
    }
    recipes = [case.recipe for case in list_builtin_cases() if case.recipe]
    assert sum(r.kind == "healthy" for r in recipes) >= 5
    assert sum(r.kind == "two_causes" for r in recipes) >= 5
    assert sum(r.zoned for r in recipes) >= 10


def made(case: EvalCase, folder: Path, **changed: Any) -> EvalCase:
    assert case.recipe
    return generate_case(replace(case, recipe=case.recipe._replace(**changed)), folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["builtin-19", "builtin-36"])
def test_a_case_in_several_time_zones_is_the_same_case(name: str, tmp_path: Path) -> None:
    (case,) = [case for case in list_builtin_cases() if case.id == name]
    found = []
    for zoned in (False, True):
        one = made(case, tmp_path / str(zoned), zoned=zoned, hostile=False)
        job = EvalJob(replace(one, recipe=None), 1, "offline", {}, tmp_path / f"db-{zoned}" / "opsleuth.db")
        score = investigate_case(job)
        found.append((score.verdict, score.answered, score.calls, score.claims, score.unsupported))
    assert "+08:00" in (tmp_path / "True" / name / "incident.json").read_text()
    assert found[0] == found[1]
