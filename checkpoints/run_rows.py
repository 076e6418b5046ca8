"""All rows of a run, read from one database and written to another, in the form of the export file."""

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.errors import UnreadableStoreError

BY_RUN = (
    "events",
    "event_heads",
    "results",
    "observations",
    "approvals",
    "effects",
    "snapshots",
    "reports",
    "evidence",
    "seals",
    "seal_heads",
)
"""Tables that describe a run."""

AROUND_IT = ("control", "intake", "alerts", "notices", "seen_objects", "incidents", "incident_terms")
"""Tables with what others want of a run, what they or the next run learn of it, and what is kept of its incident: of no use elsewhere."""

BY_THREAD = ("checkpoints", "writes")
_IN_ORDER = ("approvals", "effects", "control")
"""Tables whose rows count in the order in which they were made."""

_HOLDER = ("pid", "host", "process_start", "locked")
_BODIES = """
SELECT * FROM bodies WHERE sha256 IN (
    SELECT body FROM results WHERE run = :run UNION SELECT body FROM observations WHERE run = :run
    UNION SELECT body FROM evidence WHERE run = :run
)
"""

Values = dict[str, Any]


def rows_of(
    db: Database, run: str, *, with_bodies: bool = True, around: bool = False
) -> Iterator[tuple[str, Values]]:
    """Table and values of each row. What points at a body comes after it."""
    yield from _read_table_rows(db, "runs", "SELECT * FROM runs WHERE id = :run", run)
    if with_bodies:
        yield from _read_table_rows(db, "bodies", _BODIES, run)
    for table in (*BY_RUN, *(AROUND_IT if around else ())):
        order = {"control": " ORDER BY id"}.get(table, " ORDER BY rowid") if table in _IN_ORDER else ""
        yield from _read_table_rows(
            db, table, f"SELECT * FROM {table} WHERE run = :run{order}", run
        )  # our own names
    yield from db.checkpoint_db.saved_rows(run)


def store_row(db: Database, table: str, values: Values, origin: object) -> int:
    """Store one such row; 0 where it was there before. `origin` is where it came from, for what is wrong with it.

    Raises UnreadableStoreError for a table or a column that this version does not know, and a body that was changed.
    """
    if table in BY_THREAD:
        return db.checkpoint_db.put_saved(table, values, origin)
    if table not in ("runs", "bodies", *BY_RUN, *AROUND_IT):
        raise UnreadableStoreError(
            f"{origin} holds rows of {table!r}, which this version does not know; nothing was changed"
        )
    if table == "runs":
        values = values | dict.fromkeys(_HOLDER)
    if table == "bodies":
        _check_body(values, origin)
    return insert_row(db, table, values, origin)


def insert_row(db: Database, table: str, values: Mapping[str, Any], origin: object) -> int:
    """Insert a row whose columns are known. Raises UnreadableStoreError for one that is not."""
    if unknown := values.keys() - db.columns(table):
        raise UnreadableStoreError(
            f"{origin}: {table} has no column {', '.join(sorted(unknown))}; nothing was changed"
        )
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # known columns
    return db.change(sql, values)


def _read_table_rows(db: Database, table: str, sql: str, run: str) -> Iterator[tuple[str, Values]]:
    names = db.columns(table)
    for row in db.rows(sql, {"run": run}):
        yield table, {name: row[name] for name in row.keys() if name in names}  # noqa: SIM118 - a row iterates over its values


def _check_body(values: Values, origin: object) -> None:
    try:
        found = hashlib.sha256(zlib.decompress(values["data"])).hexdigest()
    except zlib.error:
        found = ""
    if found != values["sha256"]:
        raise UnreadableStoreError(
            f"{origin} was changed: body {values['sha256'][:12]} does not have this hash"
        )
