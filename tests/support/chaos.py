"""Kill a run that acts, at any moment, and count what the world really saw.

    python tests/support/chaos.py --random 1000 --seed 1 [--writes all|N] [--jobs 2]

A trial is one run with three effects on a control plane of its own process. It is killed with SIGKILL at the n-th
commit of the store, or at a random moment; a second process resumes it, with a person who approves what is asked
and, where an outcome is unknown, goes and looks. The switches of the control plane are spread over the trials.
The seed fixes scenario and moment of every trial. Workers are forked from a process that has imported everything.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from acting import MESSAGE, ROLLBACK, RUN, Acting, applied_by, calls, twice
from chaos_dimensions import (
    CLOCKS,
    COLUMNS,
    DECLARATION,
    DIMENSIONS,
    FORKED,
    NOTES,
    READ_ONLY,
    REPLAY,
    SECOND_HOST,
    SYMLINK,
    declare_note,
    drive_fork,
    drive_replay,
    find_wrong_note,
    format_table,
    move_to_other_host,
    read_notes,
    record_tape,
    shift_clocks,
)
from commit_kills import kill_at_commit
from loop_rig import concludes, looks

from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.restrictions import NO_RESTRICTIONS, Restrictions
from opsleuth.scenarios.control_plane import build_plane_server
from opsleuth.scenarios.plane.ledger import PlaneLedger
from opsleuth.scenarios.plane.switches import MODES
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_status import FINISHED_STATUSES, ExitCode, Status

FORK = multiprocessing.get_context("fork")
GUARD = 90.0
CALL_SECONDS = 0.4
LATE_SECONDS = 0.2
SETTLED = 1.0
"""Seconds after which nothing more is applied late: the person looks no sooner."""

SCRIPT = [
    looks("a", "b"),
    calls(("service_scale", {"service": "catalog", "replicas": 6})),
    calls(("message_send", MESSAGE), ("service_rollback", ROLLBACK)),
    looks("c"),
    concludes("a and b were looked at.", "E1", "E2"),
]
EFFECTS = (("scale", "catalog"), ("message", "#incidents"), ("rollback", "orders-api"))
WRONG = ("executed more than once", "lost without a word", "exit 0 without a verdict", "illegal states")
REPORTED_EVERY = 20
LEGAL = {ExitCode.OK, ExitCode.CHECK_FAILED, ExitCode.DENIED, ExitCode.INCONCLUSIVE, ExitCode.EFFECT_UNKNOWN}


@dataclass(frozen=True)
class Trial:
    """One run: how the control plane behaves, and when the run dies. `moment` is a share of an undisturbed run."""

    number: int
    mode: str
    keys: bool
    readable: bool
    commit: int | None = None
    moment: float | None = None
    beside: str = ""

    @property
    def switch(self) -> dict[str, Any]:
        return {
            "mode": self.mode, "honours_keys": self.keys, "readable": self.readable, "seconds": LATE_SECONDS,
            "times": 2,
        }  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What came of a trial: what was done twice, what was lost without a word, what was not legal."""

    trial: Trial
    killed: bool
    twice: int = 0
    lost: int = 0
    illegal: str = ""
    asked: int = 0
    silent: int = 0


SWITCHES = tuple(product(sorted(MODES), (True, False), (True, False)))


def plan(seed: int, moments: int, writes: int) -> Iterator[Trial]:
    """Every write once, the switches in turn; then `moments` random ones, all switches equally often."""
    draw = random.Random(seed)
    for n in range(1, writes + 1):
        yield Trial(n, *SWITCHES[n % len(SWITCHES)], commit=n)
    for n in range(moments):
        beside = DIMENSIONS[n % len(DIMENSIONS)]
        yield Trial(writes + n + 1, *SWITCHES[n % len(SWITCHES)], moment=draw.random(), beside=beside)


