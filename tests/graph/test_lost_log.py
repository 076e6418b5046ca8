"""A process that stands still, and SQLite's log lost with the power: an effect that was started is known to have been."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, World, concludes, looks

from opsleuth.checkpoints.errors import RunBusyError
from opsleuth.state.run_status import ExitCode

RUN = "inv-20240501-test"
GUARD = 60
FORK = multiprocessing.get_context("fork")


def script(behave: str) -> list[Any]:
    return [
        looks("a", "b"),
        looks({"thing": "x", "behave": behave}, tool="change"),
        looks("c"),
        concludes("a, b and c were looked at.", "E1", "E2", "E4"),
    ]


def in_child(work: Callable[[], object]) -> int:
    process = FORK.Process(target=work)
    process.start()
    process.join(GUARD)
    assert process.exitcode is not None, "the child hangs"
    return process.exitcode


def resume(folder: Path) -> int:
    return in_child(lambda: sys.exit(int(Loop(folder).resume().exit_code)))


def lose_log(folder: Path) -> int:
    """Remove what SQLite keeps beside the file; how many bytes that were."""
    lost = [folder / "store.db-wal", folder / "store.db-shm"]
    size = sum(path.stat().st_size for path in lost if path.exists())
    for path in lost:
        path.unlink(missing_ok=True)
    return size


def test_an_effect_whose_log_is_lost_is_unknown_and_not_made_again(tmp_path: Path) -> None:
    World(tmp_path).write(*script("kill_once"))
    assert in_child(lambda: Loop(tmp_path).start()) == -signal.SIGKILL
    assert World(tmp_path).lines("done") == ["x"]
    lose_log(tmp_path)
    assert resume(tmp_path) == ExitCode.EFFECT_UNKNOWN
    assert World(tmp_path).lines("done") == ["x"]


def test_a_finished_effect_whose_log_is_lost_is_not_made_again(tmp_path: Path) -> None:
    World(tmp_path).write(*script("ok"))

    def die_after_the_effect() -> None:
        heard: list[str] = []
        loop = Loop(tmp_path)

        def hear(event: Mapping[str, Any]) -> None:
            heard.append(event["type"])
            if heard[-1] == "tool.completed" and "effect.started" in heard:
                os.kill(os.getpid(), signal.SIGKILL)

        loop.listen(hear)
        loop.start()

    assert in_child(die_after_the_effect) == -signal.SIGKILL
    assert lose_log(tmp_path) > 0
    assert resume(tmp_path) == ExitCode.EFFECT_UNKNOWN
    assert World(tmp_path).lines("done") == ["x"]


def test_a_process_that_stands_still_keeps_its_run_and_its_effect_is_unknown_when_it_dies(
    tmp_path: Path,
) -> None:
    World(tmp_path).write(*script("hang_once"))

    def stop_in_the_effect() -> None:
        loop = Loop(tmp_path)

        def hear(event: Mapping[str, Any]) -> None:
            if event["type"] == "effect.started":
                os.kill(os.getpid(), signal.SIGSTOP)

        loop.listen(hear)
        loop.start()

    process = FORK.Process(target=stop_in_the_effect)
    process.start()
    assert process.pid is not None
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    with pytest.raises(RunBusyError):
        Loop(tmp_path).resume()
    process.kill()
    process.join(GUARD)
    assert resume(tmp_path) == ExitCode.EFFECT_UNKNOWN
    assert World(tmp_path).lines("done") == []
