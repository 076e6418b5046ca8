"""`state`, `fork` and `diff` as a program."""

import json
import shutil
from pathlib import Path

import pexpect
import pytest
from stored_runs import Program

from opsleuth.scenarios.orders_incident import write_case


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the built-in incident, to its end."""
    folder = tmp_path_factory.mktemp("ended")
    Program(folder / "opsleuth.db", folder)("run", "--case", str(write_case(folder / "incident")), "-q")
    return folder


@pytest.fixture
def ended(first: Path, tmp_path: Path) -> tuple[Program, str]:
    """A copy of that run's database."""
    shutil.copy(first / "opsleuth.db", tmp_path / "opsleuth.db")
    program = Program(tmp_path / "opsleuth.db", tmp_path)
    (run,) = json.loads(program("list", "--json").stdout)["runs"]
    return program, run["id"]


def test_state_is_read_set_and_compared(ended: tuple[Program, str]) -> None:
    program, run = ended
    assert program("state", "get", f"{run}@c0", "budget.limits.turns").stdout == "30\n"
    assert json.loads(program("state", "get", "-").stdout)["status"] == "completed"
    assert json.loads(program("state", "get", "@head~1", "status", "--json").stdout) == "running"
    assert "status" in program("state", "diff", run).stdout
    changed = {c["path"] for c in json.loads(program("state", "diff", run, "c0", "--json").stdout)["changes"]}
    assert {"status", "observations"} <= changed

    made = program("state", "set", f"{run}@before:act", "budget.limits.turns", "9")
    assert made.returncode == 0, made.stderr
    assert "budget.limits.turns 30 -> 9" in made.stdout
    branch = json.loads(program("list", "--json").stdout)["runs"][0]
    assert (branch["parent"], branch["status"]) == (run, "paused")
    compared = program("diff", f"{run}@before:act", branch["id"])
    assert "budget.limits.turns 30 -> 9" in compared.stdout
    assert program("resume", branch["id"], "-q").returncode == 0
    assert program("state", "get", run, "budget.limits.turns").stdout == "30\n"


def test_a_fork_may_run_at_once(ended: tuple[Program, str]) -> None:
    program, run = ended
    done = program("fork", "-@c4", "--set", "budget.limits.turns=8", "--name", "eight", "--run")
    assert done.returncode == 0, done.stderr
    assert "\nWHY " in done.stdout
    tree = program("list", "--tree").stdout
    assert " └ inv-" in tree
    assert "eight: " in tree
    plain = json.loads(program("fork", f"{run}@c2", "--json").stdout)
    assert plain["parent"] == {"run": run, "ckpt": "c2"}


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["state", "get", "-", "no.such"], 2, "the state has no 'no'"),
        (["state", "get", "-@c99"], 9, "there are c0 to"),
        (["state", "get", "nothing@c1"], 9, "no run 'nothing'"),
        (["state", "set", "-", "question", "why"], 2, "is the end of the run"),
        (["state", "set", "-@c2", "status", "completed"], 2, "cannot be edited"),
        (["state", "set", "-@c2", "budget.limits.turns", "none"], 2, "would not be valid"),
        (["state", "edit", "-@c2"], 2, "on a terminal"),
        (["fork", "-@c2", "--set", "x"], 2, "write PATH=JSON"),
        (["diff", "-", "-@c77"], 9, "no checkpoint 'c77'"),
        (["step", "-"], 2, "needs a terminal"),
    ],
)
def test_refusals(ended: tuple[Program, str], command: list[str], code: int, said: str) -> None:
    program, _ = ended
    done = program(*command)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(json.loads(program("list", "--json").stdout)["runs"]) == 1


def test_a_script_of_the_stepper_ends_at_its_first_fault(ended: tuple[Program, str], tmp_path: Path) -> None:
    program, run = ended
    script = tmp_path / "commands"
    script.write_text("w\ngoto before:act\nnonsense\nfork\n")
    done = program("step", run, "--commands", str(script))
    assert done.returncode == 2
    assert "no command 'nonsense'" in done.stderr
    script.write_text("goto c2\nset budget.limits.turns=9\ncommit\nc\nq\n")
    done = program("step", run, "--commands", str(script))
    assert done.returncode == 0, done.stderr
    assert "whole report: opsleuth report" in done.stdout


@pytest.mark.slow
def test_reading_a_state_loads_no_framework(ended: tuple[Program, str]) -> None:
    program, _ = ended
    seen = program("state", "get", "-", "status", PYTHONPROFILEIMPORTTIME="1").stderr
    for heavy in ("langgraph", "langchain_core", "pydantic", "asyncio", "prompt_toolkit"):
        assert f" {heavy}\n" not in seen, heavy


def test_an_editor_makes_a_branch(ended: tuple[Program, str], tmp_path: Path) -> None:
    program, run = ended
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/30/11/ "$1"\n')
    editor.chmod(0o755)
    python, *arguments = program.command("state", "edit", f"{run}@c2", "budget.limits.turns")
    child = pexpect.spawn(
        python,
        arguments,
        env=program.environment(TERM="xterm", EDITOR=str(editor)),
        encoding="utf-8",
        timeout=60,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert program("state", "get", "-", "budget.limits.turns").stdout == "11\n"


def test_a_run_can_be_stopped_before_a_node_and_stepped_on(bare: Program, tmp_path: Path) -> None:
    case = str(write_case(tmp_path / "incident"))
    stopped = bare("run", "--case", case, "--pause-at", "act", "-q")
    assert stopped.returncode == 4
    script = tmp_path / "commands"
    script.write_text("s\nfinish\nq\n")
    stepped = bare("step", "-", "--commands", str(script))
    assert (stepped.returncode, "next: plan" in stepped.stdout) == (4, True)
    assert bare("resume", "-", "-q").returncode == 0


def test_where_each_option_comes_from(bare: Program) -> None:
    shown = bare("config", "show", "--origin", "--tz", "Asia/Tokyo", OPSLEUTH_MAX_TURNS="7")
    assert shown.returncode == 0, shown.stderr
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert rows["tz"] == ["flag", "Asia/Tokyo"]
    assert rows["max-turns"] == ["OPSLEUTH_MAX_TURNS", "7"]
    assert rows["planner"][0] == "default"
    document = json.loads(bare("config", "show", "--json").stdout)
    assert document["options"]["database"]["origin"] == "OPSLEUTH_DB"
