"""`note`, `watch`, `prune`, `export`, `import`, `completion`, and a checkpoint looked at."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, looks
from step_rig import RUN, begun
from stored_runs import Program

from opsleuth.checkpoints.approvals import ApprovalAnswer
from opsleuth.checkpoints.errors import ConflictError, UnreadableStoreError
from opsleuth.checkpoints.migrations import SCHEMA_VERSION
from opsleuth.state.run_status import Status


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


def _rows(lines: list[str], table: str, **values: Any) -> list[str]:
    """The file with other values in every row of a table."""
    rows = [json.loads(line) for line in lines[1:]]
    return [lines[0], *(json.dumps([t, row | values if t == table else row]) for t, row in rows)]


def _foreign_table(lines: list[str]) -> list[str]:
    return [*lines, json.dumps(["meta", {"key": "redaction_key", "value": "0"}])]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_newer, "newer opsleuth"),
        (_changed_event, "was changed"),
        (_changed_body, "does not have this hash"),
        (_foreign_table, "does not know"),
        (lambda lines: [*lines, json.dumps(["control", {"run": RUN, "kind": "terminate"}])], "does not know"),
        (lambda lines: _rows(lines, "reports", run="inv-20240501-b002"), "not among"),
        (lambda lines: _rows(lines, "runs", parent="inv-20240501-b002"), "fork of a run"),
        (lambda lines: _rows(lines, "runs", settings="[" * 100_000), "settings"),
        (lambda lines: _rows(lines, "runs", turn=None), "does not fit"),
        (lambda lines: _rows(lines, "runs", turn="many"), "does not fit"),
        (lambda lines: _rows(lines, "runs", turn=2**70), "64 bits"),
        (lambda lines: _rows(lines, "runs", turn=[1]), "a list"),
        (lambda lines: _rows(lines, "events", data={"base64": "?"}), "cannot be read"),
        (lambda lines: _rows(lines, "events", data="\ud800"), "surrogate"),
        (lambda lines: [line for line in lines if not line.startswith('["runs"')], "does not hold"),
        (lambda lines: _rows(lines, "checkpoints", type="json"), "the form 'json'"),
        (lambda lines: [*lines, "[1, 2]"], "not a row"),
        (lambda lines: [*lines, "[" * 100_000], "not an exported run"),
        (
            lambda lines: [json.dumps(json.loads(lines[0]) | {"runs": ["../../x"]}), *lines[1:]],
            "not a run id",
        ),
        (lambda lines: [json.dumps(json.loads(lines[0]) | {"runs": []}), *lines[1:]], "names no"),
        (lambda lines: ['{"opsleuth": 1}', *lines[1:]], "names no"),
        (lambda _: ["[]"], "not an exported run"),
        (lambda _: [], "not an exported run"),
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


@pytest.mark.parametrize("flags", [[], ["--read-only"]])
def test_an_import_under_read_only_stays_so(
    kept: tuple[Program, Loop], tmp_path: Path, flags: list[str]
) -> None:
    _, loop = kept
    loop.resume(RUN)
    loop.store.transfer.write(RUN, tmp_path / "run.gz", with_evidence=False)
    (tmp_path / "there").mkdir()
    there = Program(tmp_path / "there" / "store.db", tmp_path)
    assert there(*flags, "import", str(tmp_path / "run.gz")).returncode == 0
    assert Loop(tmp_path / "there").store.runs.find(RUN).settings["read_only"] is bool(flags)


def test_a_file_brings_no_say_in_what_is_reached_run_or_allowed(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.start(looks("a", tool="restart"), run=RUN)
    asked = loop.store.approvals.list(RUN)[0]
    yes = ApprovalAnswer(decision="approved", by="ann", via="command", digest=asked.digest)
    loop.store.approvals.answer(RUN, asked.id, yes)
    loop.store.transfer.write(RUN, tmp_path / "run.gz", with_evidence=True)
    lines = gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()
    bait = {
        "model": {"key_command": "touch taken"},
        "sources": {"x": {"kind": "prometheus"}},
        "policy": "p.toml",
    }
    settings = json.dumps(json.loads(json.loads(lines[1])[1]["settings"]) | bait)
    text = "\n".join(_rows(lines, "runs", settings=settings))
    (tmp_path / "run.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "there").mkdir()
    assert (
        Program(tmp_path / "there" / "store.db", tmp_path)("import", str(tmp_path / "run.gz")).returncode == 0
    )
    there = Loop(tmp_path / "there")
    row = there.store.runs.find(RUN)
    assert [row.settings[name] for name in ("model", "sources", "policy")] == [None, {}, None]
    assert there.store.approvals.get(RUN, asked.id).status == "stale"
    shutil.copy(tmp_path / "script.json", tmp_path / "there" / "script.json")
    assert there.resume(RUN).status is Status.WAITING
    assert there.world.lines("done") == []


def test_what_is_asked_or_under_way_elsewhere_is_asked_and_decided_here(tmp_path: Path) -> None:
    """A file could show a person another call than the digest names, and have a change tried again without one."""
    loop = Loop(tmp_path)
    loop.start(looks("a", tool="change"), looks("b", tool="restart"), run=RUN)
    loop.store.transfer.write(RUN, tmp_path / "run.gz", with_evidence=True)
    lines = gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()
    lines = _rows(lines, "approvals", document='{"tool": "look", "arguments": {"thing": "b"}}')
    lines = _rows(lines, "effects", status="started", finished=None)
    (tmp_path / "run.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (tmp_path / "there").mkdir()
    shutil.copy(tmp_path / "script.json", tmp_path / "there" / "script.json")
    program = Program(tmp_path / "there" / "store.db", tmp_path)
    assert program("import", str(tmp_path / "run.gz")).returncode == 0
    there = Loop(tmp_path / "there")
    assert [(row.status, row.tries) for row in there.store.effects.list(RUN)] == [("unknown", 2)]
    assert there.resume(RUN).status is Status.WAITING
    asked = {a.about: a.document["tool"] for a in there.store.approvals.list(RUN, "pending")}
    assert asked == {"call": "restart", "effect": "change"}


def test_a_fork_takes_its_parent_along(kept: tuple[Program, Loop], tmp_path: Path) -> None:
    program, loop = kept
    loop.resume(RUN)
    child = json.loads(program("fork", f"{RUN}@c4", "--json").stdout)["run"]
    loop.resume(child)
    taken = loop.store.transfer.write(child, tmp_path / "run.gz", with_evidence=True)
    assert taken.runs == (child, RUN)
    (tmp_path / "there").mkdir()
    there = Program(tmp_path / "there" / "store.db", tmp_path)
    imported = there("import", str(tmp_path / "run.gz"), "--json")
    assert imported.returncode == 0
    assert json.loads(imported.stdout) == {"runs": [child, RUN], "rows": taken.rows, "there": 0}
    assert (
        there("evidence", child, "E1", "--json").stdout == program("evidence", child, "E1", "--json").stdout
    )
    assert there("log", child, "--verify").returncode == 0
    with pytest.raises(UnreadableStoreError):
        loop.store.transfer.read(tmp_path / "script.json", dict)
    with pytest.raises(ConflictError):
        loop.store.transfer.read(tmp_path / "run.gz", dict)


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
