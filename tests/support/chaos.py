"""Kill a run that acts, at any moment, and count what the world really saw.

    python tests/support/chaos.py --random 1000 --seed 1 [--writes all|N] [--jobs 2]

A trial is one run with three effects on a control plane of its own process. It is killed with SIGKILL at the n-th
commit of the store, or at a random moment; a second process resumes it, with a person who approves what is asked
and, where an outcome is unknown, goes and looks. The switches of the control plane are spread over the trials.
The seed fixes scenario and moment of every trial. Workers are forked from a process that has imported everything.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from acting import MESSAGE, ROLLBACK, RUN, Acting, calls, twice
from loop_rig import concludes, looks

from opsleuth.graph.outcome import Outcome
from opsleuth.scenarios.control_plane import build
from opsleuth.scenarios.plane.ledger import Ledger
from opsleuth.scenarios.plane.switches import MODES
from opsleuth.state.outcome import FINISHED, ExitCode, Status

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


SWITCHES = tuple(product(sorted(MODES), (True, False), (True, False)))


def plan(seed: int, moments: int, writes: int) -> Iterator[Trial]:
    """Every write once, the switches in turn; then `moments` random ones, all switches equally often."""
    draw = random.Random(seed)  # noqa: S311 - repeatable by its seed
    for n in range(1, writes + 1):
        yield Trial(n, *SWITCHES[n % len(SWITCHES)], commit=n)
    for n in range(moments):
        yield Trial(writes + n + 1, *SWITCHES[n % len(SWITCHES)], moment=draw.random())


def run_trial(trial: Trial, seconds: float) -> Result:
    """One trial from the beginning to the counting; `seconds` is what an undisturbed run takes."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108
    try:
        plane, port = _serve(folder, trial)
        try:
            killed = _doomed(folder, port, trial, seconds)
            code, asked = _finish(folder, port, trial)
        finally:
            plane.kill()
            plane.join()
        return _counted(folder, trial, code, killed=killed, asked=asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(folder: Path, trial: Trial) -> tuple[BaseProcess, int]:
    receiver, sender = FORK.Pipe(duplex=False)

    def serve() -> None:
        server = build(folder / "plane.jsonl")
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
        drive(folder, port, trial)

    process: BaseProcess = FORK.Process(target=live)
    process.start()
    process.join(GUARD if trial.moment is None else trial.moment * seconds)
    if process.is_alive():
        process.kill()
    process.join(GUARD)
    return process.exitcode == -signal.SIGKILL


def _finish(folder: Path, port: int, trial: Trial) -> tuple[int | None, int]:
    receiver, sender = FORK.Pipe(duplex=False)
    process: BaseProcess = FORK.Process(target=lambda: sender.send(drive(folder, port, trial)))
    process.start()
    answer = receiver.recv() if receiver.poll(GUARD) else (None, 0)
    if process.is_alive() and answer[0] is None:
        process.kill()
    process.join(GUARD)
    return answer


def drive(folder: Path, port: int, trial: Trial) -> tuple[int, int]:
    """Start or resume, and answer like a person, until the run is over: its exit code, and what was unknown."""
    acting = Acting(folder, f"http://127.0.0.1:{port}", keys=trial.keys, settles=SETTLED)
    known = acting.store.runs.get(RUN) is not None
    limits: dict[str, Any] = {"call_seconds": CALL_SECONDS, "turns": 40}
    outcome = acting.resume() if known else acting.start(*SCRIPT, **limits)
    asked = 0
    while outcome.status is Status.WAITING:
        asked += _answer(acting, folder)
        outcome = acting.resume()
    return _code(outcome), asked


def _code(outcome: Outcome) -> int:
    return int(outcome.exit_code) if outcome.status in FINISHED else -1


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
        happened = any(a.target == target for a in Ledger(folder / "plane.jsonl", 0.0).applications)
        acting.resolve(approval, happened=happened)
    return unknown


def _counted(folder: Path, trial: Trial, code: int | None, *, killed: bool, asked: int) -> Result:
    """Compare what the world saw with what the run says."""
    if code is None:
        return Result(trial, killed, illegal="the second process did not come to an end")
    done = Ledger(folder / "plane.jsonl", 0.0).applications
    acting = Acting(folder, "http://127.0.0.1:9", keys=trial.keys)
    rows = {row.target: row for row in acting.store.effects.list(RUN)}
    lost = 0
    for _, target in EFFECTS:
        row = rows.get(f"plane/{target}")
        happened = any(a.target == target for a in done)
        if not happened and row is not None and row.happened and row.verified is True:
            lost += 1
        if happened and (row is None or (row.status == "failed_clean" or row.outcome == "absent")):
            lost += 1
        if not happened and row is None and not _said(acting, target):
            lost += 1
    illegal = _illegal(acting, code)
    return Result(trial, killed, len(twice(list(done))), lost, illegal, asked)


def _said(acting: Acting, target: str) -> bool:
    """Whether an observation tells that the call on this target was not executed."""
    return any(
        o.target == f"plane/{target}" and o.status.is_error for o in acting.store.observations.list(RUN)
    )


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


def kill_at_commit(number: int) -> None:
    """From now on in this process, die just before the n-th commit of any connection."""
    connect, commits = sqlite3.connect, 0

    def count(statement: str) -> None:
        nonlocal commits
        if statement.startswith("COMMIT"):
            commits += 1
            if commits == number:
                os.kill(os.getpid(), signal.SIGKILL)

    def counted(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = counted  # type: ignore[assignment]


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
    seed: int, moments: int, writes: int | None, jobs: int, say: Callable[[str], None] = print
) -> Mapping[str, int]:
    """All trials; prints what went wrong, returns the counts."""
    seconds, commits = measured()
    writes = commits if writes is None else min(writes, commits)
    counts: Counter[str] = Counter(writes=writes, moments=moments)
    # Processes, not threads: what is forked while another thread holds a lock waits for it for ever.
    with ProcessPoolExecutor(jobs, mp_context=FORK) as pool:
        for done in pool.map(partial(run_trial, seconds=seconds), plan(seed, moments, writes)):
            counts["trials"] += 1
            counts["killed"] += done.killed
            counts["executed more than once"] += done.twice
            counts["lost without a word"] += done.lost
            counts["illegal states"] += bool(done.illegal)
            counts["asked a person what happened"] += done.asked
            if counts["trials"] % 100 == 0:
                sys.stderr.write(f"{counts['trials']} trials\n")
            if done.twice or done.lost or done.illegal:
                say(f"seed {seed}: {done}")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--random", type=int, default=1000, dest="moments")
    parser.add_argument("--writes", type=int, default=None, help="the first N writes; default: every one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    given = parser.parse_args()
    counts = run_all(given.seed, given.moments, given.writes, given.jobs)
    print(json.dumps(dict(counts), indent=2))
    wrong = ("executed more than once", "lost without a word", "illegal states")
    return int(any(counts[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
