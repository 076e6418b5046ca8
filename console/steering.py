"""`pause`, `cancel`, `terminate`, `retry`: to a run that lives in another process, or to one that nobody holds."""

from typing import Literal

from opsleuth.checkpoints.control import Kind
from opsleuth.checkpoints.errors import Busy
from opsleuth.checkpoints.processes import is_held, standing
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.console import running
from opsleuth.console.options import Options
from opsleuth.console.output import note
from opsleuth.console.reading import found_run
from opsleuth.state.clock import SystemClock
from opsleuth.state.outcome import FINISHED, ExitCode


def pause(options: Options, run_id: str) -> int:
    """`pause`: a run that nobody holds is standing still already."""
    run = found_run(options, run_id)
    if not is_held(run):
        note(f"{run.id} is not running ({standing(run)}): there is nothing to pause")
        return ExitCode.OK
    _wish(options, run, "pause", "")
    note(f"{run.id} will pause: a look-up in flight is stopped, a change in flight is waited for")
    return ExitCode.OK


def end(options: Options, run_id: str, kind: Literal["cancel", "terminate"], reason: str) -> int:
    """`cancel`, `terminate`: whoever holds the run ends it; if nobody does, this process."""
    run = found_run(options, run_id)
    if run.status in FINISHED:
        note(f"{run.id} is over: {run.status}")
        return ExitCode.OK
    _wish(options, run, kind, reason)
    try:
        return running.attempt(options, lambda runner: runner.end(run.id, kind))
    except Busy as busy:
        note(f"process {busy.pid} holds {run.id} and ends it now")
        return ExitCode.OK


def retry(options: Options, run_id: str) -> int:
    """`retry`: failed look-ups of the last turn are made again."""
    run = found_run(options, run_id)
    return running.attempt(options, lambda runner: runner.retry(run.id))


def _wish(options: Options, run: RunRow, kind: Kind, reason: str) -> None:
    with Store.open(options.database, SystemClock(), Redactor()) as store:
        store.control.set(run.id, kind, reason)
