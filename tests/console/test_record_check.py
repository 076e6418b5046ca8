"""`log --verify` with a head, an anchor file and neither, on a store that a run was taken out of."""

import json
import sqlite3
from pathlib import Path

import pytest
from stored_runs import DONE, Program

from opsleuth.state.run_status import ExitCode


def head_of(program: Program) -> str:
    return str(json.loads(program("log", DONE, "--verify", "--json").stdout)["head"])


def change(program: Program, sql: str) -> None:
    with sqlite3.connect(program.database) as connection:
        connection.execute(sql, {"run": DONE})
    connection.close()


def test_an_intact_run_says_what_was_checked_and_what_cannot_be_seen(program: Program) -> None:
    told = program("log", DONE, "--verify").stdout
    assert "unchanged since they were written" in told
    assert "no head was given" in told
    assert f"head {head_of(program)}" in told


def test_a_given_head_is_checked(program: Program) -> None:
    head = head_of(program)
    assert "no head was given" not in program("log", DONE, "--verify", "--head", head).stdout
    change(program, "UPDATE reports SET document = '{}' WHERE run = :run")
    done = program("log", DONE, "--verify", "--head", head)
    assert done.returncode == ExitCode.UNREADABLE
    assert "the report was changed" in done.stderr


@pytest.mark.parametrize("how", ["head", "anchors"])
def test_a_run_that_was_removed_as_a_whole_is_missed(program: Program, tmp_path: Path, how: str) -> None:
    head, anchors = head_of(program), tmp_path / "anchors"
    anchors.write_text(f"{DONE} {head} 2026-11-29T14:05:00Z\n")
    given = ("--head", head) if how == "head" else ("--anchors", str(anchors))
    assert program("log", DONE, "--verify", *given).returncode == 0
    change(program, "DELETE FROM runs WHERE id = :run")
    done = program("log", DONE, "--verify", *given)
    assert done.returncode == ExitCode.UNREADABLE
    assert "was removed after its head was noted" in done.stderr
    assert program("log", DONE, "--verify").returncode == ExitCode.NOT_FOUND


def test_an_anchor_file_that_cannot_be_read_is_an_error(program: Program, tmp_path: Path) -> None:
    done = program("log", DONE, "--verify", "--anchors", str(tmp_path / "none"))
    assert done.returncode == ExitCode.USAGE
    assert "cannot read" in done.stderr
