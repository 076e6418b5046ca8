"""`opsleuth verdict` and SEEN BEFORE: what earlier runs on the same incident found, and a person's word on it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from stored_runs import DONE, STOPPED, Program

from opsleuth.scenarios.orders_incident import write_case


def newest(program: Program) -> dict[str, Any]:
    rows: list[dict[str, Any]] = json.loads(program("list", "--json").stdout)["runs"]
    return rows[0]


def read_report(program: Program, run: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(program("report", run, "--json").stdout)
    return document


@pytest.mark.slow
def test_an_incident_that_comes_back_shows_what_was_found_and_what_helped(
    bare: Program, tmp_path: Path
) -> None:
    case = str(write_case(tmp_path / "incident"))
    assert bare("run", "--case", case).returncode == 0
    first = newest(bare)["id"]
    judged = bare("verdict", first, "wrong", "--cause", "orders-db:locks", "--helped", "ended the session")
    assert judged.returncode == 0
    assert f"opsleuth eval add {first} --expect" in judged.stderr
    assert '"root_cause_service": "orders-db", "kind": "locks"' in judged.stderr
    assert "wrong, by " in bare("show", first).stdout
    again = bare("run", "--case", case)
    flat = " ".join(again.stdout.split())
    assert (
        "SEEN BEFORE 2026-03-03: orders-db:locks; helped: ended the session; judged wrong: the run blamed orders-db"
        in flat
    )
    assert f"(opsleuth report {first})" in flat
    second = newest(bare)["id"]
    assert bare("verdict", second, "right").returncode == 0
    before, after = read_report(bare, first), read_report(bare, second)
    assert "seen_before" not in before or before["seen_before"] == []
    for name in ("verdict", "answer", "causes", "claims", "hypotheses", "ruled_out", "recommendations"):
        assert after[name] == before[name], name


@pytest.mark.slow
def test_a_wrong_run_becomes_a_case(bare: Program, tmp_path: Path) -> None:
    case = str(write_case(tmp_path / "incident"))
    assert bare("run", "--case", case).returncode == 0
    run = newest(bare)["id"]
    made = bare("verdict", run, "wrong", "--cause", "orders-db:locks", "--add-to", str(tmp_path / "cases"))
    assert made.returncode == 0, made.stderr
    key = json.loads((tmp_path / "cases" / "answers.json").read_text())
    assert (key[run]["root_cause_service"], key[run]["kind"]) == ("orders-db", "locks")
    assert (tmp_path / "cases" / run / "incident.json").exists()
    shutil.rmtree(tmp_path / "incident")
    gone = bare("verdict", run, "wrong", "--cause", "orders-db:locks", "--add-to", str(tmp_path / "more"))
    assert gone.returncode == 2
    assert "did not look at a recorded incident that is still there" in gone.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((DONE, "maybe"), 2, "'maybe' is not one of 'right', 'wrong'"),
        ((DONE,), 2, "Missing argument"),
        ((STOPPED, "right"), 2, f"{STOPPED} has no conclusion to judge"),
        (("inv-20200101-zzzz", "right"), 9, "no run 'inv-20200101-zzzz'"),
        ((DONE, "wrong", "--cause", " "), 2, "--cause is empty"),
        ((DONE, "right", "--add-to", "cases"), 2, "--add-to makes a case of a wrong run"),
        ((DONE, "wrong", "--add-to", "cases"), 2, "write --cause SERVICE:KIND"),
        ((DONE, "wrong", "--cause", "orders-db:lock", "--add-to", "cases"), 2, "there is no kind 'lock'"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    program: Program, words: tuple[str, ...], code: int, said: str
) -> None:
    refused = program("verdict", *words)
    assert refused.returncode == code
    assert said in refused.stderr
    assert json.loads(program("show", DONE, "--json").stdout)["judged"] is None


def test_a_run_of_an_older_version_can_be_judged_and_json_says_so(program: Program) -> None:
    judged = program("verdict", DONE, "right", "--json")
    assert json.loads(judged.stdout) == {"run": DONE, "judged": "right", "cause": None, "helped": None}
    assert json.loads(program("show", DONE, "--json").stdout)["judged"].startswith("right, by ")
