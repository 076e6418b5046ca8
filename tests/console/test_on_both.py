"""The command line on a file and on a real PostgreSQL: the same words do the same."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from places import told
from stored_runs import Program

from opsleuth.checkpoints.database_urls import Place
from opsleuth.state.run_status import ExitCode

PASSWORD = "correct-horse-battery"


@pytest.fixture
def program(place: Place, tmp_path: Path) -> Iterator[Program]:
    """The command line on an empty place; a control plane that it starts is ended afterwards."""
    yield on(told(place).replace("postgres@", f"postgres:{PASSWORD}@"), tmp_path)
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        if str(tmp_path).encode() in _read(stat):
            os.kill(int(stat.parent.name), signal.SIGTERM)


def on(database: str, home: Path) -> Program:
    folders = {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
    return Program(home / "given-below", home, {"OPSLEUTH_DB": database, **folders})


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def ok(program: Program, *words: str, code: int = 0, **variables: str) -> str:
    done = program(*words, **variables)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert PASSWORD not in done.stdout + done.stderr
    return done.stdout


def document(program: Program, *words: str) -> Any:
    return json.loads(ok(program, *words, "--json"))


@pytest.mark.slow
def test_from_the_question_to_the_checked_change_and_what_is_kept_of_it(
    program: Program, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert "no runs yet" in program("list").stdout + program("list").stderr
    ok(program, "demo", "--act", "--no-input", code=ExitCode.WAITING)
    (asked,) = document(program, "approvals")["approvals"]
    run = asked["run"]
    assert "still waits" in program("resume", run, "--no-input").stderr
    ok(program, "approve", run, "A1", "--digest", "0" * 16, code=ExitCode.USAGE)
    ok(program, "approve", run, "A1", "--digest", asked["digest"][:16])
    assert "already" in program("approve", run, "A1", "--digest", asked["digest"][:16]).stderr

    (listed,) = document(program, "list")["runs"]
    assert (listed["id"], listed["status"]) == (run, "completed")
    report = json.loads(ok(program, "report", run, "--format", "json"))
    assert report["effects"][0]["status"] == "done"
    assert "unchanged since they were written" in ok(program, "log", run, "--verify")
    for claim in report["claims"]:
        for evidence in claim["evidence"]:
            assert document(program, "evidence", run, evidence)
    assert run in ok(program, "show", run)
    assert document(program, "state", "get", f"{run}@before:act")

    branch = document(program, "fork", f"{run}@before:act")["run"]
    shown = ok(program, "show", branch)
    assert run in shown
    kept = tmp_path / "kept.gz"
    ok(program, "export", branch, "-o", str(kept), "--with-evidence")
    _taken_in_elsewhere(program, kept, branch, run, request)

    assert document(program, "prune", "--older-than", "1d")["runs"] == []
    ok(program, "note", branch, "look at the release")
    ok(program, "cancel", branch, code=ExitCode.CANCELED)


def _taken_in_elsewhere(
    program: Program, kept: Path, branch: str, run: str, request: pytest.FixtureRequest
) -> None:
    """Exported from a file, taken in by a server, and the other way round."""
    is_file = program.variables["OPSLEUTH_DB"].startswith("/")
    server: servers.Postgres = request.getfixturevalue("postgres")
    elsewhere = on(server.database() if is_file else str(program.home / "other.db"), program.home)
    ok(elsewhere, "import", str(kept))
    assert "unchanged since they were written" in ok(elsewhere, "log", run, "--verify")
    for words in (("state", "get", f"{run}@head", "--json"), ("report", run, "--format", "json")):
        assert json.loads(ok(elsewhere, *words)) == json.loads(ok(program, *words))
    assert json.loads(ok(elsewhere, "resume", branch, "--no-input", "--json", code=0).splitlines()[-1])
