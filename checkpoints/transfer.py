"""A run as one file, to be taken to another machine: its rows as they are stored, with those of its ancestors.

The file is gzipped JSON lines: a head with versions and ids, then one line for each row. What is read back is
checked before anything is written: the form, the schema's version, every body's hash, every trace's chain.
"""

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth import __version__
from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.errors import Conflict, Unreadable
from opsleuth.checkpoints.events import Events
from opsleuth.checkpoints.rows import put, rows_of
from opsleuth.checkpoints.runs import Runs
from opsleuth.checkpoints.scripts import SCHEMA_VERSION

FORMAT = 1


class Taken(NamedTuple):
    """What an export or an import held: runs, the newest first, and how many rows."""

    runs: tuple[str, ...]
    rows: int


class Transfer:
    """Writes runs to files and reads them back."""

    def __init__(self, backing: Backing, runs: Runs) -> None:
        self._backing, self._db, self._runs = backing, backing.db, runs

    def write(self, run: str, path: Path, *, with_evidence: bool) -> Taken:
        """A file with this run and the runs it reads from. Without evidence the stored bodies stay here."""
        members = tuple(member for member, _ in self._runs.lineage(run))
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
            for run_id in members:
                for table, values in rows_of(self._db, run_id, with_bodies=with_evidence):
                    count += 1
                    packed = {name: _packed(value) for name, value in values.items()}
                    file.write(json.dumps([table, packed]) + "\n")
        return Taken(members, count)

    def read(self, path: Path) -> Taken:
        """Store the runs of such a file; all of it or nothing. Those that are here already stay as they are.

        Raises Unreadable for a file of another form, a newer schema, or one that was changed; Conflict if the
        run itself is here already.
        """
        head, rows = _opened(path)
        members = tuple(head["runs"])
        if self._runs.get(members[0]) is not None:
            raise Conflict(f"{members[0]} is here already: nothing was changed")
        here = {member for member in members if self._runs.get(member) is not None}
        count = 0
        with self._db.write():
            for table, row in rows:
                if row.get("run", row.get("thread_id", row.get("id"))) in here and table != "bodies":
                    continue
                count += put(self._db, table, {name: _unpacked(v) for name, v in row.items()}, path)
            for member in members:
                if member not in here:
                    self._verify(member, path)
        return Taken(members, count)

    def _verify(self, run: str, path: Path) -> None:
        checked = Events(self._backing).verify(run)
        if checked.broken_at is not None:
            raise Unreadable(f"{path} was changed: the trace of {run} does not hold ({checked.problem})")


def _opened(path: Path) -> tuple[dict[str, Any], Iterator[tuple[str, dict[str, Any]]]]:
    """The head of a file and its rows. Raises Unreadable."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
        head = json.loads(lines[0])
        rows = [json.loads(line) for line in lines[1:]]
    except (OSError, EOFError, ValueError, IndexError, zlib.error) as error:
        raise Unreadable(f"{path} is no exported run: {error}") from None
    if not isinstance(head, dict) or head.get("opsleuth") != FORMAT:
        raise Unreadable(f"{path} is no exported run of this form; it may be of a newer opsleuth")
    if head["schema"] > SCHEMA_VERSION:
        raise Unreadable(
            f"{path} was written by opsleuth {head.get('app')} with schema {head['schema']}, this one knows "
            f"{SCHEMA_VERSION}: import it with the newer opsleuth; nothing was changed"
        )
    return head, ((str(table), dict(row)) for table, row in rows)


def _packed(value: Any) -> Any:  # noqa: ANN401 - any column
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Any:  # noqa: ANN401 - any column
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value
