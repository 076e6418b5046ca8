"""Clocks that go back or differ between hosts: each step of a run is a process with a clock of its own, by faketime."""

from pathlib import Path

import pytest
from branch_rig import RUN, Branching
from loop_rig import concludes, looks
from servers import need

from opsleuth.checkpoints.database_urls import Place
from opsleuth.state.run_status import ExitCode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DONE = concludes("it was changed", "E1")
TOLERATED = ("-1s", "-4s", "-50s", "+5s", "+20m")
BEYOND = ("-2m", "-1h", "-1d", "-400d", "+31m", "+1h", "+400d")


def off(shift: str) -> tuple[str, ...]:
    """What puts a program's clock off; monotonic clocks go on as they are."""
    need("faketime")
    return ("env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "TZ=Europe/Berlin", "faketime", "-f", shift)


def waiting(tmp_path: Path, place: Place, shift: str = "+0s") -> Branching:
    rig = Branching(tmp_path, place)
    rig.world.write(looks("a"), looks("cache", tool="restart"), looks("b"), DONE, DONE, DONE)
    assert rig("start", before=off(shift))["status"] == "waiting"
    return rig


def asked_again(rig: Branching, shift: str) -> bool:
    """Resume under another clock, and answer what is asked again under that clock; whether anything was."""
    outcome = rig("resume", before=off(shift))
    again: bool = outcome["status"] == "waiting"
    if again:
        assert (outcome["code"], rig.world.lines("done")) == (ExitCode.WAITING, [])
        rig("answer", before=off(shift))
        outcome = rig("resume", before=off(shift))
    assert (outcome["status"], outcome["code"]) == ("completed", ExitCode.OK), outcome
    assert rig.world.lines("done") == ["cache"]
    assert rig.world.lines("looked") == ["a", "b"]
    return again


@pytest.mark.parametrize(
    "shift", ["-4s", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in TOLERATED[:2])]
)
def test_a_clock_that_went_back_a_little_loses_no_step(tmp_path: Path, place: Place, shift: str) -> None:
    rig = waiting(tmp_path, place)
    rig("answer")
    assert asked_again(rig, shift) is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "shift", ["-50s", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in TOLERATED if s != "-50s")]
)
def test_a_minute_is_tolerated_by_every_approval(tmp_path: Path, place: Place, shift: str) -> None:
    rig = waiting(tmp_path, place, shift)
    rig("answer")
    assert asked_again(rig, shift) is False


@pytest.mark.parametrize(
    "shift", ["-400d", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in BEYOND if s != "-400d")]
)
def test_beyond_a_minute_a_file_asks_again_and_a_server_goes_by_its_own_clock(
    tmp_path: Path, place: Place, shift: str
) -> None:
    rig = waiting(tmp_path, place)
    rig("answer")
    assert asked_again(rig, shift) is isinstance(place, Path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", ["2026-03-29 01:59:58", pytest.param("2026-10-25 02:59:58", marks=pytest.mark.exhaustive)]
)
def test_an_hour_that_is_left_out_or_comes_twice_changes_nothing(
    tmp_path: Path, place: Place, moment: str
) -> None:
    rig = waiting(tmp_path, place, f"@{moment}")
    rig("answer", before=off(f"@{moment}"))
    outcome = rig("resume", before=off(f"@{moment[:-2]}59"))
    assert outcome["status"] == "completed"
    assert rig.world.lines("done") == ["cache"]


def test_the_newest_checkpoint_and_the_newest_run_go_by_the_store_and_not_by_time(
    tmp_path: Path, place: Place
) -> None:
    rig = waiting(tmp_path, place)
    before = rig("start", "inv-20240501-next", before=off("-1d"))
    assert before["checkpoints"][-1][1] == "approve"
    rig("answer", "inv-20240501-next", before=off("-1d"))
    done = rig("resume", "inv-20240501-next", before=off("-2d"))
    asked = done["status"] == "waiting"
    assert asked is isinstance(place, Path)
    names = [name for name, _ in done["checkpoints"]]
    assert names == [f"c{n}" for n in range(len(names))]
    assert done["checkpoints"][: len(before["checkpoints"])] == before["checkpoints"]
    newest = rig("newest", "-")
    assert newest["run"] == "inv-20240501-next"
    assert newest["listed"] == ["inv-20240501-next", RUN]
