"""`demo --act`, whole: investigated, proposed, approved by a command that names the digest, executed, checked."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opsleuth.state.run_status import ExitCode


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Folders of its own for everything; the demo's control plane is ended afterwards."""
    yield tmp_path
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = stat.read_bytes()
        except OSError:
            continue
        if str(tmp_path).encode() in command:
            os.kill(int(stat.parent.name), signal.SIGTERM)


def opsleuth(home: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    folders = {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
    return subprocess.run(
        [sys.executable, "-m", "opsleuth", *arguments],
        env=os.environ | folders | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **more,
    )


@pytest.mark.slow
def test_the_story_ends_with_a_checked_rollback(home: Path) -> None:
    waiting = opsleuth(home, "demo", "--act", input="y\ny\n")  # what is piped in approves nothing
    assert waiting.returncode == ExitCode.WAITING, waiting.stderr
    asked = json.loads(opsleuth(home, "approvals", "--json").stdout)["approvals"]
    assert [(a["document"]["tool"], a["status"]) for a in asked] == [("service_rollback", "pending")]
    run, digest = asked[0]["run"], asked[0]["digest"]
    done = opsleuth(home, "approve", run, "A1", "--digest", digest[:16])
    assert done.returncode == ExitCode.OK, done.stderr
    assert "check passed: orders-api runs 2.13.4" in " ".join(done.stderr.split())
    again = opsleuth(home, "approve", run, "A1", "--digest", digest[:16])
    assert again.returncode == ExitCode.USAGE
    assert "already decided" in again.stderr


@pytest.mark.slow
def test_an_approval_that_was_given_is_taken_back(home: Path) -> None:
    opsleuth(home, "demo", "--act")
    [asked] = json.loads(opsleuth(home, "approvals", "--json").stdout)["approvals"]
    given = opsleuth(home, "approve", asked["run"], "A1", "--digest", asked["digest"][:16], "--no-resume")
    assert given.returncode == ExitCode.OK, given.stderr
    taken_back = opsleuth(home, "deny", asked["run"], "A1", "--reason", "the freeze began")
    assert taken_back.returncode == ExitCode.DENIED, taken_back.stderr
    assert opsleuth(home, "resume", asked["run"]).returncode != ExitCode.OK
    planes = list((home / "cache").rglob("plane.jsonl"))
    assert [len(plane.read_text().splitlines()) for plane in planes] == [1]
