"""One process per run: between processes, within one, and after the holder was killed."""

import signal

import pytest
from places import told
from programs import line, program, say

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.errors import NotFoundError, RunBusyError
from opsleuth.checkpoints.processes import status_to_show, this_process
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.run_status import ExitCode, Status

PRELUDE = """
import os, subprocess, sys
from places import place_of
from opsleuth.checkpoints.errors import RunBusyError
from opsleuth.redaction.redactor import Redactor
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import SystemClock
store = Store.open(place_of(sys.argv[1]), SystemClock(), Redactor())
"""
HOLD = PRELUDE + "with store.lock(sys.argv[2]):\n    print('held', flush=True)\n    sys.stdin.read()\n"
HOLD_WITH_CHILD = PRELUDE + (
    "with store.lock(sys.argv[2]):\n"
    "    child = subprocess.Popen([sys.executable, '-c', 'import sys; print(); sys.stdin.read()'], close_fds=False,\n"
    "                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
    "    child.stdout.readline()\n"  # only then has it let go of what is closed on exec
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)
RACE = PRELUDE + (
    "print('ready', flush=True)\n"
    "sys.stdin.readline()\n"
    "try:\n"
    "    with store.lock(sys.argv[2]):\n"
    "        print('won', flush=True)\n"
    "        sys.stdin.read()\n"
    "except RunBusyError as error:\n"
    "    print('busy', int(error.exit_code), flush=True)\n"
)
WRITE = PRELUDE + (
    "run = store.runs.create(RunRow(id=sys.argv[2], question='q')).id\n"
    "with store.lock(run):\n"
    "    for number in range(200):\n"
    "        store.events.append(run, 'step.completed', {'number': number})\n"
    "        store.runs.update(run, turn=number)\n"
    "assert store.events.verify(run).lines == 200\n"
)


def test_another_process_is_told_who_holds_the_run(store: Store, place: Place, run: str) -> None:
    with program(HOLD, told(place), run) as holder:
        assert line(holder) == "held"
        with (
            pytest.raises(RunBusyError, match=f"{run} is held by process {holder.pid}") as raised,
            store.lock(run),
        ):
            pass
        assert raised.value.exit_code is ExitCode.BUSY
        row = store.runs.get(run)
        assert row is not None
        assert (row.pid, status_to_show(row)) == (holder.pid, Status.RUNNING)


@pytest.mark.parametrize("code", [HOLD, HOLD_WITH_CHILD])
def test_kill_9_frees_the_lock_and_the_row_says_interrupted(
    store: Store, place: Place, run: str, code: str
) -> None:
    with program(code, told(place), run) as holder:
        assert line(holder) == "held"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        row = store.runs.get(run)
        assert row is not None
        assert status_to_show(row) is Status.INTERRUPTED
        with store.lock(run):
            mine = store.runs.get(run)
            assert mine is not None
            assert mine.pid == this_process().pid
    after = store.runs.get(run)
    assert after is not None
    assert after.pid is None


def test_of_two_at_the_same_instant_one_wins(store: Store, place: Place, run: str) -> None:
    with program(RACE, told(place), run) as one, program(RACE, told(place), run) as two:
        assert line(one) == line(two) == "ready"
        for process in (one, two):
            say(process, "go")
        assert sorted((line(one), line(two))) == ["busy 10", "won"]


def test_the_same_process_cannot_hold_a_run_twice(store: Store, second: Store, run: str) -> None:
    with store.lock(run):
        with pytest.raises(RunBusyError), second.lock(run):
            pass
        store.runs.create(RunRow(id="inv-other", question="q"))
        with second.lock("inv-other"):
            pass
    with second.lock(run):
        pass


@pytest.mark.parametrize("wrong", ["", "../x", "a/b", ".migration", "x" * 101, "a\n"])
def test_a_lock_needs_a_run_id(store: Store, wrong: str) -> None:
    with pytest.raises(NotFoundError, match="not a run id"):
        store.lock(wrong)


@pytest.mark.slow
def test_two_processes_write_to_one_new_file(place: Place) -> None:
    with program(WRITE, told(place), "inv-one") as one, program(WRITE, told(place), "inv-two") as two:
        assert (one.wait(), two.wait()) == (0, 0)
