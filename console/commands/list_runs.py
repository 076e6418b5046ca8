"""`opsleuth list`: the stored runs, newest first."""

import sys

import click

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.runs import RunListing
from opsleuth.console import event_lines, run_tables
from opsleuth.console.options import CliCommand, count_option, current_options
from opsleuth.console.output import parse_time_option, screen_for_options, write_note
from opsleuth.console.row_json import run_to_json
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import Status


@click.command("list", cls=CliCommand)
@click.option(
    "--status",
    type=click.Choice([s.value for s in Status]),
    metavar="STATUS",
    help="Only runs with this status, such as waiting or interrupted.",
)
@click.option("--since", metavar="T", help="Only runs started since then: now-7d, 2026-11-29T13:40Z.")
@count_option("--limit", 50, "The most to show.", most=1_000_000)
@click.option("--tree", is_flag=True, help="Forks under the run they were made from.")
def list_runs(status: str | None, since: str | None, limit: int, *, tree: bool) -> int:
    """List runs, newest first."""
    options = current_options()
    after = parse_time_option(since, "--since")
    try:
        with open_store_for_reading(options) as store:
            found = store.runs.list(status=Status(status) if status else None, since=after, limit=limit)
    except NotFoundError:  # no database yet means no runs yet
        found = RunListing()
    if options.json:
        runs = [run_to_json(row, "settings") for row in found]
        event_lines.write_json(sys.stdout, {"runs": runs, "warnings": list(found.warnings)})
        return 0
    screen = screen_for_options(options)
    if found:
        screen.lines(run_tables.render_runs_table(found, screen, SystemClock().now(), tree=tree))
    elif status or since:
        write_note("no run fits")
    else:
        write_note("no runs yet: try the built-in incident with `opsleuth demo`")
    for warning in found.warnings:
        write_note(f"warning: {warning}")
    return 0
