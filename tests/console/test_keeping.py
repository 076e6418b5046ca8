"""`note`, `watch`, `prune`, `export`, `import`, `completion`, and a checkpoint looked at."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop
from step_rig import RUN, begun
from stored_runs import Program

from opsleuth.checkpoints.errors import Conflict, Unreadable
from opsleuth.checkpoints.scripts import SCHEMA_VERSION
from opsleuth.state.outcome import Status


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that stands before act, in the middle."""
    folder = tmp_path_factory.mktemp("kept")
    begun(folder).store.close()
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> tuple[Program, Loop]:
    """A copy of it."""
    for name in ("store.db", "script.json"):
        shutil.copy(made / name, tmp_path / name)
    return Program(tmp_path / "store.db", tmp_path), Loop(tmp_path)


def test_a_note_reaches_the_planner_once(kept: tuple[Program, Loop]) -> None:
    program, loop = kept
    assert program("note", RUN, "it began after the deploy").returncode == 0
    assert program("note", RUN, "  ").returncode == 2
    loop.listen(loop.events.append)
    loop.resume(RUN)
    told = [p.values["notices"] for p in loop.store.history.list(RUN)]
    heard = [e for e in loop.store.events.read(RUN) if e["type"] == "note.added"]
    assert heard[0]["data"]["text"] == "it began after the deploy"
    assert loop.store.control.pending(RUN) == ()
    assert told
    refused = program("note", RUN, "too late")
    assert (refused.returncode, "fork it" in refused.stderr) == (2, True)


def test_watch_shows_the_course_and_ends_with_the_attempt(kept: tuple[Program, Loop]) -> None:
    program, loop = kept
    shown = program("watch", RUN)
    assert shown.returncode == 0
    assert "a may be broken" in shown.stdout
    assert f"opsleuth resume {RUN}" in shown.stderr
    events = [json.loads(line) for line in program("watch", RUN, "--json").stdout.splitlines()]
    assert events == loop.store.events.read(RUN)
    assert program("watch", "nothing").returncode == 9


def test_a_checkpoint_is_shown_with_its_decision(kept: tuple[Program, Loop]) -> None:
    program, _ = kept
    state = program("show", f"{RUN}@c1")
    assert "hypotheses" in state.stdout
    assert "before act, turn 1" in state.stdout
    told = program("show", f"{RUN}@c0", "--snapshot")
    assert "a may be broken" in told.stdout
    document = json.loads(program("show", f"{RUN}@before:plan", "--snapshot", "--json").stdout)
    assert document["decisions"][0]["reason"] == "a may be broken"
    assert program("show", f"{RUN}@c9").returncode == 9


