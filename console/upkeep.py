"""What is kept and for how long: `note`, `prune`, `export`, `import`."""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from opsleuth.checkpoints.errors import Busy, NotFound
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.transfer import Taken
from opsleuth.console import events
from opsleuth.console.handing import from_stdin
from opsleuth.console.options import Options
from opsleuth.console.output import note as said
from opsleuth.console.output import screen_of
from opsleuth.console.reading import written
from opsleuth.graph.decisions import operator
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.words import counted

if TYPE_CHECKING:
    from opsleuth.checkpoints.transfer import Settled

_CLOCK = SystemClock()


def note(options: Options, run_id: str, text: str) -> int:
    """`note`: told to the planner at its next turn. Raises UsageError for a run that has concluded."""
    words = (from_stdin("the note") if text == "-" else text).strip()
    if not words:
        raise UsageError("the note is empty")
    with _opened(options) as store:
        run = store.runs.find(run_id)
        if not run.resumable:
            raise UsageError(f"{run.id} has ended ({run.stop_reason}): fork it to go on with a note")
        tell(store, run.id, words)
    said(f"noted: the planner of {run.id} is told at its next turn")
    return 0


def tell(store: Store, run: str, text: str) -> None:
    """Leave a note for the planner of a run, and say so in its trace."""
    with store.transaction():
        store.control.set(run, "note", text)
        store.events.append(run, "note.added", {"text": text, "by": operator("command").name})


def prune(options: Options, older_than: timedelta, *, dry_run: bool) -> int:
    """`prune`: whole runs by age; one that a kept fork reads from stays, and one that somebody works on by now."""
    before = _CLOCK.now() - older_than
    with _opened(options) as store:
        found = store.prune.candidates(before)
        dropped = 0
        if not dry_run:
            found = tuple(run for run in found if _removed(store, run, before))
            dropped = store.prune.reclaim()
    if options.json:
        events.write_json(sys.stdout, {"runs": list(found), "dry_run": dry_run, "bodies": dropped})
        return 0
    screen = screen_of(options)
    for run in found:
        screen.line(run)
    said(f"{counted(len(found), 'run')} {'would be' if dry_run else 'were'} removed")
    return 0


def _removed(store: Store, run: str, before: datetime) -> bool:
    try:
        return store.prune.remove(run, before)
    except (Busy, NotFound):
        return False


def export(options: Options, run_id: str, output: Path, *, with_evidence: bool) -> int:
    """`export`: one run as one file."""
    with Store.open(options.database, _CLOCK, Redactor(), read_only=True) as store:
        run = store.runs.find(run_id)
        with written(output) as place:
            taken = store.transfer.write(run.id, place, with_evidence=with_evidence)
    _told(options, taken, f"exported to {output}")
    return 0


def take_in(options: Options, source: Path) -> int:
    """`import`: the runs of such a file join this database."""
    settled = _settled(options)
    with _opened(options) as store:
        store.make_checkpoint_tables()
        taken = store.transfer.read(source, settled)
    _told(options, taken, f"imported from {source}")
    return 0


def _settled(options: Options) -> "Settled":
    """Gives a run from elsewhere what is configured here: what it may reach, run and change is not for a file to say."""
    from opsleuth.console.configured_sources import trusted
    from opsleuth.console.run_settings import settings_of

    here = settings_of(options, trusted(options)).to_json()
    live = {name: here[name] for name in ("model", "policy", "environment", "sources", "platform")}
    recorded = live | {"environment": None, "sources": {}, "platform": None}
    return lambda stored: {**stored, **(recorded if stored.get("case") else live)}


def _told(options: Options, taken: Taken, what: str) -> None:
    if options.json:
        events.write_json(sys.stdout, taken._asdict())
        return
    newest, *others = taken.runs
    screen_of(options).line(newest)
    more = f" with {len(others)} it was forked from" if others else ""
    there = f" ({taken.there:,} of them were here before)" if taken.there else ""
    said(f"{newest}{more}, {counted(taken.rows, 'row')}{there}, {what}")


def _opened(options: Options) -> Store:
    return Store.open(options.database, _CLOCK, Redactor())
