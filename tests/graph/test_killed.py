"""Real processes, really killed: what was stored is there, and what was done is not done again."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commit_kills import FORK, GUARD, in_child, kill_at_commit
from loop_rig import Loop, World, concludes, looks

from opsleuth.checkpoints.errors import NotFoundError, RunBusyError, StoreFailedError
from opsleuth.state.run_status import ExitCode

RIG = Path(__file__).parent.parent / "support" / "loop_rig.py"
RUN = "inv-20240501-test"


def program(folder: Path, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RIG), str(folder), verb, RUN, *more],
        capture_output=True,
        text=True,
        timeout=GUARD,
        check=False,
    )


@pytest.mark.slow
def test_killed_after_the_second_of_four_calls(tmp_path: Path) -> None:
    World(tmp_path).write(
        looks("a"), looks("b"), looks({"thing": "c", "behave": "kill_once"}), looks("d"),
        concludes("a, b, c and d were looked at.", "E1", "E2", "E3", "E4"),
    )  # fmt: skip
    assert program(tmp_path, "start").returncode == -signal.SIGKILL
    resumed = program(tmp_path, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert World(tmp_path).lines("looked") == ["a", "b", "c", "c", "d"]
    assert json.loads(resumed.stdout)["answer"] == "a, b, c and d were looked at."


@pytest.mark.slow
def test_killed_in_one_of_parallel_calls_runs_only_that_one_again(tmp_path: Path) -> None:
    World(tmp_path).write(looks("a", "b", "c"), concludes("a, b and c.", "E1", "E2", "E3"))
    assert program(tmp_path, "start", "2").returncode == -signal.SIGKILL
    before = World(tmp_path).lines("looked")
    assert program(tmp_path, "resume").returncode == 0
    assert sorted(before) == ["a", "b", "c"]
    assert len(World(tmp_path).lines("looked")) == 4


@pytest.mark.slow
def test_the_model_fails_on_the_fourth_call(tmp_path: Path) -> None:
    three = [looks("a"), looks("b"), looks("c")]
    World(tmp_path).write(*three, {"error": "unavailable", "text": "the endpoint answers 500"})
    first = program(tmp_path, "start")
    assert first.returncode == ExitCode.UNREACHABLE
    World(tmp_path).write(*three, {"error": "unavailable"}, concludes("a, b and c.", "E1", "E2", "E3"))
    second = program(tmp_path, "resume")
    assert second.returncode == 0, second.stderr
    assert World(tmp_path).lines("looked") == ["a", "b", "c"]


@pytest.mark.chaos
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_killed_at_every_write(tmp_path: Path, step: int) -> None:
    """Every commit, or every fourth, is a moment to die at. The effect is made once, or the run says that it does not know."""
    script = [
        looks("a", "b"),
        looks({"thing": "x"}, tool="change"),
        looks("c"),
        concludes("a, b and c were looked at.", "E1", "E2", "E4"),
    ]
    codes: dict[int, int] = {}
    for number in range(1, 200, step):
        folder = tmp_path / str(number)
        folder.mkdir()
        World(folder).write(*script)

        def start(folder: Path = folder, number: int = number) -> None:
            kill_at_commit(number)
            sys.exit(int(Loop(folder).start().exit_code))

        if in_child(start) != -signal.SIGKILL:
            break
        resumed = in_child(lambda folder=folder: sys.exit(_go_on(folder)))  # type: ignore[misc]
        assert World(folder).lines("done") in (["x"], []), (
            f"the effect happened twice, killed at write {number}"
        )
        codes[number] = resumed
        if World(folder).lines("done") == []:
            assert resumed != ExitCode.OK, f"the effect was lost silently, killed at write {number}"
    assert number > 20
    assert set(codes.values()) <= {ExitCode.OK, ExitCode.EFFECT_UNKNOWN}
    assert list(codes.values()).count(ExitCode.EFFECT_UNKNOWN) <= 3


def _go_on(folder: Path) -> int:
    """Resume, or start where the first attempt did not get as far as having a run."""
    loop = Loop(folder)
    known = loop.store.runs.get(RUN) is not None
    return int((loop.resume() if known else loop.start()).exit_code)


@pytest.mark.slow
def test_two_resumes_at_the_same_instant(tmp_path: Path) -> None:
    World(tmp_path).write(
        looks({"thing": "a", "behave": "kill_once"}),
        looks({"thing": "x"}, tool="change"),
        concludes("a was looked at.", "E1"),
    )
    assert program(tmp_path, "start").returncode == -signal.SIGKILL
    barrier = FORK.Barrier(2)

    def race() -> None:
        loop = Loop(tmp_path)
        barrier.wait(GUARD)
        try:
            sys.exit(int(loop.resume().exit_code))
        except RunBusyError as busy:
            sys.exit(int(busy.exit_code))

    racers = [FORK.Process(target=race) for _ in range(2)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(GUARD)
    codes = sorted(racer.exitcode or 0 for racer in racers)
    assert codes in ([0, ExitCode.BUSY], [0, 0])  # the second may come when the first has ended
    assert World(tmp_path).lines("done") == ["x"]


@pytest.mark.slow
def test_two_processes_one_database(tmp_path: Path) -> None:
    script = [*(looks(f"thing-{n}") for n in range(40)), concludes("thing-1 was looked at.", "E2")]
    World(tmp_path).write(*script)

    def work(run: str) -> None:
        sys.exit(int(Loop(tmp_path).start(run=run, turns=60).exit_code))

    workers = [FORK.Process(target=work, args=(f"inv-20240501-{n}",)) for n in ("aaaa", "bbbb", "cccc")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(GUARD)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]


@pytest.mark.slow
def test_a_store_that_fails_in_mid_run_stops_it_at_once(tmp_path: Path) -> None:
    """The disk is full (a page limit stands in for it): nothing more is done, and what was done is not done again."""
    World(tmp_path).write(
        looks({"thing": "x"}, tool="change"),
        *(looks({"thing": f"t{n}", "behave": "big"}) for n in range(40)),
        concludes("t1 was looked at.", "E3"),
    )

    def full() -> None:
        loop = Loop(tmp_path)
        db = loop.store.database
        (pages,) = db.rows("PRAGMA page_count")[0]
        db.rows(f"PRAGMA max_page_count = {pages + 60}")
        try:
            loop.start(turns=60)
        except StoreFailedError as failed:
            sys.exit(int(failed.exit_code) if "full" in str(failed) else 99)

    assert in_child(full) == ExitCode.INTERNAL
    looked = len(World(tmp_path).lines("looked"))
    assert looked < 40
    assert in_child(lambda: sys.exit(int(Loop(tmp_path).resume().exit_code))) == 0
    assert World(tmp_path).lines("done") == ["x"]
    assert len(World(tmp_path).lines("looked")) <= 41


def test_an_unknown_run_starts_nothing(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.world.write(looks("a"))
    with pytest.raises(NotFoundError):
        loop.resume("inv-20240501-none")
    assert loop.world.lines("looked") == []
    assert list(loop.store.runs.list()) == []
