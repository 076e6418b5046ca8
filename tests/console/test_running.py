"""Whole investigations as a program: the built-in incident, its screens, its stream, its stops."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from stored_runs import HANG, Program

from opsleuth.console import terminal_text as texts
from opsleuth.console.event_lines import LAST
from opsleuth.console.run_attempt import render_last_line
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.run_status import ExitCode, Status, StopReason

FRAMEWORK = ("langgraph", "langchain_core", "asyncio")


@pytest.fixture
def case(tmp_path: Path) -> str:
    return str(write_case(tmp_path / "incident"))


def events_of(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


def test_demo_prints_a_report_whose_evidence_opens(bare: Program) -> None:
    done = bare("demo")
    assert done.returncode == 0, done.stderr
    first, *_ = done.stderr.splitlines()
    assert first.startswith("run inv-")
    run = first.split()[1]
    assert done.stdout.startswith("orders-db: a slow database statement, set off by deploy 2.14.0")
    assert f"opsleuth report {run} --full" in done.stderr
    report = json.loads(bare("report", run, "--json").stdout)
    assert report["verdict"] == "cause_found"
    cited = {e for claim in report["claims"] for e in claim["evidence"]}
    assert cited
    for evidence in cited:
        opened = bare("evidence", run, evidence)
        assert opened.returncode == 0
        assert evidence in opened.stdout


@pytest.mark.slow
def test_the_stream_is_json_even_with_warnings_forced_on(bare: Program, case: str) -> None:
    done = bare("run", "--case", case, "--json", PYTHONWARNINGS="always")
    events = events_of(done.stdout)
    assert done.returncode == 0
    assert events[0]["type"] == "run.started"
    assert [event["type"] for event in events if event["type"] in LAST] == [events[-1]["type"]]
    last = events[-1]["data"]
    assert (last["status"], last["stop_reason"], last["exit_code"]) == ("completed", "concluded", 0)
    stored = json.loads(bare("log", "-", "--json").stdout)["events"]
    assert stored == events
    assert bare("log", "-", "--verify").returncode == 0


def test_a_limit_leaves_a_partial_report_and_resume_goes_on(bare: Program, case: str) -> None:
    stopped = bare("--max-steps", "1", "run", "--case", case)
    assert stopped.returncode == 6
    assert "turn limit" in stopped.stderr
    assert "opsleuth resume inv-" in stopped.stderr
    assert bare("resume", "-").returncode == 6
    resumed = bare("resume", "-", "--max-turns", "20", "--json")
    assert resumed.returncode == 0
    assert events_of(resumed.stdout)[0]["type"] == "run.resumed"
    again = bare("resume", "-")
    assert again.returncode == 0
    assert "concluded" in again.stderr


def test_without_a_run_resume_asks_or_says_how_to_name_one(program: Program) -> None:
    unasked = program("resume")
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "opsleuth list" in unasked.stderr
    python, *arguments = program.command("resume", "--plain")
    child = pexpect.spawn(
        python,
        arguments,
        env=program.environment(TERM="dumb"),
        encoding="utf-8",
        timeout=HANG,
        dimensions=(24, 80),
    )
    child.expect("1  inv-20261129-9x2c  paused")
    child.expect("resume which")
    child.sendline("7")
    child.expect("resume which")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_quiet_and_plain(bare: Program) -> None:
    quiet = bare("demo", "-q")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert quiet.stdout.startswith("orders-db: a slow database statement")
    plain = bare("--plain", "demo")
    assert "\nturn 1, act, tool topology, " in plain.stderr
    assert plain.stdout.startswith("headline: orders-db: ")
    assert "\nwhy: " in plain.stdout


def test_stdout_carries_the_report_alone(bare: Program, case: str) -> None:
    told = bare("run", "--case", case)
    stored = bare("report", "-")
    assert told.returncode == 0
    assert told.stdout == stored.stdout
    assert " act " in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize("question", ["exit", "How do I quit this incident?"])
def test_a_question_with_an_idle_pipe_on_stdin_starts_at_once(
    bare: Program, case: str, question: str
) -> None:
    with subprocess.Popen(
        bare.command("run", question, "--case", case),
        env=bare.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as idle:
        assert idle.stdout is not None
        assert idle.stderr is not None
        assert question in idle.stderr.readline()
        _, report = idle.stderr.read(), idle.stdout.read()
        assert "\nWHY " in report
        assert idle.wait(HANG) == ExitCode.OK


@pytest.mark.parametrize("live", [False, True])
def test_a_start_is_announced_before_anything_heavy_is_loaded(
    bare: Program, case: str, tmp_path: Path, *, live: bool
) -> None:
    config = tmp_path / "conf" / "opsleuth" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[environments.prod.sources.j]\nkind = "journal"\n')
    # A case is looked into first, which takes pydantic: no start is announced for a broken one.
    heavy = (*FRAMEWORK, "pydantic") if live else FRAMEWORK
    probe = f"""
