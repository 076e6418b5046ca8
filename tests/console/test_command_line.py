"""The command line itself: usage, exit codes, what may be loaded, and what never happens."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from stored_runs import DONE, REPOSITORY, STOPPED, Program

from opsleuth.cli import cli
from opsleuth.state.outcome import MEANING, ExitCode

FRAMEWORK = {"langgraph", "langchain_core", "langchain_openai", "httpx", "prompt_toolkit"}
HEAVY = FRAMEWORK | {"pydantic", "asyncio"}
READING = (["list"], ["show", DONE], ["log", DONE], ["report", DONE], ["evidence", STOPPED, "E1"])
LIGHT = (["--help"], ["version"], ["exit-codes"], ["run", "--help"])
PROBE = """
import sys
from opsleuth.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded(program: Program, command: list[str]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *command],
        env=program.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ast.literal_eval(done.stderr))


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_loads_no_framework(program: Program, command: list[str]) -> None:
    assert not loaded(program, command) & HEAVY


@pytest.mark.parametrize("command", LIGHT, ids=" ".join)
def test_help_and_version_load_the_command_line_alone(program: Program, command: list[str]) -> None:
    assert not loaded(program, command) & (HEAVY | {"rich", "sqlite3", "json"})


def test_exit_codes_are_those_of_the_code(bare: Program) -> None:
    table = json.loads(bare("exit-codes", "--json").stdout)["exit_codes"]
    assert {row["code"]: row["meaning"] for row in table} == {
        int(code): text for code, text in MEANING.items()
    }
    lines = bare("exit-codes").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [str(int(code)) for code in MEANING]


def test_exit_codes_are_those_of_the_documentation() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (.+) \|$", (REPOSITORY / "docs" / "exit-codes.md").read_text("utf-8"), re.MULTILINE
    )
    assert {int(code): text for code, text in rows} == {int(code): text for code, text in MEANING.items()}


def deferred(path: Path) -> set[str]:
    """Modules that are imported inside of functions."""
    found: set[str] = set()
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    names = {f"{node.module}.{alias.name}" for alias in node.names}
                    found |= names if node.module == "opsleuth.console" else {str(node.module)}
                elif isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
    return found


def test_only_what_is_heavy_is_imported_late() -> None:
    late = {
        name
        for path in [REPOSITORY / "cli.py", *(REPOSITORY / "console").rglob("*.py")]
        for name in deferred(path)
    }
    assert late == {
        "asyncio",
        "click.shell_completion",
        "importlib.metadata",
        "mcp",
        "mcp.server",
        "opsleuth.checkpoints.store",
        "opsleuth.console.about",
        "opsleuth.console.config_show",
        "opsleuth.console.approvals",
        "opsleuth.console.doctor",
        "opsleuth.console.dev",
        "opsleuth.console.events",
        "opsleuth.console.failure",
        "opsleuth.console.alert_fetch",
        "opsleuth.console.interruption",
        "opsleuth.console.html.page",
        "opsleuth.console.upkeep",
        "opsleuth.console.option_files",
        "opsleuth.console.lab",
        "opsleuth.console.watch",
        "opsleuth.console.run_settings",
        "opsleuth.console.database",
        "opsleuth.console.output",
        "opsleuth.console.reading",
        "opsleuth.console.rules",
        "opsleuth.console.running",
        "opsleuth.console.mcp_server",
        "opsleuth.console.configured_sources",
        "opsleuth.console.init",
        "opsleuth.console.states",
        "opsleuth.console.stepping",
        "opsleuth.console.steering",
        "opsleuth.console.telemetry",
        "opsleuth.console.terminal",
        "opsleuth.console.tool_commands",
        "opsleuth.evals",
        "opsleuth.graph",
        "opsleuth.graph.decisions",
        "opsleuth.graph.drawing",
        "opsleuth.graph.edits",
        "opsleuth.graph.prepare",
        "opsleuth.graph.session",
        "opsleuth.scenarios.acting",
        "opsleuth.tools.sources.incident",
        "opsleuth.graph.stepping",
        "opsleuth.scenarios.orders",
        "prompt_toolkit",
        "prompt_toolkit.completion",
        "prompt_toolkit.document",
        "prompt_toolkit.history",
        "zoneinfo",
    }


