"""Task files: what they may say, and what is said of a wrong one."""

from pathlib import Path

import pytest

from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import CaseBounds
from opsleuth.evals.task_files import demands_for_fields
from opsleuth.state.errors import UsageError

TOML = """
case = "incident"

[[task]]
id = "calls"
question = "How many calls did the statement get?"
expected = ["orders", 1840]
expected_fields = { calls = 1840 }
tags = ["database"]
at_most = { repeated = 1, turns = 6 }

[[task]]
id = "cause"
root_cause_service = "orders-api"
kind = "slow_query"
recommendations = { target = "orders-api", risk = "high" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "incident").mkdir()
    return tmp_path


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_toml_file_holds_tasks(folder: Path) -> None:
    first, second = load_case_set(written(folder, "shop.toml", TOML))
    assert (first.id, first.set, first.folder, first.tags) == (
        "calls", "shop", folder / "incident", ("database",),
    )  # fmt: skip
    assert (first.expected.verdict, first.expected.answer) == ("answered", ("orders", "1840"))
    assert first.bounds == CaseBounds(repeated=1, turns=6)
    assert [d.name for d in demands_for_fields(first)] == ["calls"]
    assert second.expected.verdict == "cause_found"
    assert second.expected.services == {"orders-api"}
    assert second.expected.advice is not None
    assert second.expected.advice.risk == "high"


def test_a_jsonl_file_holds_the_same(folder: Path) -> None:
    (case,) = load_case_set(
        written(folder, "shop.jsonl", '\n{"id": "a", "case": "incident", "expected": "no"}\n\n')
    )
    assert (case.id, case.expected.answer) == ("a", ("no",))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", '[[task]]\nid = "a"\n', "task 1 a: name the recorded incident"),
        ("a.toml", '[[task]]\nid = "a"\ncase = "elsewhere"\n', "does not exist"),
        ("a.toml", 'case = "incident"\n[[task]]\nid = "a"\nexpect = 1\n', "task 1 a: expect: Extra inputs"),
        ("a.toml", 'case = "incident"\n[[task]]\nid = "a"\n[[task]]\nid = "a"\n', "two tasks are called a"),
        ("a.toml", 'case = "incident"\n', "holds no task"),
        ("a.toml", "case =\n", "not readable as toml"),
        ("a.jsonl", "[1]\n", "line 1 : it: Input should be"),
        ("a.jsonl", '{"id": "../a", "case": "incident"}\n', "id: String should match pattern"),
        ("a.txt", "", "give a folder of cases"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(folder: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_case_set(written(folder, name, text))
