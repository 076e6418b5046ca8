"""A run as one file, to be taken to another machine: its rows as they are stored, with those of its ancestors.

The file is gzipped JSON lines: a head with versions and ids, then one line for each row. It may come from anybody:
what is read back is checked, the form, the schema's version, every body's hash, every trace's chain, and it reports
its own runs alone. It brings neither a person's yes nor a say in what may be reached or run here.
"""

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth import __version__
from opsleuth.checkpoints.errors import ConflictError, InvalidRowError, UnreadableStoreError
from opsleuth.checkpoints.follow_up_rows import list_follow_ups
from opsleuth.checkpoints.migrations import SCHEMA_VERSION
from opsleuth.checkpoints.run_rows import BY_RUN, BY_THREAD, Values, rows_of, store_row
from opsleuth.checkpoints.runs import RunsTable
from opsleuth.checkpoints.seals import KEYS, mark_unsealed, seal_stored
from opsleuth.checkpoints.table_context import RUN_ID, TableContext
from opsleuth.checkpoints.trace.events import EventsTable
from opsleuth.state.canonical_json import to_canonical_json

FORMAT = 1
LONGEST_ROW = 64_000_000
"""Characters of a row in a file: far more than a body may have."""

_TABLES = frozenset({"runs", "bodies", *BY_RUN, *BY_THREAD})
_PLAIN = frozenset({"msgpack", "null", "bytes", "bytearray"})
"""Forms of a checkpoint's values that hold values alone; others of the framework's can name classes."""
_OWNER = {"runs": "id", "checkpoints": "thread_id", "writes": "thread_id"}
"""The column that names a row's run, where it is not `run`."""

Settled = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Adapts the settings of a run that comes from elsewhere."""


class TransferSummary(NamedTuple):
    """What an export or an import held: runs, the newest first, how many rows, and how many of these were there before.

    A body is stored once for all runs that hold it, and an ancestor may have come with another file.
    """

    runs: tuple[str, ...]
    rows: int
    there: int = 0


class RunTransfer:
    """Writes runs to files and reads them back."""

    def __init__(self, backing: TableContext, runs: RunsTable) -> None:
        self._backing, self._db, self._runs = backing, backing.db, runs

    def write(self, run: str, path: Path, *, with_evidence: bool) -> TransferSummary:
        """A file with this run, the runs it reads from, and the questions on it. Without evidence the stored bodies stay here."""
        questions = (row.id for row in list_follow_ups(self._runs, run))
        members = (*(member for member, _ in self._runs.lineage(run)), *questions)
        head = {
            "opsleuth": FORMAT,
            "schema": SCHEMA_VERSION,
            "app": __version__,
            "runs": members,
            "with_evidence": with_evidence,
        }
        count = 0
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(json.dumps(head) + "\n")
            for table, values in self._rows(members, with_bodies=with_evidence):
                count += 1
                packed = {name: _encode_column(value) for name, value in values.items()}
                file.write(json.dumps([table, packed]) + "\n")
        return TransferSummary(members, count)

    def _rows(self, members: Iterable[str], *, with_bodies: bool) -> Iterator[tuple[str, Values]]:
        """The rows of all of them; a body that several share comes once."""
        bodies: set[str] = set()
        for run in members:
            for table, values in rows_of(self._db, run, with_bodies=with_bodies):
                if table == "bodies":
                    if values["sha256"] in bodies:
                        continue
                    bodies.add(values["sha256"])
                yield table, values

    def read(self, path: Path, settled: Settled) -> TransferSummary:
        """Store the runs of such a file; all of it or nothing. Those that are here already stay as they are.

        Their settings are what `settled` makes of them, and what was approved elsewhere is asked again.
        Raises UnreadableStoreError for a file of another form, a newer schema, or one that was changed; ConflictError if the
        run itself is here already.
        """
        lines = _read_json_lines(path)
        members = _runs_in_head(next(lines, None), path)
        if self._runs.get(members[0]) is not None:
            raise ConflictError(f"{members[0]} is here already: nothing was changed")
        here = {member for member in members if self._runs.get(member) is not None}
        count = new = 0
        restated: list[tuple[str, Values]] = []
        with self._db.write():
            for line in lines:
                count += 1
                table, row = _parse_row_line(line, members, path)
                if table == "bodies" or row[_run_column(table)] not in here:
                    admitted = _make_row_safe(table, row, settled, path)
                    new += self._put(table, admitted, path)
                    if table in KEYS and admitted != row:
                        restated.append((table, row))
            for member in members:
                if member not in here:
                    mark_unsealed(self._db, member)
            for table, row in restated:
                seal_stored(self._db, row["run"], table, [row[KEYS[table]]])
            for member in members:
                if member not in here:
                    self._verify(member, path)
        return TransferSummary(members, count, count - new)

    def _put(self, table: str, row: dict[str, Any], path: Path) -> int:
        try:
            return store_row(self._db, table, row, path)
        except InvalidRowError as error:
            raise UnreadableStoreError(f"{path} holds a row of {table} that does not fit: {error}") from None

    def _verify(self, run: str, path: Path) -> None:
        if self._runs.get(run) is None:
            raise UnreadableStoreError(
                f"{path} names the run {run} and does not hold it; nothing was changed"
            )
        checked = EventsTable(self._backing).verify(run)
        if checked.broken_at is not None:
            raise UnreadableStoreError(
                f"{path} was changed: the trace of {run} does not hold ({checked.problem})"
            )


def _read_json_lines(path: Path) -> Iterator[Any]:
    """The JSON value of each line, one at a time: what is packed small may be very large. Raises UnreadableStoreError."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            while line := file.readline(LONGEST_ROW):
                if len(line) == LONGEST_ROW:
                    raise UnreadableStoreError(
                        f"{path} is not an exported run: a line is longer than any row"
                    )
                yield json.loads(line)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise UnreadableStoreError(f"{path} is not an exported run: {error}") from None


