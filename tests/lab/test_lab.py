"""The live lab: real servers, really broken. Faults are named, one is rolled back, and nothing is left running."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from servers import need

from opsleuth.scenarios.lab.faults import FAULTS

pytestmark = pytest.mark.lab

SECONDS_OF_NORMAL = "10"
LONGER = "30"
"""For a second look where a busy machine left too little to compare with; how often the first is right, benchmarks count."""
FEW = ("--orders", "1000")
_GUARD = 120.0


class Desk:
    """A shell's place to work: a folder for labs, and an environment of its own for opsleuth."""

    def __init__(self, folder: Path) -> None:
        self.lab = folder / "lab"
        homes = {
            f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("DATA", "STATE", "CONFIG", "CACHE")
        }
        self.environment: Mapping[str, str] = {**os.environ, **homes}

    def __call__(self, *arguments: str, code: int = 0, at: Path | None = None) -> str:
        """What the command printed, both streams. Its exit code must be `code`."""
        done = subprocess.run(
            [sys.executable, "-m", "opsleuth", *arguments],
            cwd=at or self.lab.parent,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_GUARD * 2,
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def up(self, *arguments: str) -> str:
        return self("lab", "up", "--dir", str(self.lab), *arguments)

    def document(self, *arguments: str) -> dict[str, Any]:
        text = self(*arguments, at=self.lab)
        found: dict[str, Any] = json.loads(text[text.index("{") :])
        return found

    def processes(self) -> dict[str, int]:
        """Process ids of the lab, by name."""
        return {p["name"]: p["pid"] for p in self.document("--json", "lab", "status")["processes"]}


@pytest.fixture
def desk() -> Iterator[Desk]:
    need("prometheus", "prometheus-alertmanager", "initdb", "git")
    folder = Path(tempfile.mkdtemp(prefix="lab-"))  # below pytest's own folders only their owner may go
    folder.chmod(0o755)
    desk = Desk(folder)
    try:
        yield desk
    finally:
        _end_what_is_left(desk.lab)
        shutil.rmtree(folder)


def _end_what_is_left(folder: Path) -> None:
    """A test that failed leaves its lab running: its keeper takes the rest with it."""
    try:
        pid = json.loads((folder / "lab.json").read_text())["pid"]
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError):
        return
    eventually(lambda: not lives(pid))


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def eventually(so: Callable[[], bool]) -> None:
    until = time.monotonic() + _GUARD
    while not so():
        assert time.monotonic() < until, "it never became so"
        time.sleep(0.1)  # processes that end by themselves offer no event to wait for


@pytest.mark.exhaustive
def test_every_fault_but_the_release_is_named(desk: Desk) -> None:
    desk.up()
    truth = {name: (fault.service, fault.kind) for name, fault in FAULTS.items() if name != "release"}
    named = {name: _named_first(desk, name) for name in truth}
    wrong = {name for name in truth if named[name] != truth[name]}
    assert len(wrong) <= 1, named
    assert {name: _named_first(desk, name, LONGER) for name in wrong} == {name: truth[name] for name in wrong}


def test_a_release_is_named_and_rolled_back(desk: Desk) -> None:
    assert "the lab is up" in desk.up()
    assert "already" in desk.up()
    desk("doctor", at=desk.lab)
    assert "choose from release, index" in desk("lab", "fault", "flood", "--after", "0", code=2, at=desk.lab)
    _rolled_back(desk)
    processes = desk.processes()
    assert {
        "keeper",
        "orders-db",
        "payments",
        "orders-api",
        "prometheus",
        "alertmanager",
        "customers",
    } == set(processes)
    desk("lab", "down", "--dir", str(desk.lab.with_name("another")), code=2, at=desk.lab)
    assert lives(desk.processes()["keeper"]), "the folder that is named counts, not the one we are in"
    assert "has ended" in desk("lab", "down", at=desk.lab)
    eventually(lambda: not any(map(lives, processes.values())))
    assert "no lab runs" in desk("lab", "status", at=desk.lab, code=2)


def _broken(desk: Desk, name: str, normal: str = SECONDS_OF_NORMAL) -> tuple[str, ...]:
    """Break it after so many seconds; how to investigate from where all was well."""
    told = desk("lab", "fault", name, "--after", normal, at=desk.lab)
    [since] = re.findall(r"--since (\S+)", told)
    return ("run", "--alert", "alert.json", "--since", since)


