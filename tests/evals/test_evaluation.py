"""Whole evaluations, offline, of a few generated cases."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from stored_runs import Program

from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.results_file import (
    build_results_document,
    describe_eval_setup,
    load_results,
    save_results,
)
from opsleuth.evals.score import CaseScore
from opsleuth.scenarios.generator import KINDS, generate_incident_set
from opsleuth.state.errors import UsageError

PASSING = ("run", "seconds", "store")
"""What differs between two runs of the same case."""


@pytest.fixture(scope="module")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cases of one kind."""
    folder = tmp_path_factory.mktemp("sets") / "small"
    generate_incident_set(folder, per=1, seed=5, kinds=["image_pull"])
    return folder


def lasting(scores: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in score.items() if k not in PASSING} for score in scores]


@pytest.mark.slow
def test_a_resumed_evaluation_equals_an_uninterrupted_one(incidents: Path, tmp_path: Path) -> None:
    whole = evaluate_set(EvalRequest(incidents, output=tmp_path / "whole.json", repeat=2))
    parts = tmp_path / "parts.json"
    request = EvalRequest(incidents, output=parts, repeat=2)

    def stop(_: CaseScore, total: int) -> None:
        assert total == 6
        if len(json.loads(parts.read_text())["scores"]) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_set(request, stop)
    before = json.loads(parts.read_text())["scores"]
    assert len(before) == 3
    resumed = evaluate_set(request)
    assert resumed["scores"][:3] == before
    assert lasting(resumed["scores"]) == lasting(whole["scores"])
    assert json.loads(parts.read_text()) == resumed


@pytest.mark.slow
def test_several_processes_give_the_same(incidents: Path, tmp_path: Path) -> None:
    one = evaluate_set(EvalRequest(incidents, output=tmp_path / "one.json"))
    two = evaluate_set(EvalRequest(incidents, output=tmp_path / "two.json", jobs=2))
    assert lasting(one["scores"]) == lasting(two["scores"])
    shares = [name for name, value in one["summary"]["all"].items() if isinstance(value, dict)]
    assert shares
    assert {name: one["summary"]["all"][name] for name in shares} == {
        name: two["summary"]["all"][name] for name in shares
    }


@pytest.mark.slow
def test_the_runs_are_kept_beside_the_results(incidents: Path, tmp_path: Path) -> None:
    found = evaluate_set(EvalRequest(incidents, output=tmp_path / "kept.json"))
    first = found["scores"][0]
    program = Program(tmp_path / first["store"], tmp_path)
    shown = program("show", first["run"], "--json")
    assert json.loads(shown.stdout)["report"]["verdict"] == first["verdict"]


def test_a_case_that_cannot_be_read_is_a_wrong_one_and_the_rest_goes_on(
    incidents: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    (folder / "empty").mkdir(parents=True)
    (folder / "answers.json").write_text('{"empty": {"verdict": "healthy"}}')
    (score,) = evaluate_set(EvalRequest(folder))["scores"]
    assert "incident.json" in score["problem"]
    assert not score["verdict_right"]


@pytest.mark.slow
def test_a_part_of_a_set_leaves_what_is_there(incidents: Path, tmp_path: Path) -> None:
    names = sorted(json.loads((incidents / "answers.json").read_text()))
    output = tmp_path / "parts.json"
    for name in names[:2]:
        evaluate_set(EvalRequest(incidents, output=output, only=(name,)))
    assert [score["case"] for score in json.loads(output.read_text())["scores"]] == names[1::-1]
    with pytest.raises(UsageError, match="results of the set small"):
        evaluate_set(EvalRequest(Path("traps"), output=output))


def test_two_evaluations_do_not_write_one_file(incidents: Path, tmp_path: Path) -> None:
    output = tmp_path / "one.json"

    def second(*_: object) -> None:
        done = Program(tmp_path / "none.db", tmp_path)("eval", "run", str(incidents), "-o", str(output))
        assert (done.returncode, "another evaluation writes" in done.stderr) == (10, True)

    found = evaluate_set(EvalRequest(incidents, output=output, only=("*1",)), second)
    assert json.loads(output.read_text()) == found


@pytest.mark.parametrize(
    "entry",
    [
        1,
        None,
        {"causes": [{}]},
        {"recommendations": {"x": 1}},
        {"at_most": {"turns": "many"}},
        {"tags": 1},
        {"root_cause_service": []},
        {"expected_fields": [1]},
        {"verdict": "bogus"},
        {"must_not_say": 7},
    ],
)
def test_a_key_that_cannot_be_meant_is_told_before_anything_is_run(tmp_path: Path, entry: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "answers.json").write_text(json.dumps({"a": entry}))
    with pytest.raises(UsageError, match=r"maps case ids to answers: a"):
        load_case_set(tmp_path)
    (tmp_path / "answers.json").write_text(json.dumps({"../a": {"verdict": "healthy"}}))
    with pytest.raises(UsageError, match="should match pattern"):
        load_case_set(tmp_path)


@pytest.mark.parametrize("scores", [[1], [{}], [{"case": 1}], ["x"]])
def test_results_that_were_changed_are_told(tmp_path: Path, scores: list[Any]) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"planner": "offline", "scores": scores}))
    with pytest.raises(UsageError, match="its scores cannot be read"):
        load_results(tmp_path / "r.json")