def _runs_in_head(head: object, path: Path) -> tuple[str, ...]:
    """The runs that the file's head names, the newest first. Raises UnreadableStoreError."""
    if not isinstance(head, dict) or head.get("opsleuth") != FORMAT:
        raise UnreadableStoreError(
            f"{path} is not an exported run that this version reads; a newer opsleuth may have written it"
        )
    schema, runs = head.get("schema"), head.get("runs")
    if not isinstance(schema, int) or not isinstance(runs, list) or not runs:
        raise UnreadableStoreError(f"{path} is not an exported run: its first line names no schema or no run")
    if schema > SCHEMA_VERSION:
        raise UnreadableStoreError(
            f"{path} was written by opsleuth {head.get('app')} with schema {schema}, this one knows "
            f"{SCHEMA_VERSION}: import it with the newer opsleuth; nothing was changed"
        )
    if wrong := [run for run in runs if not isinstance(run, str) or not RUN_ID.fullmatch(run)]:
        raise UnreadableStoreError(f"{path} is not an exported run: {wrong[0]!r} is not a run id")
    return tuple(runs)


def _parse_row_line(line: object, members: tuple[str, ...], path: Path) -> tuple[str, dict[str, Any]]:
    """Table and values of a line. Raises UnreadableStoreError for another form, and for a row of a run that is not among the file's."""
    match line:
        case [str(table), dict(packed)]:
            row = {name: _decode_column(value, path) for name, value in packed.items()}
        case _:
            raise UnreadableStoreError(f"{path} was changed: a line is not a row; nothing was changed")
    if table not in _TABLES:
        raise UnreadableStoreError(
            f"{path} holds rows of {table!r}, which this version does not know in an export; nothing was changed"
        )
    if table != "bodies" and row.get(_run_column(table)) not in members:
        raise UnreadableStoreError(
            f"{path} was changed: a row of {table} is of a run that is not among {', '.join(members)}"
        )
    if table == "runs" and row.get("parent") not in (None, *members):
        raise UnreadableStoreError(
            f"{path} was changed: {row['id']} is a fork of a run that it does not hold"
        )
    return table, row


def _run_column(table: str) -> str:
    return _OWNER.get(table, "run")


def _make_row_safe(table: str, row: dict[str, Any], settled: Settled, path: Path) -> dict[str, Any]:
    """The row as it may be stored here. What is still asked is asked again: the file could show another call than it names."""
    if table == "runs":
        return row | {"settings": to_canonical_json(settled(_parse_run_settings(row, path)))}
    if table == "approvals" and row.get("status") in ("pending", "approved"):
        return row | {"status": "stale", "reason": "it was asked on another machine"}
    if table == "effects" and row.get("status") in ("started", "unknown"):
        return row | {"status": "unknown", "tries": 2}  # no second try by itself: a person decides
    if table in BY_THREAD and row.get("type") not in _PLAIN:
        raise UnreadableStoreError(f"{path} was changed: a value of {table} has the form {row.get('type')!r}")
    return row


def _parse_run_settings(row: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(row["settings"])
    except (KeyError, TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UnreadableStoreError(f"{path} was changed: the settings of a run are not a JSON object")
    return found


def _encode_column(value: object) -> object:
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _decode_column(value: object, path: Path) -> object:
    """A column's value: text, a number, nothing, or bytes. Raises UnreadableStoreError for what no column holds."""
    try:
        match value:
            case {"base64": str(text), **others} if not others:
                return base64.b64decode(text, validate=True)
            case str():
                return value.encode().decode()
            case float() | None:
                return value
            case int() if value.bit_length() < 64:
                return value
    except ValueError as error:
        raise UnreadableStoreError(f"{path} was changed: a value cannot be read ({error})") from None
    raise UnreadableStoreError(f"{path} was changed: a value is a list, a table or an integer beyond 64 bits")
