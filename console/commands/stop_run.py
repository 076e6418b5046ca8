"""`opsleuth pause`, `cancel`, `terminate` and `retry`: for a run in another process, or one that no process holds."""

from typing import Literal

import click

from opsleuth.checkpoints.control_requests import Kind
from opsleuth.checkpoints.errors import RunBusyError
from opsleuth.checkpoints.processes import is_held, status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import write_note
from opsleuth.console.run_attempt import attempt_run
from opsleuth.console.store_access import find_run, open_store_for_writing
from opsleuth.state.run_status import FINISHED_STATUSES, ExitCode


@click.command("pause", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
def pause_run(run_id: str) -> int:
    """Stop a run where it is; resume continues from there."""
    options = current_options()
    run = find_run(options, run_id)
    if not is_held(run):
        write_note(f"{run.id} is not running ({status_to_show(run)}): there is nothing to pause")
        return ExitCode.OK
    request_stop(options, run, "pause")
    write_note(f"{run.id} will pause: a look-up in flight is stopped, a change in flight is waited for")
    return ExitCode.OK


@click.command("cancel", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
def cancel_run(run_id: str) -> int:
    """End a run politely: a report of what was found, and it can still be resumed."""
    return end_run(current_options(), run_id, "cancel")


@click.command("terminate", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
@click.option("--reason", required=True, metavar="TEXT", help="It goes into the record.")
def terminate_run(run_id: str, reason: str) -> int:
    """End a run for good."""
    return end_run(current_options(), run_id, "terminate", reason)


@click.command("retry", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
def retry_failed_calls(run_id: str) -> int:
    """Continue a run and repeat the failed look-ups of its last turn; never a change."""
    options = current_options()
    run = find_run(options, run_id)
    return attempt_run(options, lambda runner: runner.retry(run.id))


def end_run(
    options: GlobalOptions, run_id: str, kind: Literal["cancel", "terminate"], reason: str = ""
) -> int:
    """The process that holds the run ends it; if none does, this process ends it."""
    run = find_run(options, run_id)
    if run.status in FINISHED_STATUSES:
        write_note(f"{run.id} is over: {run.status}")
        return ExitCode.OK
    request_stop(options, run, kind, reason)
    try:
        return attempt_run(options, lambda runner: runner.end(run.id, kind))
    except RunBusyError as busy:
        write_note(f"process {busy.pid} holds {run.id} and ends it now")
        return ExitCode.OK


def request_stop(options: GlobalOptions, run: RunRow, kind: Kind, reason: str = "") -> None:
    """Store the request, which the process that holds the run reads between two steps."""
    with open_store_for_writing(options) as store:
        store.control.set(run.id, kind, reason)