def _named_first(desk: Desk, name: str, normal: str = SECONDS_OF_NORMAL) -> tuple[str, str]:
    investigate = _broken(desk, name, normal)
    desk("-q", "--read-only", *investigate, at=desk.lab)
    report = desk.document("report", "--format", "json")
    desk("lab", "heal", at=desk.lab)
    return report["causes"][0]["service"], report["causes"][0]["kind"]


def _rolled_back(desk: Desk) -> None:
    """Alert, investigation, cause, approval, rollback, and normal again."""
    desk("-q", "--no-input", *_broken(desk, "release"), code=4, at=desk.lab)
    [approval] = desk.document("--json", "approvals", "-")["approvals"]
    assert approval["document"]["arguments"] == {"service": "orders-api", "version": "2.13.1"}
    desk("approve", "-", "A1", "--digest", approval["digest"], at=desk.lab)
    report = desk.document("report", "--format", "json")
    first = report["causes"][0]  # what a busy machine does to the others may come after it
    assert (first["service"], first["kind"]) == ("orders-api", "deploy")
    cited = {evidence for claim in report["claims"] for evidence in claim["evidence"]}
    sources = {part for e in report["evidence"] if e["id"] in cited for part in e["source"].split("+")}
    assert {"metrics", "database", "changes", "logs"} <= sources
    assert [(e["status"], e["verified"]) for e in report["effects"]] == [("done", True)]
    assert "usually" in report["impact"]["text"]
    assert not any(row["text"].startswith("Roll orders-api back") for row in report["recommendations"])
    history = ["git", "-C", "repository", "log", "-1", "--format=%s"]
    assert (
        subprocess.run(history, cwd=desk.lab, capture_output=True, text=True, check=True).stdout
        == "Roll back to 2.13.1\n"
    )
    assert desk.document("--json", "lab", "status")["version"] == "2.13.1"
    desk("lab", "heal", at=desk.lab)


def test_a_lab_ends_when_the_shell_that_started_it_does(desk: Desk) -> None:
    command = f"{sys.executable} -m opsleuth lab up --dir {desk.lab} {' '.join(FEW)} && echo up && read wait"
    shell = subprocess.Popen(["sh", "-c", command], env=desk.environment, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    with shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "up\n"
        processes = desk.processes()
        assert processes
        assert all(lives(process) for process in processes.values())
    eventually(lambda: not any(map(lives, processes.values())))


def test_a_lab_ends_at_its_deadline(desk: Desk) -> None:
    desk.up(*FEW, "--detach", "--for", "6s")
    pid = json.loads((desk.lab / "lab.json").read_text())["pid"]
    eventually(lambda: not lives(pid))
    assert not (desk.lab / "db").exists()


def test_a_keeper_that_is_killed_takes_everything_with_it(desk: Desk) -> None:
    desk.up(*FEW, "--detach")
    processes = desk.processes()
    os.kill(processes["keeper"], signal.SIGKILL)
    eventually(lambda: not any(map(lives, processes.values())))
    assert "the lab is up" in desk.up(*FEW), "what it left is no hindrance"
    desk("lab", "down", "--dir", str(desk.lab.with_name("another")), code=2, at=desk.lab)
    assert lives(desk.processes()["keeper"]), "the folder that is named counts, not the one we are in"
    assert "has ended" in desk("lab", "down", at=desk.lab)


@pytest.mark.parametrize("name", ["thesis.txt", "output/thesis.txt", "db/thesis.txt", ".opsleuth/thesis.txt"])
def test_a_folder_with_other_things_in_it_is_left_alone(desk: Desk, name: str) -> None:
    """Also where they are called like what a lab has: a folder is the lab's only if a lab has said so in it."""
    (desk.lab / name).parent.mkdir(parents=True)
    (desk.lab / name).write_text("years of work")
    told = desk("lab", "up", "--dir", str(desk.lab), code=8)
    assert name.partition("/")[0] in told
    assert [str(path.relative_to(desk.lab)) for path in desk.lab.rglob("*.*") if path.is_file()] == [name]
