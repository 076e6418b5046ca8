"""`opsleuth db`: the database as a whole, brought up to date or moved."""

import sys
from pathlib import Path

import click

from opsleuth.checkpoints.copy_runs import copy_runs
from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.migrations import SCHEMA_VERSION
from opsleuth.console import event_lines
from opsleuth.console.options import CliCommand, CliGroup, DatabaseType, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.store_access import open_store_at, open_store_for_writing
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import ExitCode

DATABASE_PLACE = DatabaseType(dir_okay=False, path_type=Path)


@click.group("db", cls=CliGroup)
def db() -> None:
    """The database that runs are kept in."""


@db.command(
    "migrate",
    cls=CliCommand,
    help="Bring the database up to date with this version; other commands that write do it too.",
)
def migrate_database() -> int:
    with open_store_for_writing(current_options()) as store:  # opening for writing is what migrates
        write_note(f"{store.place} has schema version {SCHEMA_VERSION}")
    return 0


@db.command(
    "move",
    cls=CliCommand,
    help="Store all runs of FROM in TO as well, such as those of a file on a PostgreSQL server. What was stored before "
    "an interruption is not stored again.",
)
@click.argument("source", metavar="FROM", type=DATABASE_PLACE)
@click.argument("target", metavar="TO", type=DATABASE_PLACE)
def move_runs(source: Place, target: Place) -> int:
    """Exit code 10 where a run was left out because a process holds it."""
    options = current_options()
    screen = screen_for_options(options)
    # The source is opened to write: a run is locked while it is read, and an older file is brought up to date.
    with open_store_at(source) as old, open_store_at(target) as new:
        moved = copy_runs(
            old,
            new,
            lambda run, rows: None if options.json else screen.line(f"{run.id}  {format_count(rows, 'row')}"),
        )
    if options.json:
        document = {"runs": moved.runs, "there_before": moved.there, "held": moved.held, "rows": moved.rows}
        event_lines.write_json(sys.stdout, document)
    write_note(
        f"{format_count(len(moved.runs), 'run')} with {format_count(sum(moved.rows.values()), 'row')} are in {new.place} now, every trace verified; "
        f"{len(moved.there)} were there before; nothing was removed from {old.place}"
    )
    if moved.held:
        write_note(f"still running, not moved yet: {', '.join(moved.held)}")
    return int(ExitCode.BUSY if moved.held else ExitCode.OK)
