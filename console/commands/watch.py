"""`opsleuth watch`: a run as another process works on it."""

import sys
import time

import click

from opsleuth.checkpoints.history import END
from opsleuth.checkpoints.processes import is_alive, status_to_show
from opsleuth.console.live_view import LiveView
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.screen import open_screen
from opsleuth.console.store_access import open_store_for_reading

POLL_SECONDS = 0.3
"""How often `watch` looks for new events."""


@click.command("watch", cls=CliCommand, help="Follow a run in another process, with the output shown there.")
@click.argument("run_id", metavar="RUN", default="-")
def watch_run(run_id: str) -> int:
    """The run's course so far, then each event as it is stored, to the end of the attempt."""
    options = current_options()
    status = None if options.json or options.quiet else open_screen(sys.stderr, plain=options.plain)
    live = LiveView(screen_for_options(options), status, json=options.json, verbose=bool(options.verbose))
    with open_store_for_reading(options) as store, live:
        run = store.runs.find(run_id)
        after = 0
        while not live.broken:
            # Read before the events: what a process stored before it ended is then never missed.
            alive = is_alive(store.runs.find(run.id))
            rows = store.events.read(run.id, after=after)
            for event in rows:
                live(event)
            after = rows[-1]["seq"] if rows else after
            if not rows and not alive:
                break
            if not rows:
                time.sleep(POLL_SECONDS)
        left = store.runs.find(run.id)
    if not options.quiet and not options.json:
        hint = f"report: opsleuth report {run.id}" if left.node == END else f"next: opsleuth resume {run.id}"
        write_note(f"{status_to_show(left)}. {hint}")
    return 0
