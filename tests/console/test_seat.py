"""At a real terminal: what a key may approve, and what becomes of a run when Ctrl-C is pressed."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pexpect
import pytest
from loop_rig import World, concludes, looks
from seat_rig import RUN
from seats import RIG, away, ended, environment, seated
from stored_runs import HANG

from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode, Status

DEAF = 0.6
"""Seconds after which a key counts."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def stored(world: World) -> Iterator[Any]:
    def opened() -> Store:
        store = Store.open(world.folder / "store.db", SystemClock(), Redactor())
        kept.append(store)
        return store

    kept: list[Store] = []
    yield opened
    for store in kept:
        store.close()


def acts(thing: str = "gateway") -> Mapping[str, Any]:
    return looks(thing, tool="restart")


def key(child: Any, text: str) -> None:
    """A key pressed when it counts: a person needs longer than the half second in which none does."""
    time.sleep(DEAF)
    child.send(text)


@pytest.mark.slow
def test_maybe_is_no_answer_and_yes_then_works(world: World) -> None:
    world.write(acts(), concludes("done", "E1"))
    child = seated(world)
    child.expect("APPROVAL A1")
    child.expect("run once")
    key(child, "maybe")
    child.expect("does nothing here|Several keys came at once")
    assert world.lines("done") == []
    key(child, "y")
    assert ended(child) == ExitCode.INCONCLUSIVE  # nothing but the change's own answer says that it worked
    assert world.lines("done") == ["gateway"]


@pytest.mark.slow
def test_keys_of_before_the_question_do_not_approve(world: World, stored: Any) -> None:
    world.write(acts(), concludes("done", "E1"))
    child = seated(world)
    child.send("yyyyyyy\n")
    child.expect("APPROVAL A1")
    child.send("y")
    child.expect("run once")
    child.send("y")
    key(child, "p")
    assert ended(child) == ExitCode.WAITING
    assert world.lines("done") == []
    assert stored().approvals.get(RUN, "A1").status == "pending"


@pytest.mark.slow
def test_piped_input_does_not_approve(world: World, stored: Any) -> None:
    world.write(acts(), concludes("done", "E1"))
    assert away(world, typed="y\ny\ny\n").returncode == ExitCode.WAITING
    child = seated(world, "resume", piped="yes")
    child.expect("APPROVAL A1")
    child.expect("run once")
    key(child, "p")
    ended(child)
    assert world.lines("done") == []
    assert stored().approvals.get(RUN, "A1").status == "pending"


@pytest.mark.slow
def test_enter_resumes_the_only_run_that_can_go_on(world: World, stored: Any) -> None:
    world.write(acts(), concludes("done", "E1"))
    assert away(world).returncode == ExitCode.WAITING
    command = [RIG, str(world.folder), "cli", "resume"]
    child = pexpect.spawn(
        sys.executable,
        command,
        env=environment(world),
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=HANG,
    )
    child.expect(r"resume which \(1\) \[1\]: |resume which \[1\]: ")
    child.send("\r")
    child.expect("APPROVAL A1")
    child.expect("run once")
    key(child, "p")
    assert ended(child) == ExitCode.WAITING
    assert stored().approvals.get(RUN, "A1").status == "pending"


@pytest.mark.slow
def test_a_long_call_is_seen_to_its_end_before_a_key_counts(world: World) -> None:
    long = {"thing": "gateway", "command": "echo fine; " * 450 + "delete-everything"}
    world.write(looks(long, tool="restart"), concludes("done", "E1"))
    child = seated(world, lines=24)
    child.expect("APPROVAL A1")
    child.expect("more lines: press space")
    shown = str(child.before)
    assert "delete-everything" not in shown
    key(child, "y")
    child.send(" ")
    while child.expect(["more lines: press space", "run once"]) == 0:
        shown += str(child.before)
        child.send(" ")
    assert "delete-everything" in shown + str(child.before)
    assert world.lines("done") == []
    key(child, "y")
    ended(child)
    assert len(world.lines("done")) == 1


