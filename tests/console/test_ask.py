"""`opsleuth ask`: a question on a run that has ended, in real processes over the built-in incident."""

import json
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from commit_kills import in_child, kill_at_commit
from forked import run_python
from nonempty import nonempty
from stored_runs import DONE, HANG, STOPPED, Program

from opsleuth.cli import main
from opsleuth.scenarios.orders_incident import write_case


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built-in case and a database in which its investigation has ended."""
    folder = tmp_path_factory.mktemp("ended")
    write_case(folder / "case")
    done = Program(folder / "opsleuth.db", folder)("run", "--case", str(folder / "case"))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def asked(ended: Path, tmp_path: Path) -> Program:
    """The command line over a copy of that database."""
    copy = tmp_path / "copy"
    copy.mkdir()
    with sqlite3.connect(ended / "opsleuth.db") as source, sqlite3.connect(copy / "opsleuth.db") as target:
        source.backup(target)
    return Program(copy / "opsleuth.db", copy)


def rows_of(program: Program) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(program("list", "--json").stdout)["runs"]
    return rows


def test_an_answer_cites_evidence_that_opens_and_changes_nothing_in_the_run(asked: Program) -> None:
    [run] = [row["id"] for row in rows_of(asked)]
    before = asked("report", run, "--json").stdout
    done = asked("ask", run, "was it the database?")
    assert done.returncode == 0, done.stderr
    flat = " ".join(done.stdout.split())
    assert flat.startswith("Yes: the run blames orders-db (a slow database statement")
    assert "cpu of orders-db went from" in flat
    newest = rows_of(asked)[0]
    assert newest["parent"] == run
    cited = {
        e
        for claim in json.loads(asked("report", newest["id"], "--json").stdout)["claims"]
        for e in claim["evidence"]
    }
    for evidence in nonempty(sorted(cited)):
        assert asked("evidence", newest["id"], evidence).returncode == 0
    assert asked("report", run, "--json").stdout == before


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("was it the cache?", 'Nothing points to "cache": the run blames orders-db'),
        ("was it traffic?", "the run blames orders-db"),
        ("was it the release of orders-api?", "Yes: the run blames orders-db"),
        ("what was changed before?", "orders-api was changed at 2026-03-03T13:58:20Z"),
        ("did payments fail?", "No lines of failure for payments"),
        ('was there any "peer down"?', 'No log lines for "peer down": '),
        ("how did the cpu of orders-db move?", "cpu of orders-db went from"),
    ],
)
@pytest.mark.slow
def test_the_nouns_of_a_question_choose_what_is_looked_at(asked: Program, question: str, said: str) -> None:
    done = asked("ask", "-", question)
    assert done.returncode == 0, done.stderr
    assert said in " ".join(done.stdout.split())


def test_a_question_after_a_question_is_still_about_the_causes_of_the_run(asked: Program) -> None:
    assert asked("ask", "is it over?").returncode == 0
    done = asked("ask", "was it the database?")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Yes: the run blames orders-db")


def test_a_question_that_no_source_can_answer_is_inconclusive(asked: Program) -> None:
    done = asked("ask", "which pods restarted?")
    assert done.returncode == 3
    assert "The sources hold nothing about the platform." in done.stdout
    assert "Not checked: traces, events, objects" in done.stdout


def test_the_answer_is_shown_and_exported_with_the_run(asked: Program, tmp_path: Path) -> None:
    run = rows_of(asked)[0]["id"]
    assert asked("ask", run, "was it the cache?").returncode == 0
    answer = rows_of(asked)[0]["id"]
    assert "was it the cache? Nothing points to" in " ".join(asked("show", run).stdout.split())
    [shown] = json.loads(asked("show", run, "--json").stdout)["questions"]
    assert (shown["run"], shown["question"]) == (answer, "was it the cache?")
    assert asked("export", run, "-o", str(tmp_path / "run.gz"), "--with-evidence").returncode == 0
    other = Program(tmp_path / "other" / "opsleuth.db", tmp_path)
    assert other("import", str(tmp_path / "run.gz")).returncode == 0
    [taken] = json.loads(other("show", run, "--json").stdout)["questions"]
    assert taken == shown
    assert other("log", answer, "--verify").returncode == 0


@pytest.mark.parametrize("named", [(), ("-",)], ids=["the newest run", "a named run"])
def test_a_dash_reads_the_question_from_stdin(asked: Program, named: tuple[str, ...]) -> None:
    command = ["-m", "opsleuth", "ask", *named, "-"]
    done = run_python(command, env=asked.environment(), typed="was it the cache?\n", timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert rows_of(asked)[0]["question"] == "was it the cache?"


def test_all_questions_together_stay_within_the_limits_of_the_run(asked: Program) -> None:
    run = rows_of(asked)[0]
    for question in ("was it the cache?", "was it redis?"):
        assert asked("ask", run["id"], question, "--max-turns", str(run["turn"] + 4)).returncode == 0
    refused = asked("ask", run["id"], "was it kafka?", "--max-turns", str(run["turn"] + 4))
    assert refused.returncode == 2
    assert (
        f"nothing is left of {run['id']} for a question: 9 of 9 turns are used by it and 2 questions on it"
        in refused.stderr
    )
    assert "--max-turns 14" in refused.stderr
    assert len(rows_of(asked)) == 3
    follow_up = rows_of(asked)[0]["id"]
    assert "nothing is left of" in asked("ask", follow_up, "and kafka?", "--max-turns", "9").stderr


def test_a_run_with_no_turn_left_refuses_and_names_the_flag(asked: Program) -> None:
    refused = asked("ask", "-", "was it the cache?", "--max-turns", "5")
    assert refused.returncode == 2
    assert "5 of 5 turns are used. Give a new total: --max-turns 8" in refused.stderr


def test_a_question_cannot_change_anything(asked: Program) -> None:
    assert asked("ask", "-", "was it the cache?").returncode == 0
    state = json.loads(asked("state", "get", "-", "--json").stdout)
    assert '"read_only": true' in json.dumps(state)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((STOPPED, "was it the cache?"), 2, f"{STOPPED} has not ended: its status is "),
        ((DONE,), 2, "the question is missing"),
        (("-",), 2, "the question on stdin is empty"),
        ((DONE, "-"), 2, "the question on stdin is empty"),
        ((DONE, "  "), 2, "the question is missing"),
        ((DONE, "was", "it"), 2, "put the question in quotation marks"),
        (("inv-20200101-zzzz", "was it the cache?"), 9, "no run 'inv-20200101-zzzz'"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_stored(
    program: Program, words: tuple[str, ...], code: int, said: str
) -> None:
    before = len(rows_of(program))
    refused = program("ask", *words)
    assert refused.returncode == code
    assert said in refused.stderr
    assert len(rows_of(program)) == before


@pytest.mark.parametrize("commit", [5, 9, 17])
@pytest.mark.slow
def test_a_killed_question_is_resumed_to_the_same_answer(
    asked: Program, ended: Path, tmp_path: Path, commit: int
) -> None:
    [run] = [row["id"] for row in rows_of(asked)]
    twin = tmp_path / "twin.db"
    shutil.copy(asked.database, twin)
    whole = Program(twin, tmp_path)("-q", "ask", run, "was it the cache?")

    def ask() -> None:
        kill_at_commit(commit)
        main(["--db", str(asked.database), "-q", "ask", run, "was it the cache?"])

    assert in_child(ask) == -signal.SIGKILL
    asking = rows_of(asked)[0]
    assert (asking["parent"], asking["status"]) == (run, "interrupted")
    assert f"not answered yet: opsleuth resume {asking['id']}" in " ".join(asked("show", run).stdout.split())
    assert asked("resume", asking["id"]).returncode == 0
    [shown] = json.loads(asked("show", run, "--json").stdout)["questions"]
    assert shown["answer"].splitlines()[0] in " ".join(whole.stdout.split())
    assert asked("log", asking["id"], "--verify").returncode == 0
