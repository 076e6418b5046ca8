"""Which files a command carries out, by its words alone."""

import os
from pathlib import Path

import pytest

from opsleuth.tools.call_binding import describe_program
from opsleuth.tools.program_files import find_program_files

COMMANDS = {
    "heal.py": [
        ["python3", "heal.py"], ["python3", "-u", "./heal.py", "now"], ["env", "A=b", "python3", "heal.py"],
        ["python3", "-m", "heal"], ["sudo", "-u", "app", "python3", "heal.py"], ["x", "--script=heal.py"], ["x", "@heal.py"],
        ["sh", "-c", "cd /; exec python3 heal.py"], ["x", "-f./heal.py"],
    ],
    "heal": [["timeout", "5", "./heal"], ["nice", "heal"], ["sh", "-c", ". ./heal"], ["script"], ["xargs", "heal"], ["sh", "heal"]],
    "Makefile": [["make"], ["make", "-f", "Makefile"], ["sudo", "make", "now"]],
    "site.yaml": [["ansible-playbook", "site.yaml"], ["kubectl", "apply", "-f", "site.yaml"], ["kubectl", "apply", "--filename=site.yaml"]],
}  # fmt: skip
WORDS = [(name, argv) for name, lines in COMMANDS.items() for argv in lines]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*COMMANDS, "app.log"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "script").write_text("#!/usr/bin/env heal\n")
    for name in ("heal", "script"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "argv"), WORDS, ids=[" ".join(argv) for _, argv in WORDS])
def test_a_file_that_is_carried_out_is_found(folder: Path, name: str, argv: list[str]) -> None:
    assert str(folder / name) in describe_program(argv, ["PATH"])["files"]


@pytest.mark.parametrize(
    "argv",
    [
        ["truncate", "-s", "0", "app.log"],
        ["sudo", "rm", "app.log"],
        ["x", "y" * 9_000],
        ["x", "a\0b", "", "it's"],
    ],
)
def test_data_is_not_a_file_that_is_carried_out(folder: Path, argv: list[str]) -> None:
    found = find_program_files(argv, os.environ["PATH"])
    assert not [file for file in found if file.startswith(str(folder))]


def test_a_value_that_may_be_secret_is_marked_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(value: str) -> str:
        monkeypatch.setenv("QUEUE_KEY", value)
        return str(describe_program(["true"], ["PATH", "QUEUE_KEY"])["values"])

    assert "hunter2" not in describe("hunter2")
    assert describe("hunter2") == describe("hunter2")
    assert describe("hunter2") != describe("hunter3")
    assert "/srv/kube" in describe("/srv/kube")
