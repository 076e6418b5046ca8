"""Copy all runs from one database to another, one at a time, each complete and checked, so that it can be interrupted and restarted."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from opsleuth.checkpoints.errors import RunBusyError, UnreadableStoreError
from opsleuth.checkpoints.run_rows import insert_row, rows_of, store_row
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store

_OF_ALL = ("tokens", "teams")
"""Tables that belong to no run."""
_RUNS = "SELECT id FROM runs ORDER BY created, rowid"


class MoveSummary(NamedTuple):
    """The result: runs that were stored now, that were there before, that somebody holds; rows by table."""

    runs: tuple[str, ...]
    there: tuple[str, ...]
    held: tuple[str, ...]
    rows: dict[str, int]


def copy_runs(
    source: Store, target: Store, told: Callable[[RunRow, int], None] = lambda *_: None
) -> MoveSummary:
    """Store every run of `source` in `target` too, the oldest first; nothing is removed from `source`.

    `told` receives each run and its number of rows. A run that a process holds is passed over, one that `target`
    has stays as it is there. Raises UnreadableStoreError for a run whose trace does not hold; those before it are stored.
    """
    into, rows = target.database, Counter[str]()
    new, there, held = [], [], []
    _same_tags(source, target)
    for table in _OF_ALL:
        for row in source.database.rows(f"SELECT * FROM {table}"):  # our own names
            rows[table] += insert_row(into, table, {name: row[name] for name in row.keys()}, source.place)  # noqa: SIM118 - a row iterates over its values
    target.make_checkpoint_tables()
    for run in [str(row["id"]) for row in source.database.rows(_RUNS)]:
        if target.runs.get(run) is not None:
            there.append(run)
            continue
        try:
            with source.lock(run):
                stored = _move_run(source, target, run)
        except RunBusyError:
            held.append(run)
            continue
        rows += stored
        new.append(run)
        if (known := target.runs.get(run)) is not None:
            told(known, stored.total())
    return MoveSummary(tuple(new), tuple(there), tuple(held), dict(rows))


def _move_run(source: Store, target: Store, run: str) -> Counter[str]:
    """All rows of one run, or none. Raises UnreadableStoreError where its trace does not hold afterwards."""
    into, rows = target.database, Counter[str]()
    with into.write(run), into.checkpoint_db.write(run):
        for table, values in rows_of(source.database, run, around=True):
            rows[table] += store_row(into, table, values, source.place)
        checked, before = target.events.verify(run), source.events.verify(run)
        if checked != before or checked.broken_at is not None:
            raise UnreadableStoreError(
                f"the trace of {run} in {source.place} does not hold ({before.problem or checked.problem}): "
                f"`opsleuth log {run} --verify` says where; nothing of it was stored"
            )
    return rows


def _same_tags(source: Store, target: Store) -> None:
    """A place without runs takes over the key of redaction: equal secrets keep equal tags."""
    if target.database.row("SELECT 1 FROM runs") is None:
        row = source.database.row("SELECT value FROM meta WHERE key = 'redaction_key'")
        if row is not None:
            target.database.change("UPDATE meta SET value = ? WHERE key = 'redaction_key'", (row["value"],))
