"""`pause`, `cancel`, `terminate`, `retry`: told to a run that another process works on, and to one that nobody holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_rig import World, concludes, looks
from seat_rig import RUN
from seats import away, heard, left, living, told

from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode, Status, StopReason

HANGS = {"thing": "b", "behave": "hang_once"}
ENDS = concludes("a is 13277057", "E1")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    with Store.open(world.folder / "store.db", SystemClock(), Redactor()) as opened:
        yield opened


@pytest.mark.slow
def test_pause_stops_a_living_run_and_resume_runs_the_rest(world: World, store: Store) -> None:
    world.write(looks("a", HANGS), ENDS)
    with living(world) as process:
        heard(process.stdout, "tool.completed")
        done = told(world, "pause", RUN)
        assert done.returncode == ExitCode.OK
        assert "will pause" in done.stderr
        code, lines = left(process)
    assert code == ExitCode.WAITING
    assert "run.paused" in lines[-1]
    assert store.runs.find(RUN).status is Status.PAUSED
    again = told(world, "pause", RUN)
    assert (again.returncode, "nothing to pause" in again.stderr) == (ExitCode.OK, True)
    assert told(world, "resume", RUN).returncode == ExitCode.OK
    assert sorted(world.lines("looked")) == ["a", "b", "b"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "event"),
    [
        (("cancel", RUN), Status.CANCELED, "run.canceled"),
        (("terminate", RUN, "--reason", "the wrong system"), Status.TERMINATED, "run.terminated"),
    ],
)
def test_a_living_run_is_ended_by_its_own_process(
    world: World, store: Store, words: tuple[str, ...], status: Status, event: str
) -> None:
    world.write(looks("a", HANGS), ENDS)
    with living(world) as process:
        heard(process.stdout, "tool.completed")
        done = told(world, *words)
        assert done.returncode == ExitCode.OK, done.stderr
        assert "ends it now" in done.stderr
        code, lines = left(process)
    assert code == ExitCode.CANCELED
    assert event in lines[-1]
    assert store.runs.find(RUN).status is status
    assert store.reports.get(RUN) is not None
    assert world.lines("looked") == ["a", "b"]


@pytest.mark.parametrize("resumable", [True, False])
def test_a_run_that_nobody_holds_is_ended_here(world: World, store: Store, *, resumable: bool) -> None:
    """A cancelled run can go on, a terminated one is over; what waited for a person is withdrawn."""
    world.write(looks("a"), looks("gateway", tool="restart"), ENDS)
    assert away(world).returncode == ExitCode.WAITING
    words = ("cancel", RUN) if resumable else ("terminate", RUN, "--reason", "the wrong system")
    assert told(world, *words).returncode == ExitCode.CANCELED
    run = store.runs.find(RUN)
    assert run.stop_reason is (StopReason.CANCELED if resumable else StopReason.TERMINATED)
    assert run.resumable is resumable
    assert store.approvals.get(RUN, "A1").status == "stale"
    report = told(world, "report", RUN)
    assert report.returncode == ExitCode.OK, report.stderr
    resumed = told(world, "resume", RUN)
    assert resumed.returncode == (ExitCode.OK if resumable else ExitCode.CANCELED), resumed.stderr
    assert "opsleuth resume" not in resumed.stderr
    assert world.lines("done") == []


def test_a_reason_is_asked_for_and_an_unknown_run_is_said(world: World, store: Store) -> None:
    assert told(world, "terminate", RUN).returncode == ExitCode.USAGE
    for words in (("pause",), ("cancel",), ("terminate", "--reason", "why"), ("retry",)):
        done = told(world, words[0], "inv-20240501-none", *words[1:])
        assert (done.returncode, "inv-20240501-none" in done.stderr) == (ExitCode.NOT_FOUND, True)
    assert not store.runs.list()


def test_what_is_over_is_not_ended_again(world: World, store: Store) -> None:
    world.write(looks("a"), ENDS)
    assert away(world).returncode == ExitCode.OK
    for words in (("cancel", RUN), ("terminate", RUN, "--reason", "late")):
        done = told(world, *words)
        assert (done.returncode, "is over" in done.stderr) == (ExitCode.OK, True)
    assert store.runs.find(RUN).status is Status.COMPLETED


@pytest.mark.slow
def test_retry_makes_the_failed_look_ups_again(world: World, store: Store) -> None:
    """The failed one of the turn in progress, and the one that was cut; what was found is kept."""
    world.write(looks("a", {"thing": "d", "behave": "down_once"}, HANGS), ENDS)
    with living(world) as process:
        heard(process.stdout, "tool.completed")
        heard(process.stdout, "tool.completed")
        assert told(world, "pause", RUN).returncode == ExitCode.OK
        assert left(process)[0] == ExitCode.WAITING
    assert told(world, "retry", RUN).returncode == ExitCode.OK
    assert [o.status for o in store.observations.list(RUN)] == ["ok", "ok", "ok"]
    assert sorted(world.lines("looked")) == ["a", "b", "b", "d", "d"]