@pytest.mark.slow
def test_evidence_is_a_key_away_and_an_edit_shows_what_it_was(world: World) -> None:
    world.write(looks("a"), acts(), concludes("done", "E1"))
    child = seated(world)
    child.expect("run once")
    key(child, "w")
    child.expect("a is 13277057")
    child.expect("Which one")
    child.send("e1\r")
    child.expect("untrusted, as the source gave it")
    child.expect("run once")
    key(child, "e")
    child.expect("NAME=VALUE")
    child.send("thing=web\r")
    child.expect("APPROVAL A2")
    child.expect(r"was\s+\| gateway")
    child.expect("run once")
    key(child, "n")
    child.expect("Reason")
    child.send("not now\r")
    assert ended(child) == ExitCode.DENIED
    assert world.lines("done") == []


@pytest.mark.slow
def test_ctrl_c_at_an_approval_redraws_and_twice_quits(world: World, stored: Any) -> None:
    world.write(acts(), concludes("done", "E1"))
    child = seated(world)
    child.expect("run once")
    key(child, "\x03")
    child.expect("Nothing is approved or denied")
    child.send("\x03")
    assert ended(child) == ExitCode.SIGINT
    assert stored().approvals.get(RUN, "A1").status == "pending"
    assert world.lines("done") == []
    child = seated(world, "resume")
    child.expect("run once")
    key(child, "y")
    ended(child)
    assert world.lines("done") == ["gateway"]


HANGS = {"thing": "b", "behave": "hang"}


def hanging(world: World) -> Any:
    world.write(looks("a", HANGS), concludes("a is 13277057", "E1"))
    child = seated(world)
    child.expect("a is 13277057")
    child.expect("act look")
    child.send("\x03")
    child.expect("stopped look")
    return child


@pytest.mark.slow
def test_ctrl_c_in_a_call_asks_and_goes_on_without_it(world: World, stored: Any) -> None:
    child = hanging(world)
    child.send("c")
    assert ended(child) == ExitCode.OK
    one, two = stored().observations.list(RUN)
    assert (one.status, two.status) == ("ok", "canceled")
    assert world.lines("looked") == ["a", "b"], "what was finished is kept"


@pytest.mark.slow
def test_ctrl_c_twice_quits_and_resume_goes_on(world: World, stored: Any) -> None:
    child = hanging(world)
    child.send("\x03")
    assert ended(child) == ExitCode.SIGINT
    assert stored().runs.find(RUN).status is Status.INTERRUPTED
    child = seated(world, "resume")
    child.expect("act look")
    child.send("\x03")
    child.expect("stopped look")
    child.send("n")
    child.expect("Note for the planner")
    child.send("leave b alone\r")
    child.expect("at its next turn")
    child.send("c")
    assert ended(child) == ExitCode.OK
    assert world.lines("looked") == ["a", "b", "b"]


@pytest.mark.slow
def test_ctrl_c_and_once_more(world: World) -> None:
    child = hanging(world)
    child.send("r")
    child.expect("act look")
    child.send("\x03")
    child.expect("stopped look")
    child.send("q")
    assert ended(child) == ExitCode.SIGINT
    assert world.lines("looked") == ["a", "b", "b"]


@pytest.mark.slow
def test_ctrl_c_while_the_model_thinks(world: World) -> None:
    world.write(looks("a"), concludes("a is 13277057", "E1"))
    (world.folder / "stuck").touch()
    child = seated(world)
    child.expect("turn 0/30")
    child.send("\x03")
    child.expect("before the next step")
    child.send("r")
    assert ended(child) == ExitCode.OK


@pytest.mark.slow
def test_nobody_there_means_stop_and_resume(world: World, stored: Any) -> None:
    world.write(looks("a", HANGS), concludes("a is 13277057", "E1"))
    command = [sys.executable, RIG, str(world.folder), "start", "--json"]
    for number, code in ((signal.SIGINT, ExitCode.SIGINT), (signal.SIGTERM, ExitCode.SIGTERM)):
        with subprocess.Popen(command, env=environment(world), stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for event in ("tool.started", "tool.completed") if number is signal.SIGINT else ("tool.started",):
                while event not in running.stdout.readline():
                    pass
            running.send_signal(number)
            rest = running.stdout.read().splitlines()
            assert running.wait(HANG) == code
        assert '"run.interrupted"' in rest[-1]
        command[3] = "resume"
    assert stored().runs.find(RUN).resumable
