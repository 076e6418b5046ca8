"""`opsleuth log`: the stored events of a run, followed, checked, or sorted by what stands out."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import click

from opsleuth.checkpoints.processes import is_alive
from opsleuth.console import event_lines, log_filters, run_tables
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.record_check import check_record
from opsleuth.console.screen import Screen
from opsleuth.console.store_access import open_store_for_reading

POLL_SECONDS = 0.3
"""How often `log --follow` looks for new events."""


class EventSelection(TypedDict):
    """Which events are shown: of these types, after this number, or those that took longest or cost most."""

    types: tuple[str, ...]
    after: int
    slowest: int | None
    costliest: int | None


@click.command("log", cls=CliCommand, help=f"Every event of a run, as it was stored.\n\n{RUN_HELP}")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only these, such as tool.completed or tool."
)
@click.option(
    "--after", type=click.IntRange(0, 2**53), default=0, metavar="SEQ", help="Only events after this number."
)
@click.option("--follow", is_flag=True, help="Follow the run to its end.")
@click.option("--verify", is_flag=True, help="Check that nothing stored for the run was changed.")
@click.option("--head", metavar="HEAD", help="With --verify: the head that was printed when the run ended.")
@click.option(
    "--anchors",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --verify: a file with lines RUN HEAD. Default: $OPSLEUTH_LOG_ANCHORS.",
)
@click.option("--slowest", type=click.IntRange(1), metavar="N", help="The N that took longest.")
@click.option("--costliest", type=click.IntRange(1), metavar="N", help="The N model calls that cost most.")
@click.option("--repeated", is_flag=True, help="Repeated calls, identical or with other numbers.")
def log_events(
    run_id: str,
    *,
    follow: bool,
    verify: bool,
    repeated: bool,
    head: str | None,
    anchors: Path | None,
    **selection: Unpack[EventSelection],
) -> int:
    options = current_options()
    if verify or head or anchors:
        return check_record(options, run_id, head=head, anchors=anchors)
    if repeated:
        return print_repeated_calls(options, run_id)
    if follow:
        return follow_events(options, run_id, selection["types"], selection["after"])
    return print_events(options, run_id, selection)


def print_events(options: GlobalOptions, run_id: str, selection: EventSelection) -> int:
    """The stored events, all or of some types (`tool.` means all that begin so), or those that stand out."""
    types, slowest, costliest = selection["types"], selection["slowest"], selection["costliest"]
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        rows: Sequence[event_lines.Event] = [
            event for event in store.events.read(run.id, after=selection["after"]) if has_type(event, types)
        ]
    if slowest:
        rows = log_filters.find_slowest_events(rows, slowest)
    if costliest:
        rows = log_filters.find_costliest_calls(rows, costliest)
    if options.json:
        event_lines.write_json(sys.stdout, {"run": run.id, "events": rows})
    elif rows:
        screen = screen_for_options(options)
        screen.lines(run_tables.render_log_lines(rows, screen))
    elif slowest or costliest:
        write_note(f"no event of {run.id} has {'a time' if slowest else 'a cost: it asked no model'}")
    return 0


def print_repeated_calls(options: GlobalOptions, run_id: str) -> int:
    """`--repeated`: calls that were made again, alike or with other numbers."""
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        found = log_filters.find_repeated_calls(store.events.read(run.id))
    if options.json:
        event_lines.write_json(
            sys.stdout, {"run": run.id, "repeated": [run_tables.repeated_call_to_json(r) for r in found]}
        )
    elif found:
        screen = screen_for_options(options)
        screen.lines(run_tables.render_repeated_calls(found, screen))
    else:
        write_note(f"{run.id} made no call twice")
    return 0


def follow_events(options: GlobalOptions, run_id: str, types: Sequence[str], after: int) -> int:
    """`--follow`: print each event as it is stored, until the attempt ends or its process is gone."""
    screen = screen_for_options(options)
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        while True:
            # Read before the events: what a process stored before it ended is then never missed.
            alive = is_alive(store.runs.find(run.id))
            rows = store.events.read(run.id, after=after)
            for event in rows:
                if has_type(event, types):
                    print_event(event, screen, options)
            after = rows[-1]["seq"] if rows else after
            if not rows and not alive:
                return 0
            if not rows:
                time.sleep(POLL_SECONDS)


def print_event(event: event_lines.Event, screen: Screen, options: GlobalOptions) -> None:
    if options.json:
        event_lines.write_json(sys.stdout, event)
        return
    screen.lines(run_tables.render_log_lines([event], screen))
    sys.stdout.flush()


def has_type(event: event_lines.Event, types: Sequence[str]) -> bool:
    """Whether an event is of one of the types; `tool.` means every type that begins so, no types mean all."""
    kind = str(event["type"])
    return not types or any(kind == t or (t.endswith(".") and kind.startswith(t)) for t in types)