import io, os, sys
class Watched(io.TextIOWrapper):
    def isatty(self):
        return True

    def write(self, text):
        if "starting: " in text:
            print([m for m in {heavy} if m in sys.modules], flush=True)
            os._exit(0)
        return super().write(text)
sys.stderr = Watched(sys.stderr.buffer, encoding="utf-8")
from opsleuth.cli import main
main(sys.argv[1:])
"""
    done = subprocess.run(
        [sys.executable, "-c", probe, "run", *(["why is it slow?"] if live else ["--case", case])],
        env=bare.environment(XDG_CONFIG_HOME=str(tmp_path / "conf"), TERM="xterm"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.slow
def test_an_alert_comes_from_a_file_or_from_stdin(bare: Program, case: str, tmp_path: Path) -> None:
    alert = {
        "text": "orders-api is slow",
        "service": "orders-api",
        "fired_at": "2026-03-03T14:12:00Z",
        "cluster": "eu",
    }
    (tmp_path / "alert.json").write_text(json.dumps(alert))
    assert bare("run", "--case", case, "--alert", str(tmp_path / "alert.json")).returncode == 0
    piped = subprocess.run(
        bare.command("run", "--case", case, "--alert", "-"),
        env=bare.environment(),
        input="orders-api answers slowly",
        capture_output=True,
        text=True,
        check=False,
    )
    assert piped.returncode == ExitCode.OK
    report = json.loads(bare("report", "--json").stdout)
    assert report["alert"]["text"] == "orders-api answers slowly"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("", "empty"),
        ('{"service": "x"}', "text"),
        ('{"text": "x", "fired_at": "noon"}', "fired_at"),
    ],
)
def test_an_alert_that_cannot_be_read(bare: Program, case: str, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "alert").write_text(text)
    done = bare("run", "--case", case, "--alert", str(tmp_path / "alert"))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(bare("list", "--json").stdout)["runs"] == []


@pytest.mark.parametrize(("folder", "code"), [("none", ExitCode.USAGE), ("empty", ExitCode.CONFIG)])
def test_a_folder_that_is_no_case(bare: Program, tmp_path: Path, folder: str, code: ExitCode) -> None:
    (tmp_path / "empty").mkdir()
    done = bare("run", "why?", "--case", str(tmp_path / folder))
    assert done.returncode == code
    assert str(tmp_path / folder) in done.stderr
    assert "run inv-" not in done.stderr
    assert json.loads(bare("list", "--json").stdout)["runs"] == []


def test_a_window_that_ends_before_it_begins(bare: Program, case: str) -> None:
    done = bare("run", "--case", case, "--since", "2026-03-03T14:00Z", "--until", "2026-03-03T13:00Z")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--since" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["exec", "trap '' INT; exec"], ids=["in front", "in the background"])
def test_a_reader_that_goes_away_leaves_a_run_that_can_be_resumed(
    bare: Program, case: str, shell: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            ["sh", "-c", f'{shell} "$@"', "sh", *bare.command("run", "--case", case, "--json")],
            env=bare.environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    (run,) = json.loads(bare("list", "--json").stdout)["runs"]
    assert run["status"] == "interrupted"
    assert bare("resume", run["id"]).returncode == 0


def test_ctrl_c_as_soon_as_the_id_is_shown_leaves_a_run_that_can_be_resumed(bare: Program, case: str) -> None:
    with subprocess.Popen(
        bare.command("run", "--case", case),
        env=bare.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        word, run, *_ = running.stderr.readline().split()
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
        assert (word, running.wait(HANG)) == ("run", 130)
    assert "Traceback" not in said
    assert f"Resume: opsleuth resume {run}" in said
    assert bare("resume", run).returncode == ExitCode.OK


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_the_status_line_leaves_no_trace(bare: Program, columns: int) -> None:
    python, *arguments = bare.command("demo")
    child = pexpect.spawn(
        python,
        arguments,
        env=bare.environment(TERM="xterm", NO_COLOR="1"),
        dimensions=(40, columns),
        encoding="utf-8",
        timeout=HANG,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    lines = [line.rpartition("\r\x1b[K")[2] for line in str(child.before).replace("\r\n", "\n").split("\n")]
    report = next(i for i, line in enumerate(lines) if line.startswith("WHY "))
    assert max(map(texts.measure_width, lines[: report + 20])) <= columns
    assert not [line for line in lines if "\x1b" in line or line.startswith("turn ")]
    assert any(line.startswith("DO: ") for line in lines[-6:])


def test_a_secret_in_the_question_is_stored_and_shown_nowhere(bare: Program, case: str) -> None:
    secrets = ("hunter2secretPW", "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5")
    done = bare("run", f"why? password={secrets[0]} {secrets[1]}", "--case", case, "--name", secrets[1], "-v")
    stored = b"".join(
        f.read_bytes() for f in bare.database.parent.glob(f"{bare.database.name}*") if f.is_file()
    )
    for secret in secrets:
        assert secret not in done.stdout + done.stderr
        assert secret.encode() not in stored
    assert "why? password=[redacted:password#" in done.stderr


def test_what_is_wrong_with_the_data_is_said_in_the_stream_and_in_the_report(
    bare: Program, case: str
) -> None:
    Path(case, "metrics.csv").write_bytes(b"\x00\xff binary \x1b\n" * 50)
    Path(case, "stranger.txt").touch()
    done = bare("run", "--case", case, "--json")
    said = [event["data"]["message"] for event in events_of(done.stdout) if event["type"] == "warning"]
    assert [text.split(":")[0] for text in said] == ["stranger.txt was ignored", "metrics.csv"]
    assert json.loads(bare("report", "-", "--json").stdout)["warnings"] == said
    assert "DATA        stranger.txt was ignored" in bare("report", "-", "--full").stdout


def test_a_failure_inside_a_run_names_the_log_file() -> None:
    failed = AttemptOutcome(
        "inv-1", Status.FAILED, StopReason.INTERNAL_ERROR, None, ExitCode.INTERNAL, "act: KeyError"
    )
    assert render_last_line(failed, Path("/data/opsleuth.db")) == (
        "failed (internal_error): act: KeyError. The traceback is in /data/errors.log. Resume: opsleuth resume inv-1"
    )


def test_a_case_that_is_no_folder_is_wrong_usage_and_announces_no_run(bare: Program, tmp_path: Path) -> None:
    done = bare("run", "--case", str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "give the one that holds incident.json" in done.stderr


def test_a_service_that_nobody_knows_is_said_to_be_unknown(bare: Program, case: str) -> None:
    done = bare("run", "why is billing slow?", "--case", case)
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert "There is no data on billing" in " ".join(done.stdout.split())
    report = json.loads(bare("report", "--json").stdout)
    assert report["verdict"] == "inconclusive"
    assert "no source has a service of that name" in report["not_available"][0]
    assert "orders-api" in report["not_available"][0]