MODEL = {"model": "a", "base_url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"planner": "auto"}, "planner model, not auto"),
        ({"model": MODEL | {"model": "b"}}, "model a, not b"),
        ({"model": MODEL | {"temperature": 1.0}}, "model_settings"),
        ({"model": None}, "model a, not None"),
        ({"limits": {"turns": 9}}, "limits {'turns': 3}, not {'turns': 9}"),
    ],
)
def test_results_of_another_maker_are_not_mixed(
    incidents: Path, tmp_path: Path, other: dict[str, Any], said: str
) -> None:
    output = tmp_path / "mixed.json"
    given: dict[str, Any] = {"planner": "model", "model": MODEL, "limits": {"turns": 3}}
    save_results(output, build_results_document("x", describe_eval_setup(**given), []))
    with pytest.raises(UsageError, match=said):
        evaluate_set(EvalRequest(incidents, output=output, **given | other))


@pytest.mark.parametrize("lost", ["model", "limits", "version", "prompts"])
def test_results_that_do_not_say_who_made_them_are_not_gone_on_with(
    incidents: Path, tmp_path: Path, lost: str
) -> None:
    output, made = tmp_path / "old.json", describe_eval_setup("offline")
    del made[lost]
    save_results(output, build_results_document("x", made, []))
    with pytest.raises(UsageError, match=f"do not say their {lost}"):
        evaluate_set(EvalRequest(incidents, output=output))


def test_the_built_in_set_has_all_kinds_and_names_that_tell_nothing() -> None:
    cases = load_case_set(Path("builtin"))
    recipes = [case.recipe for case in cases if case.recipe]
    assert len(cases) == len({case.id for case in cases}) >= 40
    assert {recipe.kind for recipe in recipes} == set(KINDS)
    assert sum(recipe.hostile for recipe in recipes) >= 10
    assert not any(kind in case.id for case in cases for kind in KINDS)


def test_tasks_are_evaluated_with_their_own_question(incidents: Path, tmp_path: Path) -> None:
    case = min(path for path in incidents.iterdir() if path.is_dir())
    tasks = tmp_path / "asked.toml"
    tasks.write_text(
        f'case = "{case}"\n[[task]]\nid = "errors"\nquestion = "Show me the error lines."\n'
        'expected = ["log lines are errors", 77777]\ntags = ["lookup"]\n'
    )
    found = evaluate_set(EvalRequest(tasks))
    (score,) = found["scores"]
    assert (score["verdict"], score["exact"], score["partial"]) == ("answered", False, 0.5)
    assert found["summary"]["by_tag"]["lookup"]["mean_partial"] == 0.5


@pytest.mark.slow
def test_the_commands(incidents: Path, tmp_path: Path) -> None:
    program = Program(tmp_path / "unused.db", tmp_path)
    a, b = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    ran = program("eval", "run", str(incidents), "-o", a)
    assert ran.returncode == 0, ran.stderr
    assert "3/3 generated" in ran.stderr
    gate = tmp_path / "gate.toml"
    gate.write_text('[[rule]]\nmetric = "top1"\nmax_drop = 0\n')
    harmed = json.loads((tmp_path / "a.json").read_text())
    harmed["scores"][0] |= {"top1": False, "kind": False}
    (tmp_path / "b.json").write_text(json.dumps(harmed))
    same = program("eval", "compare", a, a, "--gate", str(gate))
    worse = program("eval", "compare", a, b, "--gate", str(gate), "--json")
    assert (same.returncode, worse.returncode) == (0, 15), worse.stderr
    assert "the gate holds" in same.stdout
    assert json.loads(worse.stdout)["gate"] == ["top1 is worse by 33.3 points; 0 are allowed"]
