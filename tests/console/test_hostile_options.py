"""Options, environments and files that nobody should give: each ends in words and its own exit code."""

import json
import os
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest
from stored_runs import DONE, HANG, Program


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--db", "{}/pipe"], 8, "is no file"),
        (["--db", ""], 8, "is no file"),
        (["--db", "a" * 5000], 8, "choose another path with --db"),
        (["--db", "mysql://user:hunter2@host/runs"], 2, "none of PostgreSQL"),
        (["--max-cost", "NaN"], 2, "out of range"),
        (["--max-cost", "sNaN"], 2, "out of range"),
    ],
)
def test_what_no_option_can_be(
    bare: Program, tmp_path: Path, options: list[str], code: int, said: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = bare.command("list", *(option.format(tmp_path) for option in options))
    done = subprocess.run(
        command, env=bare.environment(), capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("columns", ["9" * 30, "0", "-5", "²", "wide"])
def test_a_width_that_is_none(program: Program, columns: str) -> None:
    assert program("list", COLUMNS=columns).returncode == 0


def test_a_number_or_an_id_beyond_all_bounds(program: Program) -> None:
    assert program("log", "-", "--after", "9" * 30).returncode == 2
    unknown = program("show", "a" * 100_000)
    assert unknown.returncode == 9
    assert len(unknown.stderr) < 200


def test_a_report_goes_through_a_pipe_and_leaves_it_in_place(program: Program, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        done = program("report", DONE, "--format", "md", "-o", str(pipe))
        if done.returncode:
            reader.kill()
        assert reader.communicate(timeout=HANG)[0].startswith("# "), done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_report_replaces_what_a_link_points_at(program: Program, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert program("report", DONE, "-o", str(tmp_path / "link")).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert "CONCLUSION" in (tmp_path / "real").read_text("utf-8")


@pytest.mark.parametrize("name", ["absent/report.md", "a" * 255, "a" * 256])
def test_a_report_that_cannot_be_written_or_has_a_long_name(
    program: Program, tmp_path: Path, name: str
) -> None:
    done = program("report", DONE, "-o", str(tmp_path / name))
    if len(name) == 255:
        assert done.returncode == 0
    else:
        assert done.returncode == 2
        assert "cannot be written" in done.stderr


@pytest.mark.parametrize("document", ["[", "[]", "7"])
def test_a_damaged_report_is_told(program: Program, document: str) -> None:
    with sqlite3.connect(program.database) as connection:
        connection.execute("UPDATE reports SET document = ?", (document,))
    connection.close()
    done = program("report", DONE)
    assert done.returncode == 11
    assert "is damaged" in done.stderr


def test_a_cache_that_cannot_be_written(bare: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = bare("demo", XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 8
    assert "XDG_CACHE_HOME" in done.stderr


@pytest.mark.parametrize(
    "alert",
    [
        '{"text": "x", "n": ' + "9" * 5000 + "}",
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"text": "x", ',
    ],
)
def test_an_alert_that_is_no_json(bare: Program, tmp_path: Path, alert: str) -> None:
    (tmp_path / "alert.json").write_text(alert, "utf-8")
    done = bare("run", "--case", str(tmp_path), "--alert", str(tmp_path / "alert.json"))
    assert done.returncode == 2
    assert "JSON" in done.stderr


def test_a_question_that_is_too_long_is_named(bare: Program, tmp_path: Path) -> None:
    window = {"start": "2024-05-01T13:30:00Z", "end": "2024-05-01T14:30:00Z"}
    (tmp_path / "incident.json").write_text(json.dumps({"id": "a", "window": window}), "utf-8")
    done = bare("run", "q" * 30_000, "--case", str(tmp_path), "-q")
    assert done.returncode == 2
    assert "question: String should have at most 20000 characters" in done.stderr
