"""What happens to a run of the chaos besides the kill: other clocks, hosts and declarations, links, restrictions, forks, replays.

Each of these is a dimension of `chaos.py`, which counts what came of it.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from acting import RUN, Acting, applied_by

from opsleuth.graph.stepping.fork import ForkRequest, call_checker_for, fork_run
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import Status
from opsleuth.tools.declared.commands import DeclaredCommand, build_command_tool
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.tape import Tape

CLOCKS = {"clock -4 s": -4.0, "clock -400 days": -400 * 86_400.0, "clock +400 days": 400 * 86_400.0}
SECOND_HOST, DECLARATION, REPLAY = "second host", "changed declaration", "replay"
READ_ONLY, SYMLINK, FORKED = "restriction at resume", "symlink", "fork"
DIMENSIONS = ("", *CLOCKS, SYMLINK, READ_ONLY, FORKED, SECOND_HOST, DECLARATION, REPLAY)
"""The first is a kill and nothing else."""
NOTES = "notes"
"""The target of the declared command."""


def shift_clocks(seconds: float) -> SystemClock:
    """Let this process live at another time: its clock, and the time that the framework puts into its ids."""
    real = time.time_ns
    time.time_ns = lambda: real() + int(seconds * 1e9)

    class ShiftedClock(SystemClock):
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(seconds=seconds)

    return ShiftedClock()


def move_to_other_host() -> None:
    """Let this process be one of another machine: the numbers of processes there say nothing here."""
    here = os.uname()
    os.uname = lambda: os.uname_result((here.sysname, "another-host", *here[2:]))


def declare_note(folder: Path, version: int) -> ToolSpec:
    """A command of the operator that leaves a line where it was really run; another version is another declaration."""
    argv = ("sh", "-c", f"echo v{version} >> {folder}/notes.log")
    return build_command_tool(DeclaredCommand(name="note", purpose="Note it.", argv=argv, target=NOTES))


def read_notes(folder: Path) -> list[str]:
    """What the declared command left, in order."""
    path = folder.resolve() / "notes.log"
    return path.read_text().split() if path.exists() else []


def find_wrong_note(acting: Acting, notes: list[str]) -> str:
    """A line that was written by another declaration than the one that a person approved, in words."""
    rows = [row for row in acting.store.effects.list(RUN) if row.target == NOTES]
    approved = {a.id: str(a.document) for a in acting.store.approvals.list(RUN)}
    for note in notes:
        if not any(f"echo {note} " in approved.get(str(row.approval), "") for row in rows):
            return f"the command that wrote {note} was approved by nobody"
    return ""


def drive_fork(acting: Acting) -> None:
    """A branch from the beginning of the run, by a person who repeats nothing."""
    if not acting.store.history.list(RUN):
        return
    check = call_checker_for(acting.parts, acting.store.runs.find(RUN))
    point = acting.store.history.find(RUN, "c0")
    made = fork_run(acting.store, point, lambda: f"{RUN}-fork", check, ForkRequest(parts=acting.parts))
    outcome = acting.resume(made.run.id)
    while outcome.status is Status.WAITING:
        for asked in acting.pending(made.run.id):
            acting.deny(asked) if asked.about == "call" else acting.resolve(asked, happened=True)
        outcome = acting.resume(made.run.id)


def record_tape(folder: Path, url: str, path: Path, script: list[Any]) -> None:
    """Record an undisturbed run."""
    acting = Acting(folder, url)
    acting.parts = acting.replaced(tape=Tape.recording(path, Redactor()))
    _approve_to_the_end(acting, script)


def drive_replay(folder: Path, url: str, tape: Path, script: list[Any]) -> str:
    """Replay the recording beside the run; what it did although it is a replay, in words."""
    place = folder / "replayed"
    place.mkdir()
    before = applied_by(folder)
    acting = Acting(place, url)
    acting.parts = acting.replaced(tape=Tape.playing(tape))
    _approve_to_the_end(acting, script)
    if applied_by(folder) != before:
        return "a replay changed the world"
    if any(row.happened for row in acting.store.effects.list(RUN)):
        return "a replay says that it changed something"
    report = acting.store.reports.get(RUN)
    return "" if report and report.get("replay") else "the report does not say that it is of a replay"


def _approve_to_the_end(acting: Acting, script: list[Any]) -> None:
    outcome = acting.start(*script)
    while outcome.status is Status.WAITING:
        acting.approve_all()
        outcome = acting.resume()


COLUMNS = (
    "trials",
    "killed",
    "executed more than once",
    "lost without a word",
    "exit 0 without a verdict",
    "illegal states",
    "asked a person what happened",
)


def format_table(counts: Mapping[str, Counter[str]]) -> Iterator[str]:
    """One line for each dimension, and one for all of them."""
    total: Counter[str] = Counter()
    for row in counts.values():
        total.update(row)
    yield f"{'dimension':24}" + "".join(f"{_short(name):>12}" for name in COLUMNS)
    for name, row in [*counts.items(), ("all", total)]:
        yield f"{name:24}" + "".join(f"{row[column]:>12}" for column in COLUMNS)


def _short(column: str) -> str:
    return {
        "executed more than once": "twice",
        "lost without a word": "lost",
        "exit 0 without a verdict": "0, no word",
        "illegal states": "illegal",
        "asked a person what happened": "asked",
    }.get(column, column)
