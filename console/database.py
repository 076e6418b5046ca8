"""`db migrate` and `db move`: the database as a whole."""

import sys

from opsleuth.checkpoints.moving import move as move_runs
from opsleuth.checkpoints.places import Place
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.scripts import SCHEMA_VERSION
from opsleuth.checkpoints.store import Store
from opsleuth.console import events
from opsleuth.console.options import Options
from opsleuth.console.output import note as said
from opsleuth.console.output import screen_of
from opsleuth.state.clock import SystemClock
from opsleuth.state.outcome import ExitCode
from opsleuth.state.words import counted

_CLOCK = SystemClock()


def migrate(options: Options) -> int:
    """`db migrate`: whoever opens the database to write brings it up to date; this command does nothing else."""
    with Store.open(options.database, _CLOCK, Redactor()) as store:
        said(f"{store.place} has schema version {SCHEMA_VERSION}")
    return 0


def move(options: Options, source: Place, target: Place) -> int:
    """`db move`: exit 10 where a run was passed over because a process holds it."""
    screen = screen_of(options)
    # The source is opened to write: a run is locked while it is read, and an older file is brought up to date.
    with Store.open(source, _CLOCK, Redactor()) as old, Store.open(target, _CLOCK, Redactor()) as new:
        moved = move_runs(
            old,
            new,
            lambda run, rows: None if options.json else screen.line(f"{run.id}  {counted(rows, 'row')}"),
        )
    if options.json:
        document = {"runs": moved.runs, "there_before": moved.there, "held": moved.held, "rows": moved.rows}
        events.write_json(sys.stdout, document)
    said(
        f"{counted(len(moved.runs), 'run')} with {counted(sum(moved.rows.values()), 'row')} are in {new.place} now, every trace verified; "
        f"{len(moved.there)} were there before; nothing was removed from {old.place}"
    )
    if moved.held:
        said(f"held by a process, to be moved when it has ended: {', '.join(moved.held)}")
    return int(ExitCode.BUSY if moved.held else ExitCode.OK)
