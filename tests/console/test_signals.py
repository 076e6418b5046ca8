"""Ctrl-C and signals to real processes: what is gone, what is kept, and that the rest runs at resume."""

import os
import select
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from loop_rig import World, concludes, looks
from seat_rig import RUN, STUCK
from seats import away, ended, heard, left, living, seated
from stored_runs import HANG

from opsleuth.checkpoints.store import Store
from opsleuth.graph.approvals import decisions
from opsleuth.graph.approvals.decisions import AnsweringPerson
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode, Status

ENDS = concludes("a is 13277057", "E1")
PERSON = AnsweringPerson("a person", "command")


@pytest.fixture
def world(tmp_path: Path) -> World:
    os.mkfifo(tmp_path / "commands")
    return World(tmp_path)


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    with Store.open(world.folder / "store.db", SystemClock(), Redactor()) as opened:
        yield opened


def command(thing: str) -> dict[str, str]:
    return {"thing": thing, "behave": "command_once"}


def groups(world: World, number: int) -> Sequence[int]:
    """The process groups of so many commands, as soon as all of them run."""
    fifo = os.open(world.folder / "commands", os.O_RDWR)
    said = b""
    try:
        while said.count(b"\n") < number:
            assert select.select([fifo], [], [], HANG)[0], "the commands were not started"
            said += os.read(fifo, 4096)
    finally:
        os.close(fifo)
    return [int(line) for line in said.split()]


def members(group: int) -> list[int]:
    """Who is left of a process group; the dead that nobody has waited for do not count."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(owner) == group and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.SIGINT), (signal.SIGTERM, ExitCode.SIGTERM)]
)
def test_in_two_parallel_reads(world: World, store: Store, number: signal.Signals, code: ExitCode) -> None:
    world.write(looks("a", command("b"), command("c")), ENDS)
    with living(world) as process:
        heard(process.stdout, "tool.completed")
        running = groups(world, 2)
        assert all(len(members(group)) >= 2 for group in running)
        process.send_signal(number)
        stopped, lines = left(process)
    assert stopped == code
    assert "run.interrupted" in lines[-1]
    assert [members(group) for group in running] == [[], []]
    assert store.runs.find(RUN).status is Status.INTERRUPTED
    assert away(world, "resume").returncode == ExitCode.OK
    assert sorted(world.lines("looked")) == ["a", "b", "b", "c", "c"], "what was finished is not done again"
    assert [o.status for o in store.observations.list(RUN)] == ["ok", "ok", "ok"]


@pytest.mark.slow
def test_at_a_terminal_the_groups_are_gone_when_the_question_stands(world: World, store: Store) -> None:
    world.write(looks("a", command("b"), command("c")), ENDS)
    child = seated(world)
    child.expect("a is 13277057")
    running = groups(world, 2)
    child.send("\x03")
    child.expect("stopping look\r\n")
    child.expect("stopped look")
    child.expect("uit")
    assert [members(group) for group in running] == [[], []]
    child.send("\x03")
    assert ended(child) == ExitCode.SIGINT
    assert world.lines("looked").count("a") == 1
    assert store.observations.list(RUN) == ()
    assert away(world, "resume").returncode == ExitCode.OK
    assert sorted(world.lines("looked")) == ["a", "b", "b", "c", "c"]


@pytest.mark.slow
def test_in_a_model_call(world: World, store: Store) -> None:
    world.write(looks("a"), ENDS)
    (world.folder / "stuck").touch()
    with living(world) as process:
        heard(process.stderr, STUCK)
        process.send_signal(signal.SIGINT)
        stopped, lines = left(process)
    assert stopped == ExitCode.SIGINT
    assert "run.interrupted" in lines[-1]
    assert store.runs.find(RUN).resumable
    assert away(world, "resume").returncode == ExitCode.OK
    assert world.lines("looked") == ["a"]


@pytest.mark.slow
def test_in_a_model_call_twice_at_a_terminal(world: World, store: Store) -> None:
    world.write(looks("a"), ENDS)
    (world.folder / "stuck").touch()
    child = seated(world)
    child.expect(STUCK)
    child.send("\x03")
    child.expect("stopping\r\n")
    child.expect("before the next step")
    child.send("\x03")
    assert ended(child) == ExitCode.SIGINT
    assert store.runs.find(RUN).status is Status.INTERRUPTED
    assert away(world, "resume").returncode == ExitCode.OK


def changing(world: World, store: Store) -> Any:
    """A run whose change was approved and will hang."""
    world.write(looks({"thing": "gateway", "behave": "hang_once"}, tool="restart"), ENDS)
    assert away(world).returncode == ExitCode.WAITING
    asked = store.approvals.get(RUN, "A1")
    decisions.record_answer(
        store, RUN, asked.id, decisions.OperatorReply("approved", digest=asked.digest), PERSON
    )
    return living(world, "resume")


@pytest.mark.slow
def test_in_a_change_twice(world: World, store: Store) -> None:
    """The first is told to wait, the second leaves the outcome unknown: it is not made again at resume."""
    with changing(world, store) as process:
        heard(process.stdout, "approval.used")
        process.send_signal(signal.SIGINT)
        heard(process.stdout, "effect_in_flight")
        process.send_signal(signal.SIGINT)
        stopped, _ = left(process)
    assert stopped == ExitCode.SIGINT
    assert [row.status for row in store.effects.list(RUN)] == ["started"]
    assert away(world, "resume").returncode == ExitCode.EFFECT_UNKNOWN
    (asked,) = store.approvals.list(RUN, "pending")
    assert asked.about == "effect"
    assert world.lines("done") == ["gateway"]
