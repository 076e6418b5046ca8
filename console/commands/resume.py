"""`opsleuth resume`: continue with a run from its last node."""

import sys

import click

from opsleuth.checkpoints.processes import is_held, status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.console.run_attempt import resume_run
from opsleuth.console.screen import LinePart
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.console.time_formats import format_age
from opsleuth.state.clock import SystemClock, format_timestamp
from opsleuth.state.errors import UsageError

MOST_CHOICES = 9
"""Runs that are offered where none is named."""


@click.command("resume", cls=CliCommand)
@click.argument("run_id", metavar="[RUN|-]", required=False)
def resume_chosen_run(run_id: str | None) -> int:
    """Continue a run from its last node; without RUN you are asked which.

    Limits that are given (--max-turns and similar ones) are new totals.
    """
    options = current_options()
    return resume_run(options, run_id or pick_resumable_run(options))


def pick_resumable_run(options: GlobalOptions) -> str:
    """The id of the run that a person picks. Raises UsageError where nobody can be asked."""
    if options.no_input or options.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "which run? Give its id, the beginning of it, or - for the newest; `opsleuth list` shows them all"
        )
    rows = list_resumable_runs(options)[:MOST_CHOICES]
    if not rows:
        raise UsageError("no run can be resumed: `opsleuth list` shows how they ended")
    screen, now = screen_for_options(options), SystemClock().now()
    for number, row in enumerate(rows, start=1):
        age = format_age(format_timestamp(row.updated), now)
        why = f" ({row.stop_reason.value.replace('_', ' ')})" if row.stop_reason else ""
        facts = f"  {status_to_show(row)}{why}  {age} ago  {row.question}"
        screen.line(f"{number}  ", LinePart(row.id, "id"), facts)
    only = 1 if len(rows) == 1 else None
    return rows[click.prompt("resume which", type=click.IntRange(1, len(rows)), default=only) - 1].id


def list_resumable_runs(options: GlobalOptions) -> list[RunRow]:
    """The newest runs that can go on and that no process is working on."""
    with open_store_for_reading(options) as store:
        return [row for row in store.runs.list() if row.resumable and not is_held(row)]
