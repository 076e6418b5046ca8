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
        (["--db", "{}/pipe"], 8, "is not a file"),
        (["--db", ""], 8, "is not a file"),
        (["--db", "a" * 5000], 8, "choose another path with --db"),
        (["--db", "mysql://user:hunter2@host/runs"], 2, "not of PostgreSQL"),
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


WRITERS = [("report", DONE, "--format", "md"), ("export", DONE)]


@pytest.mark.parametrize("command", WRITERS)
def test_what_goes_through_a_pipe_leaves_it_in_place(
    program: Program, tmp_path: Path, command: tuple[str, ...]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        done = program(*command, "-o", str(pipe))
        if done.returncode:
            reader.kill()
        assert reader.communicate(timeout=HANG)[0].startswith((b"# ", b"\x1f\x8b")), done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("command", WRITERS)
def test_what_is_written_replaces_what_a_link_points_at(
    program: Program, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert program(*command, "-o", str(tmp_path / "link")).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_size > 0
    assert [path for path in tmp_path.iterdir() if path.suffix == ".part"] == []


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


def test_a_cache_that_cannot_be_written_fails_no_run(bare: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    done = bare("demo", XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path / "temporary"))
    assert done.returncode == 0, done.stderr
    assert f"the incident is kept in {tmp_path}/temporary/opsleuth-" in done.stderr


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


@pytest.mark.parametrize(
    "command",
    [["run", "--case", "{}"], ["policy", "check", "{}"], ["eval", "run", "{}"], ["eval", "run", "builtin", "--only", "builtin-01", "-o", "{}"]],
)  # fmt: skip
def test_a_path_that_the_machine_refuses_is_told(bare: Program, command: list[str]) -> None:
    done = bare(*(part.format("a" * 5000) for part in command))
    assert done.returncode == 8
    assert "cannot be used: File name too long" in done.stderr
    assert len(done.stderr) < 500


def test_a_home_that_nobody_has(bare: Program, tmp_path: Path) -> None:
    (tmp_path / ".config" / "opsleuth").mkdir(parents=True)
    (tmp_path / ".config" / "opsleuth" / "config.toml").write_text('[options]\ndb = "~no-such-user/x.db"\n')
    done = bare("config", "show", OPSLEUTH_DB="")
    assert (done.returncode, "no home folder" in done.stderr) == (8, True)


@pytest.mark.parametrize("option", ["db", "policy"])
def test_a_path_with_a_zero_byte(bare: Program, tmp_path: Path, option: str) -> None:
    (tmp_path / ".config" / "opsleuth").mkdir(parents=True)
    (tmp_path / ".config" / "opsleuth" / "config.toml").write_text(f'[options]\n{option} = "a\\u0000b"\n')
    done = bare("config", "show", OPSLEUTH_DB="")
    assert (done.returncode, f"[options] {option}" in done.stderr) == (8, True)


def test_a_configuration_without_an_end_of_brackets(bare: Program, tmp_path: Path) -> None:
    (tmp_path / ".config" / "opsleuth").mkdir(parents=True)
    (tmp_path / ".config" / "opsleuth" / "config.toml").write_text("a = " + "[" * 50_000)
    done = bare("config", "show")
    assert (done.returncode, "not valid TOML" in done.stderr) == (8, True)


@pytest.mark.parametrize(("handed", "said"), [(None, "stdin is closed"), (b"\xff\xfb", "not UTF-8 text")])
@pytest.mark.parametrize("command", [["note", DONE, "-"], ["run", "--alert", "-"]])
def test_a_stdin_that_holds_no_text(
    program: Program, command: list[str], handed: bytes | None, said: str
) -> None:
    shell = ["sh", "-c", 'exec "$@" <&-', "sh"] if handed is None else []
    done = subprocess.run(
        [*shell, *program.command(*command)],
        env=program.environment(),
        input=handed,
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    assert (done.returncode, said in done.stderr.decode()) == (2, True), done.stderr


def test_an_alert_without_an_end(bare: Program) -> None:
    done = bare("run", "--alert", "/dev/zero")
    assert (done.returncode, "too large" in done.stderr) == (2, True)


NESTED = "[" * 20_000


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["tools", "test", "time_now", "--args", NESTED], 2, "--args is not JSON"),
        (["tools", "test", ""], 2, "that is not a call"),
        (["policy", "explain", ""], 2, "that is not a call"),
        (["policy", "explain", "service_restart", f"service={NESTED}"], 2, "service_restart"),
        (["policy", "explain", "service_restart", "service=" + "9" * 5000], 2, "service_restart"),
        (["policy", "explain", '{"tool": 1}'], 2, "that is not a call"),
        (["eval", "add", DONE, "--expect", NESTED], 2, "--expect is not JSON"),
        (["eval", "misses", "{}"], 2, "not a results file"),
        (["eval", "compare", "{}", "{}"], 2, "not a results file"),
        (["demo", "--replay", "{}"], 8, "cannot be read"),
    ],
)
def test_json_that_is_nested_beyond_reading_or_is_no_call(
    program: Program, tmp_path: Path, command: list[str], code: int, said: str
) -> None:
    (tmp_path / "nested").write_text(NESTED)
    done = program(*(part.replace("{}", str(tmp_path / "nested")) for part in command))
    assert done.returncode == code, done.stderr
    assert said in done.stderr + done.stdout