def run_trial(trial: Trial, seconds: float, tape: Path | None = None) -> Result:
    """One trial from the beginning to the counting; `seconds` is what an undisturbed run takes, `tape` its recording."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108
    try:
        plane, port = _serve(folder, trial)
        try:
            killed = _doomed(folder, port, trial, seconds)
            code, asked, wrong = _finish(folder, port, trial, tape)
        finally:
            plane.kill()
            plane.join()
        counted = _counted(folder, trial, code, killed=killed, asked=asked)
        return replace(counted, illegal=counted.illegal or wrong)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(folder: Path, trial: Trial) -> tuple[BaseProcess, int]:
    receiver, sender = FORK.Pipe(duplex=False)

    def serve() -> None:
        server = build_plane_server(folder / "plane.jsonl")
        server.engine.switches.set("*", trial.switch)
        sender.send(server.server_port)
        server.serve_forever(poll_interval=0.02)

    process: BaseProcess = FORK.Process(target=serve, daemon=True)
    process.start()
    return process, receiver.recv()


def _doomed(folder: Path, port: int, trial: Trial, seconds: float) -> bool:
    """The first process; True if it was killed before it was done."""

    def live() -> None:
        if trial.commit is not None:
            kill_at_commit(trial.commit)
        with suppress(OpsleuthError):  # on a second host: the other one was first
            drive(folder, port, trial)

    def intrude() -> None:
        move_to_other_host()
        with suppress(OpsleuthError):
            drive(folder, port, trial)

    process: BaseProcess = FORK.Process(target=live)
    process.start()
    intruder: BaseProcess = FORK.Process(target=intrude)
    if trial.beside == SECOND_HOST and trial.moment is not None:
        process.join(trial.moment * seconds / 2)
        intruder.start()
        process.join(trial.moment * seconds / 2)
    else:
        process.join(GUARD if trial.moment is None else trial.moment * seconds)
    if process.is_alive():
        process.kill()
    process.join(GUARD)
    if intruder.pid is not None:
        intruder.join(GUARD)
    return process.exitcode == -signal.SIGKILL


def _finish(folder: Path, port: int, trial: Trial, tape: Path | None) -> tuple[int | None, int, str]:
    receiver, sender = FORK.Pipe(duplex=False)
    process: BaseProcess = FORK.Process(target=lambda: sender.send(drive_second(folder, port, trial, tape)))
    process.start()
    answer: tuple[int | None, int, str] = receiver.recv() if receiver.poll(GUARD) else (None, 0, "")
    if process.is_alive() and answer[0] is None:
        process.kill()
    process.join(GUARD)
    return answer


def drive_second(folder: Path, port: int, trial: Trial, tape: Path | None) -> tuple[int, int, str]:
    """Drive the run to its end under what happens besides the kill: exit code, what was unknown, what is wrong."""
    clock, restrictions = SystemClock(), Restrictions(read_only=trial.beside == READ_ONLY)
    place, wrong = folder, ""
    if trial.beside in CLOCKS:
        clock = shift_clocks(CLOCKS[trial.beside])
    if trial.beside == SECOND_HOST:
        move_to_other_host()
    if trial.beside == SYMLINK:
        place = folder / "link"
        place.symlink_to(folder, target_is_directory=True)
    ended = drive(place, port, trial, clock, restrictions, version=2)
    if trial.beside == FORKED:
        drive_fork(_acting(place, port, trial))
    if trial.beside == REPLAY and tape is not None:
        wrong = drive_replay(place, f"http://127.0.0.1:{port}", tape, SCRIPT)
    return *ended, wrong


def _acting(
    folder: Path, port: int, trial: Trial, clock: SystemClock | None = None, version: int = 1
) -> Acting:
    more = (declare_note(folder, version),) if trial.beside == DECLARATION else ()
    url = f"http://127.0.0.1:{port}"
    return Acting(folder, url, keys=trial.keys, settles=SETTLED, clock=clock, more=more)


def drive(
    folder: Path,
    port: int,
    trial: Trial,
    clock: SystemClock | None = None,
    restrictions: Restrictions = NO_RESTRICTIONS,
    version: int = 1,
) -> tuple[int, int]:
    """Start or resume, and answer like a person, until the run is over: its exit code, and what was unknown."""
    acting = _acting(folder, port, trial, clock, version)
    acting.parts = acting.replaced(restrictions=restrictions)
    known = acting.store.runs.get(RUN) is not None
    limits: dict[str, Any] = {"call_seconds": CALL_SECONDS, "turns": 40}
    outcome = acting.resume() if known else acting.start(*_script(trial), **limits)
    asked = 0
    while outcome.status is Status.WAITING:
        asked += _answer(acting, folder)
        outcome = acting.resume()
    return _code(outcome), asked


def _script(trial: Trial) -> list[Any]:
    declared = [calls(("command_run_note", {}))] if trial.beside == DECLARATION else []
    return [*SCRIPT[:3], *declared, *SCRIPT[3:]]


def _code(outcome: AttemptOutcome) -> int:
    return int(outcome.exit_code) if outcome.status in FINISHED_STATUSES else -1


def _answer(acting: Acting, folder: Path) -> int:
    """Approve what is asked; where an outcome is unknown, wait until nothing comes late and look."""
    unknown = 0
    for approval in acting.pending():
        if approval.about == "call":
            acting.approve(approval)
            continue
        unknown += 1
        time.sleep(SETTLED)
        target = str(approval.document["target"]).removeprefix("plane/")
        happened = (
            bool(read_notes(folder))
            if target == NOTES
            else any(done == target for _, done in applied_by(folder))
        )
        acting.resolve(approval, happened=happened)
    return unknown


def _counted(folder: Path, trial: Trial, code: int | None, *, killed: bool, asked: int) -> Result:
    """Compare what the world saw with what the run says."""
    if code is None:
        return Result(trial, killed, illegal="the second process did not come to an end")
    done = PlaneLedger(folder / "plane.jsonl", 0.0).applications
    acting = Acting(folder, "http://127.0.0.1:9", keys=trial.keys)
    rows = {row.target: row for row in acting.store.effects.list(RUN)}
    lost, notes = 0, read_notes(folder)
    seen = {f"plane/{target}": any(a.target == target for a in done) for _, target in EFFECTS}
    if trial.beside == DECLARATION:
        seen[NOTES] = bool(notes)
    for target, happened in seen.items():
        row = rows.get(target)
        if not happened and row is not None and row.happened and row.verified is True:
            lost += 1
        if happened and (row is None or (row.status == "failed_clean" or row.outcome == "absent")):
            lost += 1
        unsaid = trial.beside != READ_ONLY and not _said(acting, target)  # there the planner is told at once
        if not happened and row is None and unsaid:
            lost += 1
    illegal = _illegal(acting, code) or find_wrong_note(acting, notes)
    repeated = len(twice(list(done))) + max(0, len(notes) - 1)
    silent = int(code == ExitCode.OK and not acting.store.runs.find(RUN).verdict)
    return Result(trial, killed, repeated, lost, illegal, asked, silent)


def _said(acting: Acting, target: str) -> bool:
    """Whether an observation tells that the call on this target was not executed."""
    return any(o.target == target and o.status.is_error for o in acting.store.observations.list(RUN))


def _illegal(acting: Acting, code: int) -> str:
    """What of the stored state contradicts itself, in words."""
    if code not in LEGAL:
        return f"ended with {code}"
    used = {a.id for a in acting.store.approvals.list(RUN, "used")}
    granted = {row.approval for row in acting.store.effects.list(RUN)}
    if used != granted:
        return f"approvals used {sorted(used)}, effects rest on {sorted(map(str, granted))}"
    if acting.store.effects.list(RUN, "started"):
        return "an effect is still started after the end"
    if acting.store.reports.get(RUN) is None:
        return "no report"
    verified = acting.store.events.verify(RUN)
    return verified.problem if getattr(verified, "problem", "") else ""


def measured() -> tuple[float, int]:
    """Seconds and commits of an undisturbed run."""
    began = time.monotonic()
    result = run_trial(Trial(0, "normal", keys=True, readable=True), 0.0)
    took = time.monotonic() - began
    if result.twice or result.lost or result.illegal:
        raise SystemExit(f"the undisturbed run is wrong already: {result}")
    return took / 2 + 0.2, _commits()


def _commits() -> int:
    """How many commits a whole run makes: the first number at which nothing is killed, found by doubling."""
    low, high = 1, 64
    while run_trial(Trial(0, "normal", keys=True, readable=True, commit=high), 0.0).killed:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        killed = run_trial(Trial(0, "normal", keys=True, readable=True, commit=middle), 0.0).killed
        low, high = (middle, high) if killed else (low, middle)
    return low


def run_all(
    seed: int,
    moments: int,
    writes: int | None,
    jobs: int,
    say: Callable[[str], None] = print,
    within: float | None = None,
) -> Mapping[str, Counter[str]]:
    """The trials; says what went wrong, prints how far it is to stderr, returns the counts of each dimension.

    With `within` (seconds) the trials are drawn in random order, and none is begun after that time.
    """
    begun = time.monotonic()
    print_progress("measuring an undisturbed run: its seconds, and by trials its commits")
    seconds, commits = measured()
    writes = commits if writes is None else min(writes, commits)
    total = writes + moments
    print_progress(f"{total} trials, each a run of about {seconds:.1f} s and {commits} commits")
    counts: dict[str, Counter[str]] = {}
    tape = make_tape(Path(tempfile.mkdtemp(prefix="chaos-tape-")))
    # Processes, not threads: what is forked while another thread holds a lock waits for it for ever.
    with ProcessPoolExecutor(jobs, mp_context=FORK) as pool:
        planned = list(plan(seed, moments, writes))
        if within is not None:
            random.Random(seed).shuffle(planned)
        trials = pool.map(partial(run_trial, seconds=seconds, tape=tape), planned)
        for number, done in enumerate(trials, 1):
            name = "kill at each write" if done.trial.commit else done.trial.beside or "kill at a moment"
            row = counts.setdefault(name, Counter())
            row.update(dict(zip(COLUMNS, figures_of(done), strict=True)))
            if done.twice or done.lost or done.illegal or done.silent:
                say(f"seed {seed}: {done}")
            if number % REPORTED_EVERY == 0:
                print_progress(
                    f"{number} of {total} trials, {sum(map(count_wrong, counts.values()))} went wrong"
                )
            if within is not None and time.monotonic() - begun > within:
                print_progress(f"stopped after {number} of {total} trials: {within:.0f} s are over")
                pool.shutdown(cancel_futures=True)
                break
    shutil.rmtree(tape.parent)
    return counts


def figures_of(done: Result) -> tuple[int, ...]:
    """The figures of one trial, in the order of the table's columns."""
    return 1, done.killed, done.twice, done.lost, done.silent, bool(done.illegal), done.asked


def count_wrong(row: Mapping[str, int]) -> int:
    return sum(row[name] for name in WRONG)


def print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def make_tape(folder: Path) -> Path:
    """Record an undisturbed run, for the replays."""
    plane, port = _serve(folder, Trial(0, "normal", keys=True, readable=True))
    try:
        process: BaseProcess = FORK.Process(
            target=record_tape, args=(folder, f"http://127.0.0.1:{port}", folder / "tape.jsonl", SCRIPT)
        )
        process.start()
        process.join(GUARD)
    finally:
        plane.kill()
        plane.join()
    return folder / "tape.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--random", type=int, default=1000, dest="moments")
    parser.add_argument("--writes", type=int, default=None, help="the first N writes; default: every one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--within", type=float, help="begin no trial after so many seconds")
    given = parser.parse_args()
    counts = run_all(given.seed, given.moments, given.writes, given.jobs, within=given.within)
    print("\n".join(format_table(counts)))
    return int(any(map(count_wrong, counts.values())))


if __name__ == "__main__":
    sys.exit(main())
