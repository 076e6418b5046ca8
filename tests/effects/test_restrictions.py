"""Read-only and policies hold in every command that can act, in processes of their own, wherever they are started."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from opsleuth.state.run_status import ExitCode

pytestmark = pytest.mark.slow

DENY = '[[rule]]\neffect = "deny"\ntool = "service_*"\nreason = "frozen until Monday"\n'
FREE = '[[rule]]\neffect = "allow"\ntool = "service_*"\n'


@dataclass(frozen=True)
class WaitingRun:
    """A copy of a database in which one rollback waits for approval; everything is started in `home`."""

    home: Path
    run: str
    digest: str

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        folders = {
            "XDG_CACHE_HOME": str(self.home.parent / "cache"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "HOME": str(self.home),
        }
        return subprocess.run(
            [sys.executable, "-m", "opsleuth", *arguments],
            env=os.environ | folders | variables,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def approve(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self("approve", self.run, "A1", "--digest", self.digest[:16], *arguments, **variables)

    def effects(self) -> int:
        """How many changes were begun, by this run or a branch of it."""
        (database,) = (self.home / "data").rglob("*.db")
        with sqlite3.connect(database) as connection:
            return int(connection.execute("SELECT count(*) FROM effects").fetchone()[0])

    def policy(self, text: str, name: str = "strict.toml") -> str:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitingRun]:
    home = tmp_path_factory.mktemp("restricted") / "origin"
    home.mkdir()
    begun = WaitingRun(home, "", "")
    waiting = begun("demo", "--act", "--no-input")
    assert waiting.returncode == ExitCode.WAITING, waiting.stderr
    (asked,) = json.loads(begun("approvals", "--json").stdout)["approvals"]
    yield WaitingRun(home, asked["run"], asked["digest"])
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = stat.read_bytes()
        except OSError:
            continue
        if str(home.parent).encode() in command:
            os.kill(int(stat.parent.name), signal.SIGTERM)


@pytest.fixture
def waiting(origin: WaitingRun, request: pytest.FixtureRequest) -> WaitingRun:
    home = origin.home.parent / request.node.name.replace("/", "_")
    shutil.copytree(origin.home, home)
    return WaitingRun(home, origin.run, origin.digest)


@pytest.mark.parametrize("form", ["flag", "variable", "file"])
def test_read_only_approves_nothing(waiting: WaitingRun, form: str) -> None:
    flags, variables = restrict(waiting, form)
    refused = waiting.approve(*flags, **variables)
    assert refused.returncode == ExitCode.USAGE, refused.stderr
    assert "nothing was approved" in refused.stderr
    assert waiting.effects() == 0


@pytest.mark.parametrize("form", ["flag", "variable", "file"])
def test_read_only_holds_when_an_approved_run_is_resumed(waiting: WaitingRun, form: str) -> None:
    assert waiting.approve("--no-resume").returncode == ExitCode.OK
    flags, variables = restrict(waiting, form)
    resumed = waiting("resume", waiting.run, "--no-input", *flags, **variables)
    assert resumed.returncode not in (ExitCode.OK, ExitCode.INTERNAL), resumed.stderr
    assert waiting.effects() == 0
    report = json.loads(waiting("report", waiting.run, "--json").stdout)
    assert report["read_only"] is True
    waiting("resume", waiting.run, "--no-input")  # it was promised to this run: it stays so
    assert waiting.effects() == 0


def test_read_only_holds_in_the_stepper(waiting: WaitingRun) -> None:
    script = waiting.home / "commands"
    script.write_text(f"approve A1 --digest {waiting.digest[:16]}\nc\n")
    waiting("step", waiting.run, "--commands", str(script), "--read-only")
    assert waiting.effects() == 0


@pytest.mark.parametrize("go_on", [True, False])
def test_read_only_holds_in_a_branch(waiting: WaitingRun, *, go_on: bool) -> None:
    assert waiting.approve("--no-resume").returncode == ExitCode.OK
    made = waiting("fork", f"{waiting.run}@head", "--read-only", "--no-input", *(["--run"] if go_on else []))
    assert made.returncode != ExitCode.INTERNAL, made.stderr
    branch = made.stdout.split()[0]
    waiting("resume", branch, "--no-input")
    for asked in json.loads(waiting("approvals", branch, "--json").stdout)["approvals"]:
        waiting("approve", branch, asked["id"], "--digest", asked["digest"][:16])
    assert waiting.effects() == 0


@pytest.mark.parametrize("form", ["flag", "variable", "user", "project"])
@pytest.mark.parametrize("command", ["resume", "approve", "fork"])
def test_a_policy_holds(waiting: WaitingRun, form: str, command: str) -> None:
    flags: list[str] = []
    variables: dict[str, str] = {}
    path = waiting.policy(
        DENY,
        {"user": "config/opsleuth/policy.toml", "project": ".opsleuth/policy.toml"}.get(form, "strict.toml"),
    )
    if form == "flag":
        flags = ["--policy", path]
    elif form == "variable":
        variables = {"OPSLEUTH_POLICY": path}
    if command == "approve":
        done = waiting.approve(*flags, **variables)
    elif command == "resume":
        assert waiting.approve("--no-resume").returncode == ExitCode.OK
        done = waiting("resume", waiting.run, "--no-input", *flags, **variables)
    else:
        done = waiting("fork", f"{waiting.run}@head", "--run", "--no-input", *flags, **variables)
    assert done.returncode != ExitCode.INTERNAL, done.stderr
    assert waiting.effects() == 0
    if command != "fork":
        assert done.returncode == ExitCode.DENIED
        assert "frozen until Monday" in done.stdout + done.stderr


def test_a_policy_given_with_an_answer_stays_with_the_run(waiting: WaitingRun) -> None:
    path = waiting.policy(DENY)
    assert waiting.approve("--no-resume", "--policy", path).returncode == ExitCode.OK
    resumed = waiting("resume", waiting.run, "--no-input")
    assert (resumed.returncode, waiting.effects()) == (ExitCode.DENIED, 0)


@pytest.mark.parametrize("form", ["read-only", "policy", "policy that is emptied"])
def test_a_restriction_given_while_the_run_waits_stays_with_it(waiting: WaitingRun, form: str) -> None:
    path = waiting.policy(DENY)
    flags = ["--read-only"] if form == "read-only" else ["--policy", path]
    assert waiting("resume", waiting.run, "--no-input", *flags).returncode == ExitCode.WAITING
    if form == "policy that is emptied":
        Path(path).write_text("")
    waiting.approve()
    waiting("resume", waiting.run, "--no-input")
    assert waiting.effects() == 0


@pytest.mark.parametrize("command", ["resume", "approve", "approve --no-resume", "fork"])
def test_a_missing_policy_file_is_an_error(waiting: WaitingRun, command: str) -> None:
    flags = ["--policy", "nowhere.toml"]
    if command == "resume":
        assert waiting.approve("--no-resume").returncode == ExitCode.OK
        done = waiting("resume", waiting.run, *flags)
    elif command == "fork":
        done = waiting("fork", f"{waiting.run}@head", *flags)
    else:
        done = waiting.approve(*command.split()[1:], *flags)
    assert done.returncode == ExitCode.CONFIG, done.stderr
    assert "nowhere.toml" in done.stderr
    assert waiting.effects() == 0


def test_rules_of_the_start_hold_in_another_folder_and_a_later_file_loosens_nothing(
    origin: WaitingRun,
) -> None:
    home = origin.home.parent / "project"
    home.mkdir()
    begun = WaitingRun(home, "", "")
    rules = Path(
        begun.policy('[[rule]]\neffect = "ask"\ntool = "service_rollback"\n', ".opsleuth/policy.toml")
    )
    assert begun("demo", "--act", "--no-input").returncode == ExitCode.WAITING
    (asked,) = json.loads(begun("approvals", "--json").stdout)["approvals"]
    rules.unlink()
    begun.policy(FREE, "config/opsleuth/policy.toml")
    assert begun("resume", asked["run"], "--no-input").returncode == ExitCode.WAITING
    again = begun("fork", f"{asked['run']}@before:approve", "--run", "--no-input")
    assert again.returncode == ExitCode.WAITING, again.stderr
    assert begun.effects() == 0


def restrict(waiting: WaitingRun, form: str) -> tuple[list[str], dict[str, str]]:
    """Read-only by a flag, a variable or a configuration file."""
    if form == "file":
        waiting.policy("[options]\nread_only = true\n", ".opsleuth/config.toml")
    return (["--read-only"] if form == "flag" else []), (
        {"OPSLEUTH_READ_ONLY": "1"} if form == "variable" else {}
    )
