"""The commands that read, as a program: screens, JSON, exit codes, and hostile text."""

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from stored_runs import DONE, FORK, STOPPED, Program

from opsleuth.console import terminal_text as texts

SCREENS = (
    ["list"],
    ["list", "--tree"],
    ["show", STOPPED],
    ["show", DONE, "--full"],
    ["log", STOPPED],
    ["evidence", STOPPED],
    ["evidence", STOPPED, "E1"],
    ["report", DONE],
    ["report", DONE, "--full"],
    ["report", DONE, "--format", "md"],
)
ACTING = {"Cc", "Zl", "Zp"}


def acting(screen: str) -> set[str]:
    """Characters that would act on a terminal or reorder a line."""
    bidi = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    return {c for c in screen if c != "\n" and (unicodedata.category(c) in ACTING or c in bidi)}


@pytest.mark.parametrize("command", SCREENS, ids=" ".join)
def test_hostile_text_is_shown_harmless_and_complete(program: Program, command: list[str]) -> None:
    done = program(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert not acting(done.stdout)
    if STOPPED in command or "list" in command:
        assert "[/db]" in done.stdout
        assert r"\u202eevil" in done.stdout
        assert "订单服务" in done.stdout


@pytest.mark.parametrize("command", SCREENS[:8], ids=" ".join)
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_older_consoles_get_what_they_can_print(program: Program, command: list[str], encoding: str) -> None:
    done = program(*command, PYTHONIOENCODING=encoding, COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_list_is_aligned_in_cells(program: Program, columns: str) -> None:
    lines = program("list", COLUMNS=columns).stdout.splitlines()
    assert max(map(texts.measure_width, lines)) <= int(columns)
    at = texts.measure_width(lines[0].partition("QUESTION")[0])
    for line in lines[1:4]:
        assert line[at - 2 : at] == "  "
        assert line[at] != " "


def test_list_marks_the_interrupted_run_and_the_fork(program: Program) -> None:
    lines = program("list", "--tree").stdout.splitlines()
    ids = [line.split()[0] if not line.startswith(" └") else f"└{line.split()[1]}" for line in lines[1:4]]
    assert ids == [DONE, STOPPED, f"└{FORK}"]
    assert "interrupted" in lines[2]
    assert lines[4] == f"next: opsleuth resume {FORK}"


def test_list_as_json(program: Program) -> None:
    document = json.loads(program("list", "--json").stdout)
    assert [run["id"] for run in document["runs"]] == [FORK, DONE, STOPPED]
    assert document["runs"][2]["status"] == "interrupted"
    assert document["warnings"] == []
    assert json.loads(program("--json", "list", "--status", "paused").stdout)["runs"][0]["id"] == FORK
    assert len(json.loads(program("list", "--json", "--limit", "1").stdout)["runs"]) == 1


def test_options_are_accepted_before_and_after_the_command(program: Program) -> None:
    assert program("--json", "show", DONE).stdout == program("show", DONE, "--json").stdout
    assert program("--tz", "UTC", "show", "--tz", "Asia/Tokyo", DONE).stdout.count("JST") > 0
    assert program("show", DONE, OPSLEUTH_TZ="Asia/Tokyo").stdout.count("JST") > 0


def test_a_corrupt_row_costs_one_warning(program: Program) -> None:
    with sqlite3.connect(program.database) as database:
        database.execute("UPDATE runs SET status = 'gone', cost = 'much' WHERE id = ?", (STOPPED,))
    database.close()
    done = program("list")
    assert done.returncode == 0
    assert DONE in done.stdout
    assert FORK in done.stdout
    assert done.stderr.count("warning") == 1
    assert STOPPED in done.stderr
    document = json.loads(program("list", "--json").stdout)
    assert len(document["runs"]) == 2
    assert len(document["warnings"]) == 1


@pytest.mark.parametrize(
    "command",
    [["show"], ["log"], ["evidence"], ["report"], ["resume"], ["log", "--follow"], ["log", "--verify"]],
    ids=" ".join,
)
def test_an_unknown_or_ambiguous_run_is_not_found(program: Program, command: list[str]) -> None:
    before = program.database.read_bytes()
    unknown = program(*command, "inv-20261129-7k3e")
    assert (unknown.returncode, unknown.stdout) == (9, "")
    assert DONE in unknown.stderr
    ambiguous = program(*command, "inv-2026")
    assert (ambiguous.returncode, ambiguous.stdout) == (9, "")
    assert all(run in ambiguous.stderr for run in (DONE, STOPPED, FORK))
    assert program.database.read_bytes() == before


def test_any_beginning_and_a_dash_name_a_run(program: Program) -> None:
    assert (
        program("show", "7k").stdout
        == program("show", DONE).stdout
        == program("show", "inv-20261129-7").stdout
    )
    assert f"run         {FORK}" in program("show", "-").stdout


def test_nothing_stored_yet(bare: Program) -> None:
    empty = bare("list")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "opsleuth demo" in empty.stderr
    assert json.loads(bare("list", "--json").stdout) == {"runs": [], "warnings": []}
    assert bare("show", "-").returncode == 9
    assert bare("report").returncode == 9
    assert not bare.database.parent.exists()


def test_a_file_that_is_no_database(bare: Program, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_text("this is a letter, not a database\n" * 40)
    done = bare("list", "--db", str(other))
    assert (done.returncode, done.stdout) == (11, "")
    assert str(other) in done.stderr
    assert "--db" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_log_is_what_is_stored(program: Program) -> None:
    rows = json.loads(program("log", DONE, "--json").stdout)["events"]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["type"] == "run.started"
    assert rows[-1]["data"]["exit_code"] == 0
    some = json.loads(program("log", DONE, "--json", "--type", "tool.", "--after", "4").stdout)["events"]
    assert some == [row for row in rows if row["type"].startswith("tool.") and row["seq"] > 4]
    assert len(program("log", DONE).stdout.splitlines()) == len(rows)
    followed = program("log", DONE, "--follow", "--json").stdout.splitlines()
    assert [json.loads(line) for line in followed] == rows


def test_a_changed_log_is_found_out(program: Program) -> None:
    assert program("log", DONE, "--verify").returncode == 0
    with sqlite3.connect(program.database) as database:
        database.execute(
            """UPDATE events SET data = '{"reason":"nothing"}' WHERE run = ? AND seq = 2""", (DONE,)
        )
    database.close()
    found = program("log", DONE, "--verify")
    assert (found.returncode, found.stdout) == (11, "")
    assert "line 2" in found.stderr


def test_raw_evidence_has_the_stored_hash(program: Program) -> None:
    document = json.loads(program("evidence", STOPPED, "E1", "--json").stdout)
    raw = subprocess.run(
        program.command("evidence", STOPPED, "e1", "--raw"),
        env=program.environment(),
        capture_output=True,
        check=True,
    )
    assert hashlib.sha256(raw.stdout).hexdigest() == document["sha256"]
    assert json.loads(raw.stdout) == document["record"]
    assert program("evidence", STOPPED, "E1", "--query").stdout == "text ~ pool\n"
    missing = program("evidence", STOPPED, "E9")
    assert missing.returncode == 9
    assert "E1" in missing.stderr


def test_report_forms(program: Program, tmp_path: Path, document: dict[str, Any]) -> None:
    assert json.loads(program("report", DONE, "--format", "json").stdout) == document
    assert program("report", DONE, "--json").stdout == program("report", DONE, "--format", "json").stdout
    target = tmp_path / "report.md"
    written = program("report", DONE, "-o", str(target))
    assert (written.returncode, written.stdout) == (0, "")
    assert target.read_text("utf-8") == program("report", DONE, "--format", "md").stdout
    refused = program("report", DONE, "-o", str(tmp_path / "none" / "report.md"))
    assert refused.returncode == 2
    assert "none" in refused.stderr
    unfinished = program("report", STOPPED)
    assert unfinished.returncode == 9
    assert "opsleuth resume" in unfinished.stderr


def test_a_report_is_the_same_in_every_zone_of_the_machine(program: Program) -> None:
    assert (
        program("report", DONE, TZ="Asia/Tokyo").stdout
        == program("report", DONE, TZ="America/New_York").stdout
    )


@pytest.mark.parametrize(
    "command", [["list"], ["log", DONE], ["report", DONE, "--format", "json"]], ids=" ".join
)
def test_a_closed_pipe_ends_silently(program: Program, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            program.command(*command),
            env=program.environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_closed_stdout_is_no_error(program: Program) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *program.command("list")],
        env=program.environment(),
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_colour_only_where_it_is_wanted(program: Program) -> None:
    ink = re.compile(r"\x1b\[[0-9;]*m")
    assert not ink.search(program("list").stdout)
    colored = program("list", "--color", "always").stdout
    assert ink.search(colored)
    assert ink.sub("", colored) == program("list").stdout
    assert not ink.search(program("list", "--color", "always", "--plain").stdout)
