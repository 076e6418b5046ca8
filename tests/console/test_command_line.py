"""The command line itself: usage, exit codes, what may be loaded, and what never happens."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from package_path import PACKAGE_PATH
from stored_runs import DONE, REPOSITORY, STOPPED, Program

from opsleuth.cli import cli
from opsleuth.console.options import CommandEntry
from opsleuth.state.run_status import EXIT_CODE_MEANING, ExitCode

FRAMEWORK = {"langgraph", "langchain_core", "langchain_openai", "httpx", "prompt_toolkit"}
HEAVY = FRAMEWORK | {"pydantic", "asyncio"}
SERVICE = {"uvicorn", "fastapi", "procrastinate", "psycopg", "mcp"}
READING = (
    ["approvals"],
    ["list"],
    ["show", DONE],
    ["log", DONE],
    ["report", DONE],
    ["evidence", STOPPED, "E1"],
)
LIGHT = (["--help"], ["--version"], ["nonsense"], ["version"], ["exit-codes"], ["run", "--help"])
PROBE = """
import sys
from opsleuth.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded(
    program: Program, command: list[str], probe: str = PROBE, asked: Mapping[str, str] = MappingProxyType({})
) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", probe, *command],
        env=program.environment(**asked),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ast.literal_eval(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_loads_no_framework(program: Program, command: list[str]) -> None:
    assert not loaded(program, command) & HEAVY


@pytest.mark.parametrize("command", LIGHT, ids=" ".join)
def test_help_and_version_load_the_command_line_alone(program: Program, command: list[str]) -> None:
    assert not loaded(program, command) & (HEAVY | {"rich", "sqlite3", "json"})


@pytest.mark.slow
def test_exit_codes_are_those_of_the_code(bare: Program) -> None:
    table = json.loads(bare("exit-codes", "--json").stdout)["exit_codes"]
    assert {row["code"]: row["meaning"] for row in table} == {
        int(code): text for code, text in EXIT_CODE_MEANING.items()
    }
    lines = bare("exit-codes").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [str(int(code)) for code in EXIT_CODE_MEANING]


def test_exit_codes_are_those_of_the_documentation() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (.+) \|$", (REPOSITORY / "docs" / "exit-codes.md").read_text("utf-8"), re.MULTILINE
    )
    assert {int(code): text for code, text in rows} == {
        int(code): text for code, text in EXIT_CODE_MEANING.items()
    }


LOAD_ALL = """
import sys
from opsleuth.cli import cli
for name in cli.commands:
    cli.commands[name]
print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def test_the_code_of_every_command_loads_without_the_framework(program: Program) -> None:
    """What `--help` of a command loads is its file; what is heavy is imported where the command runs."""
    assert not loaded(program, [], LOAD_ALL) & (HEAVY | SERVICE)


@pytest.mark.parametrize("words", ["opsleuth ", "opsleuth lo"])
def test_completing_a_command_loads_the_command_line_alone(program: Program, words: str) -> None:
    asked = {"_OPSLEUTH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "1"}
    assert not loaded(program, [], asked=asked) & (HEAVY | {"rich", "sqlite3", "json"})


@pytest.mark.parametrize("words", ["opsleuth resume ", "opsleuth run --name x "])
def test_completing_a_run_loads_no_framework(program: Program, words: str) -> None:
    count = str(len(words.split(" ")) - 1)
    asked = {"_OPSLEUTH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count}
    assert not loaded(program, [], asked=asked) & HEAVY


def test_without_a_word_the_commands_fit_a_screen(bare: Program) -> None:
    shown = bare().stderr
    assert len(shown.splitlines()) <= 23
    assert max(map(len, shown.splitlines())) <= 80
    listed = set(re.findall(r"[a-z-]+", shown))
    assert {entry.name for entry in cli.entries} <= listed
    assert "opsleuth --help" in shown


def summary(entry: CommandEntry) -> str:
    return entry.load().get_short_help_str(limit=1000)


@pytest.mark.parametrize("entry", cli.entries, ids=lambda e: e.name)
def test_the_table_of_commands_has_the_name_and_the_help_of_each(entry: CommandEntry) -> None:
    assert (entry.name, entry.summary) == (entry.load().name, summary(entry))


def test_a_command_that_is_mistyped_is_answered_with_those_like_it(bare: Program) -> None:
    done = bare("shwo")
    assert done.returncode == 2
    assert "No such command 'shwo'. Did you mean 'show'?" in done.stderr


def modules_imported_late(path: Path) -> set[str]:
    """Modules that are imported inside of functions of a file."""
    found: set[str] = set()
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    found |= {module_of(str(node.module), alias.name) for alias in node.names}
                elif isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
    return found


def module_of(package: str, name: str) -> str:
    """The module that `from package import name` loads: of ours the name may be one."""
    place = PACKAGE_PATH / Path(*package.split("."))
    return f"{package}.{name}" if (place / f"{name}.py").exists() or (place / name).is_dir() else package


def own_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(("opsleuth", *(part for part in parts if part != "__init__")))


LATE = [
    path
    for path in [REPOSITORY / "cli.py", *sorted((REPOSITORY / "console").rglob("*.py"))]
    if modules_imported_late(path)
]


@pytest.mark.parametrize("path", LATE, ids=own_name)
def test_an_import_inside_a_function_saves_the_module_from_loading_it(path: Path) -> None:
    """Where the file loads that module anyhow, the import belongs at its top."""
    code = f"import sys, {own_name(path)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded_anyhow = set(done.stdout.split())
    assert own_name(path) in loaded_anyhow
    assert sorted(modules_imported_late(path) & loaded_anyhow) == []


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


def test_a_time_without_a_zone_is_local_and_shown_in_utc(bare: Program) -> None:
    done = bare("list", "--since", "2026-11-29T13:40", TZ="Asia/Tokyo")
    assert done.returncode == 0
    assert "2026-11-29 13:40 JST (+09:00)" in done.stderr
    assert "2026-11-29 04:40Z" in done.stderr


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
        "import opsleuth.console.commands.show_run as r, opsleuth.cli as c\n"
        "def broken(*_, **__): raise RuntimeError('token=abcd1234efgh5678ijkl \\x1b[31m')\n"
        "r.print_run_summary = broken\n"
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
