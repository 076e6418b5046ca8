"""Where a value comes from: flags, then variables, then the project's, the user's, the system's file, then defaults."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forked import run_python
from stored_runs import Program

HIDDEN = "made-up-secret-0815"
AS_ADMINISTERED = (
    "import sys, pathlib, opsleuth.configuration.config_file as files\n"
    "files.SYSTEM = pathlib.Path(sys.argv.pop(1))\n"
    "from opsleuth.cli import main\n"
    "main()\n"
)


@dataclass(frozen=True)
class Machine:
    """A machine with a folder of the system's files, a user's, and a project in which commands are typed."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "shop"

    def write(self, layer: str, text: str, name: str = "config.toml") -> Path:
        folder = {
            "system": self.home / "etc",
            "user": self.home / "conf" / "opsleuth",
            "project": self.project / ".opsleuth",
        }[layer]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        return folder / name

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        self.project.mkdir(exist_ok=True)
        environment = Program(self.home / "opsleuth.db", self.home).environment(
            XDG_CONFIG_HOME=str(self.home / "conf"), XDG_STATE_HOME=str(self.home / "state"), **variables
        )
        environment.pop("OPSLEUTH_DB")
        return run_python(
            ["-c", AS_ADMINISTERED, str(self.home / "etc"), *arguments], env=environment, cwd=self.project
        )

    def shown(self, *arguments: str, **variables: str) -> Mapping[str, Any]:
        done = self("config", "show", "--json", *arguments, **variables)
        assert done.returncode == 0, done.stderr
        document: Mapping[str, Any] = json.loads(done.stdout)
        return document

    def option(self, name: str, *arguments: str, **variables: str) -> tuple[Any, str]:
        found = self.shown(*arguments, **variables)["options"][name]
        return found["value"], found["origin"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_each_layer_gives_way_to_the_one_above_it(machine: Machine) -> None:
    assert machine.option("max_turns") == (None, "default")
    machine.write("system", "[options]\nmax_turns = 11\n")
    assert machine.option("max_turns") == (11, "system")
    machine.write("user", "[options]\nmax_turns = 12\n")
    assert machine.option("max_turns") == (12, "user")
    machine.write("project", "[options]\nmax_turns = 13\n")
    assert machine("trust").returncode == 0
    assert machine.option("max_turns") == (13, "project")
    assert machine.option("max_turns", OPSLEUTH_MAX_TURNS="14") == (14, "OPSLEUTH_MAX_TURNS")
    assert machine.option("max_turns", "--max-turns", "15", OPSLEUTH_MAX_TURNS="14") == (15, "flag")


def test_each_option_comes_from_the_strongest_that_names_it(machine: Machine) -> None:
    machine.write("system", '[options]\nmax_time = "20m"\nmax_cost = 2\nplain = true\n')
    machine.write("user", '[options]\nmax_cost = 0.1\ntz = "Asia/Tokyo"\n')
    options = machine.shown(OPSLEUTH_PLAIN="0")["options"]
    assert options["max_time"] == {"value": "1200s", "origin": "system"}
    assert options["max_cost"] == {"value": "0.1", "origin": "user"}
    assert options["tz"] == {"value": "Asia/Tokyo", "origin": "user"}
    assert options["plain"] == {"value": False, "origin": "OPSLEUTH_PLAIN"}


def test_what_a_file_says_holds_for_every_command(machine: Machine) -> None:
    machine.write("user", '[options]\ndb = "kept/runs.db"\nread_only = true\n')
    assert machine("demo", "-q").returncode == 0
    assert (machine.home / "conf" / "opsleuth" / "kept" / "runs.db").exists()
    assert json.loads(machine("list", "--json").stdout)["runs"]
    assert '"read_only": true' in machine("log", "-", "--json", "--type", "run.started").stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[options]\nmax_turn = 3", "not an option: the options are color, db, db_checkpoints, environment"),
        ("[options]\nmax_turns = 0", "0 is not in the range"),
        ("[options]\nmax_turns = true", "write one value"),
        ('[options]\nplain = "yes"', "write true or false"),
        ('[options]\ntz = "Mars"', "Mars"),
        ("[options]\nmax_turns = [3]", "write one value"),
        ('[options]\nmodel = "m"', "[profiles.NAME] model"),
        ("[options]\njson = true", "give --json there"),
        ("options = 3", "write it under [options]"),
        ("[options", "not valid TOML"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_file(machine: Machine, text: str, says: str) -> None:
    path = machine.write("user", text)
    done = machine("list")
    assert (done.returncode, done.stdout) == (8, "")
    assert str(path) in done.stderr
    assert says in done.stderr


@pytest.mark.parametrize("command", [["--help"], ["version"], ["exit-codes"], ["graph"], ["run", "--help"]])
def test_help_needs_no_configuration(machine: Machine, command: list[str]) -> None:
    machine.write("user", "[options")
    assert machine(*command).returncode == 0


# --- what came with a folder -------------------------------------------------------------------------------------


def test_a_project_decides_how_things_look_and_nothing_else_until_it_is_trusted(machine: Machine) -> None:
    file = machine.write(
        "project", '[options]\ntz = "Asia/Tokyo"\nread_only = true\ndb = "theirs.db"\nmax_turns = 900\n'
    )
    done = machine("config", "show", "--json")
    options = json.loads(done.stdout)["options"]
    assert options["tz"]["origin"] == options["read_only"]["origin"] == "project"
    assert options["db"]["value"] is None
    assert options["max_turns"]["value"] is None
    assert f"{file} is not trusted, so what it says of db, max_turns does not count" in done.stderr
    told = machine("trust")
    assert "theirs.db" in told.stdout
    assert "900" in told.stdout
    options = machine.shown()["options"]
    assert options["db"] == {"value": str(machine.project / "theirs.db"), "origin": "project"}
    file.write_text(file.read_text() + "\n")
    assert machine.shown()["options"]["db"]["value"] is None


def test_a_project_takes_no_protection_away_by_itself(machine: Machine) -> None:
    machine.write("user", "[options]\nread_only = true\n")
    machine.write("project", "[options]\nread_only = false\n")
    assert machine.option("read_only") == (True, "user")


PROFILE = '[profiles.theirs]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nkey_command = "touch ran"\n'


def test_a_project_s_model_is_asked_only_once_it_is_trusted(machine: Machine) -> None:
    file = machine.write("project", PROFILE)
    done = machine("demo", "--planner", "model", "--profile", "theirs")
    assert done.returncode == 8
    assert f"profile 'theirs' is in {file}, which is not trusted" in done.stderr
    told = machine("trust")
    assert "http://127.0.0.1:9/v1" in told.stdout
    assert "touch ran" in told.stdout
    options = machine.shown("--profile", "theirs")["options"]
    assert options["model.base_url"] == {"value": "http://127.0.0.1:9/v1", "origin": "profile theirs"}
    assert not (machine.project / "ran").exists()


def test_a_stronger_layer_replaces_a_profile_and_a_variable_a_part_of_it(machine: Machine) -> None:
    machine.write("system", '[options]\nprofile = "p"\n[profiles.p]\nmodel = "of-system"\ntimeout = 9\n')
    machine.write("user", '[profiles.p]\nmodel = "of-user"\n')
    options = machine.shown(OPSLEUTH_TEMPERATURE="0.5")["options"]
    assert options["profile"] == {"value": "p", "origin": "system"}
    assert options["model.model"] == {"value": "of-user", "origin": "profile p"}
    assert options["model.timeout"] == {"value": 120.0, "origin": "profile p"}
    assert options["model.temperature"] == {"value": 0.5, "origin": "OPSLEUTH_TEMPERATURE"}


def test_sources_of_all_layers_are_shown_with_their_layer_and_without_secrets(machine: Machine) -> None:
    source = '[environments.prod.sources.{}]\nkind = "prometheus"\nurl = "http://127.0.0.1:9"\n'
    machine.write("system", source.format("shared"))
    machine.write("user", source.format("mine") + f'token = {{ env = "{HIDDEN}" }}\n')
    machine.write("project", source.format("ours"))
    found = machine.shown()["sources"]
    assert {name: entry["origin"] for name, entry in found.items()} == {
        "shared": "system",
        "mine": "user",
        "ours": "project",
    }
    shown = machine("config", "show", "--origin").stdout
    assert "project, not trusted" in shown
    assert HIDDEN not in shown


# --- rules: a floor ----------------------------------------------------------------------------------------------

RULE = '[[rule]]\neffect = "{}"\ntool = "service_rollback"\n'


def ruling(machine: Machine) -> str:
    done = machine("policy", "explain", "service_rollback", "service=shop", "version=2.4.1")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("layers", "says"),
    [
        ({"system": "deny", "user": "allow"}, "refused"),
        ({"system": "allow", "user": "deny"}, "refused"),
        ({"system": "ask", "user": "allow"}, "a person confirms"),
        ({"system": "allow"}, "runs by itself"),
        ({"user": "allow", "project": "deny"}, "refused"),
        ({"user": "allow", "project": "ask"}, "a person confirms"),
        ({"project": "allow"}, "a person confirms"),
    ],
)
def test_the_strictest_word_of_any_layer_holds(machine: Machine, layers: dict[str, str], says: str) -> None:
    for layer, word in layers.items():
        machine.write(layer, RULE.format(word), "policy.toml")
    assert says in ruling(machine)


def test_a_project_s_rules_loosen_only_once_they_are_trusted(machine: Machine) -> None:
    machine.write("project", RULE.format("allow"), "policy.toml")
    assert "a person confirms" in ruling(machine)
    assert "allow service_rollback" in machine("trust").stdout
    assert "runs by itself" in ruling(machine)
    machine.write("system", RULE.format("deny"), "policy.toml")
    assert "refused" in ruling(machine)


def test_a_project_s_rules_hold_in_its_folders_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.write("project", RULE.format("deny"), "policy.toml")
    below = machine.project / "services" / "web"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    program = Program(tmp_path / "opsleuth.db", tmp_path)
    assert (
        "refused" in program("policy", "explain", "service_rollback", "service=shop", "version=2.4.1").stdout
    )