def test_version(bare: Program) -> None:
    assert bare("version").stdout == bare("--version").stdout
    assert bare("version").stdout.startswith("opsleuth ")
    assert json.loads(bare("version", "--json").stdout)["langgraph"]


@pytest.mark.parametrize(
    "command",
    [
        ["nonsense"],
        ["list", "--nonsense"],
        ["show"],
        ["list", "--max-time", "15"],
        ["list", "--max-cost", "-1"],
        ["list", "--max-turns", "0"],
        ["list", "--tz", "Nowhere/Land"],
        ["list", "--since", "2026-11-29T13:40"],
        ["list", "--status", "lost"],
        ["run", "--case", ".", "--since", "yesterday", "why?"],
    ],
    ids=" ".join,
)
def test_wrong_usage(bare: Program, command: list[str]) -> None:
    done = bare(*command)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_time_without_a_zone_shows_both_readings(bare: Program) -> None:
    done = bare("list", "--since", "2026-11-29T13:40", TZ="Asia/Tokyo")
    assert "2026-11-29T13:40:00Z" in done.stderr
    assert "2026-11-29T04:40:00Z" in done.stderr


@pytest.mark.parametrize("question", ["exit", "quit", "How do I quit this?", "--", "list"])
def test_a_question_is_a_question_and_without_a_source_says_so(bare: Program, question: str) -> None:
    done = bare("run", "--", question)
    assert (done.returncode, done.stdout) == (8, "")
    assert "--case" in done.stderr
    assert "opsleuth demo" in done.stderr
    assert not bare.database.exists()


def test_an_idle_pipe_on_stdin_is_not_waited_for(bare: Program) -> None:
    with subprocess.Popen(
        bare.command("run", "why?"),
        env=bare.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as idle:
        assert idle.wait(timeout=60) == 8


def test_an_internal_error_goes_to_the_log_file(program: Program, tmp_path: Path) -> None:
    breaking = (
        "import opsleuth.console.reading as r, opsleuth.cli as c\n"
        "def broken(*_, **__): raise RuntimeError('token=abcd1234efgh5678ijkl \\x1b[31m')\n"
        "r.show = broken\n"
        "c.main(['show', '-'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", breaking],
        env=program.environment(XDG_STATE_HOME=str(tmp_path / "state")),
        capture_output=True,
        text=True,
        check=False,
    )
    log = tmp_path / "state" / "opsleuth" / "errors.log"
    assert (done.returncode, done.stdout) == (1, "")
    assert str(log) in done.stderr
    assert "Traceback" not in done.stderr
    kept = log.read_text("utf-8")
    assert "Traceback" in kept
    assert "RuntimeError" in kept
    assert "abcd1234" not in kept
    assert "\x1b" not in kept
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_database_lies_in_the_users_data_folder(bare: Program, tmp_path: Path) -> None:
    done = bare("show", "-", OPSLEUTH_DB="", XDG_DATA_HOME=str(tmp_path / "data"))
    assert str(tmp_path / "data" / "opsleuth" / "opsleuth.db") in done.stderr
    done = bare("show", "-", OPSLEUTH_DB="", XDG_DATA_HOME="relative")
    assert str(tmp_path / ".local" / "share" / "opsleuth" / "opsleuth.db") in done.stderr


def test_the_help_lists_every_command_once_uncut_and_groups_show_only_their_own(program: Program) -> None:
    shown = program("--help").stdout
    assert "\n  opsleuth demo   " in shown
    listed = re.findall(r"^  ([a-z-]+)  +\S", shown[: shown.index("\nOptions:")], re.MULTILINE)
    assert sorted(listed) == sorted(cli.commands)
    assert "..." not in shown.partition("\n")[2]
    group = program("state", "--help").stdout
    assert "--max-turns" not in group
    assert group.rstrip().endswith("Options of all commands: opsleuth --help")


def test_the_global_options_of_a_group_reach_its_commands(program: Program) -> None:
    assert json.loads(program("config", "--json", "show").stdout)


def test_where_nothing_is_configured_the_way_on_is_told(bare: Program, tmp_path: Path) -> None:
    assert "opsleuth init" in bare("doctor").stderr
    folder = tmp_path / ".opsleuth"
    folder.mkdir()
    (folder / "config.toml").write_text('environment = "default"\n')
    asked = subprocess.run(
        bare.command("run", "why?"),
        env=bare.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == ExitCode.CONFIG
    assert f"name one in {folder / 'config.toml'}" in asked.stderr
