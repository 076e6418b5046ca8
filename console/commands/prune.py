"""`opsleuth prune`: remove old runs with everything that is stored for them."""

import shutil
import sys
from datetime import datetime, timedelta

import click

from opsleuth.checkpoints.errors import NotFoundError, RunBusyError
from opsleuth.checkpoints.store import Store
from opsleuth.console import event_lines
from opsleuth.console.options import CliCommand, DurationType, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.store_access import open_store_for_writing
from opsleuth.state.clock import SystemClock
from opsleuth.state.plurals import format_count


@click.command(
    "prune",
    cls=CliCommand,
    help="Remove runs last changed longer ago than this, with everything stored for them.",
)
@click.option(
    "--older-than", type=DurationType(), default="30d", show_default=True, metavar="D", help="Their age."
)
@click.option("--dry-run", is_flag=True, help="Only say which.")
def prune_runs(older_than: timedelta, *, dry_run: bool) -> int:
    """Whole runs by age. A run that a kept fork reads from stays, and one that a process works on by now."""
    options = current_options()
    before = SystemClock().now() - older_than
    with open_store_for_writing(options) as store:
        found = store.prune.candidates(before)
        dropped = 0
        if not dry_run:
            found = tuple(run for run in found if remove_run(store, run, before))
            dropped = store.prune.reclaim()
    if options.json:
        event_lines.write_json(sys.stdout, {"runs": list(found), "dry_run": dry_run, "bodies": dropped})
        return 0
    screen = screen_for_options(options)
    for run in found:
        screen.line(run)
    write_note(f"{format_count(len(found), 'run')} {'would be' if dry_run else 'were'} removed")
    return 0


def remove_run(store: Store, run: str, before: datetime) -> bool:
    """Whether the run was removed; it stays if a process took it meanwhile."""
    try:
        removed = store.prune.remove(run, before)
    except (RunBusyError, NotFoundError):
        return False
    if removed:  # copies of what was read from standard input or unpacked
        shutil.rmtree(store.folder / "runs" / run, ignore_errors=True)
    return removed