def test_a_run_goes_on_where_it_is_imported(kept: tuple[Program, Loop], tmp_path: Path) -> None:
    program, loop = kept
    loop.resume(RUN)
    file = tmp_path / "run.gz"
    assert program("export", RUN, "-o", str(file), "--with-evidence").returncode == 0
    there = tmp_path / "there"
    there.mkdir()
    elsewhere = Program(there / "store.db", there)
    done = elsewhere("import", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{RUN}\n"
    for command in (
        ["report", RUN, "--json"],
        ["log", RUN, "--json"],
        ["evidence", RUN, "E1", "--json"],
        ["state", "get", RUN],
    ):
        assert elsewhere(*command).stdout == program(*command).stdout
    assert elsewhere("log", RUN, "--verify").returncode == 0
    again = elsewhere("import", str(file))
    assert (again.returncode, "is here already" in again.stderr) == (2, True)
    made = json.loads(elsewhere("fork", f"{RUN}@c1", "--set", "budget.limits.turns=9", "--json").stdout)[
        "run"
    ]
    shutil.copy(tmp_path / "script.json", there / "script.json")
    assert Loop(there).resume(made).status is Status.COMPLETED


def _newer(lines: list[str]) -> list[str]:
    return [json.dumps(json.loads(lines[0]) | {"schema": SCHEMA_VERSION + 1}), *lines[1:]]


def _changed_event(lines: list[str]) -> list[str]:
    return [line.replace("a may be broken", "b may be broken") for line in lines]


def _changed_body(lines: list[str]) -> list[str]:
    rows = [json.loads(line) for line in lines[1:]]
    bodies = [row for row in rows if row[0] == "bodies"]
    bodies[0][1]["data"], bodies[1][1]["data"] = bodies[1][1]["data"], bodies[0][1]["data"]
    return [lines[0], *map(json.dumps, rows)]


def _foreign_table(lines: list[str]) -> list[str]:
    return [*lines, json.dumps(["meta", {"key": "redaction_key", "value": "0"}])]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_newer, "newer opsleuth"),
        (_changed_event, "was changed"),
        (_changed_body, "does not have this hash"),
        (_foreign_table, "does not know"),
        (lambda _: ["[]"], "no exported run"),
        (lambda _: [], "no exported run"),
    ],
)
def test_a_file_that_does_not_hold_is_refused_whole(
    kept: tuple[Program, Loop], tmp_path: Path, change: Callable[[list[str]], list[str]], said: str
) -> None:
    _, loop = kept
    loop.resume(RUN)
    loop.store.transfer.write(RUN, tmp_path / "run.gz", with_evidence=True)
    lines = gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()
    (tmp_path / "run.gz").write_bytes(gzip.compress("\n".join(change(lines)).encode()))
    (tmp_path / "there").mkdir()
    there = Program(tmp_path / "there" / "store.db", tmp_path)
    done = there("import", str(tmp_path / "run.gz"))
    assert done.returncode == 11
    assert said in done.stderr
    assert json.loads(there("list", "--json").stdout)["runs"] == []


def test_a_fork_takes_its_parent_along(kept: tuple[Program, Loop], tmp_path: Path) -> None:
    program, loop = kept
    loop.resume(RUN)
    child = json.loads(program("fork", f"{RUN}@c4", "--json").stdout)["run"]
    loop.resume(child)
    taken = loop.store.transfer.write(child, tmp_path / "run.gz", with_evidence=True)
    assert taken.runs == (child, RUN)
    (tmp_path / "there").mkdir()
    there = Program(tmp_path / "there" / "store.db", tmp_path)
    assert there("import", str(tmp_path / "run.gz")).returncode == 0
    assert (
        there("evidence", child, "E1", "--json").stdout == program("evidence", child, "E1", "--json").stdout
    )
    assert there("log", child, "--verify").returncode == 0
    with pytest.raises(Unreadable):
        loop.store.transfer.read(tmp_path / "script.json")
    with pytest.raises(Conflict):
        loop.store.transfer.read(tmp_path / "run.gz")


def test_prune_says_first_what_it_would_remove(kept: tuple[Program, Loop]) -> None:
    program, loop = kept
    assert program("prune", "--older-than", "10000d").stdout == ""
    dry = program("prune", "--older-than", "1s", "--dry-run")
    assert (dry.stdout, "would be" in dry.stderr) == (f"{RUN}\n", True)
    assert program("show", RUN).returncode == 0
    removed: dict[str, Any] = json.loads(program("prune", "--older-than", "1s", "--json").stdout)
    assert removed["runs"] == [RUN]
    assert program("show", RUN).returncode == 9
    assert loop.store.history.list(RUN) == ()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(kept: tuple[Program, Loop], shell: str) -> None:
    program, _ = kept
    made = program("completion", shell)
    assert (made.returncode, "_OPSLEUTH_COMPLETE" in made.stdout) == (0, True)
    asked = {"_OPSLEUTH_COMPLETE": "bash_complete", "COMP_WORDS": "opsleuth sta", "COMP_CWORD": "1"}
    assert "state" in program(**asked).stdout
