"""Requests of other processes to a run: pause, cancel, terminate, and notes. Read before every node."""

from typing import Literal, NamedTuple

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.table_context import Table

Kind = Literal["pause", "cancel", "terminate", "note"]

ANOTHER_ALERT = "another alert of this incident: "
"""How a note begins that an alert left, not a person: what follows is data."""

_INSERT = """
INSERT INTO control (run, kind, text, created)
SELECT :run, :kind, :text, :created FROM runs WHERE id = :run
"""
_COUNT_NOTES = """
SELECT count(*) AS total FROM (SELECT 1 FROM control WHERE run = ? AND kind = 'note' LIMIT ?) AS notes
"""
_CLEAR = """
DELETE FROM control WHERE run = :run AND kind = :kind AND (:upto IS NULL OR id <= :upto)
"""


class ControlRequest(NamedTuple):
    """One request, oldest first by `id`."""

    id: int
    kind: Kind
    text: str
    created: str


class ControlTable(Table):
    """The table of requests."""

    def set(self, run: str, kind: Kind, text: str = "") -> None:
        """Ask something of a run. Raises NotFoundError for an unknown run."""
        self._insert(run, kind, text)

    def add_note(self, run: str, text: str) -> int:
        """Tell the planner of a run something; the number of the request. Raises NotFoundError for an unknown run."""
        with self._db.write(run):
            self._insert(run, "note", text)
            row = self._db.row("SELECT max(id) AS id FROM control WHERE run = ?", (run,))
        return int(row["id"]) if row else 0

    def count_notes(self, run: str, most: int) -> int:
        """How many notes the run has not heard yet, counted up to `most`."""
        row = self._db.row(_COUNT_NOTES, (run, most))
        return int(row["total"]) if row else 0

    def drop_request(self, request_id: int) -> None:
        """Take one request as served."""
        self._db.change("DELETE FROM control WHERE id = ?", (request_id,))

    def _insert(self, run: str, kind: Kind, text: str) -> None:
        values = {"run": run, "kind": kind, "text": self._backing.clean(text), "created": self._backing.now()}
        if not self._db.change(_INSERT, values):
            raise NotFoundError(f"no run {run!r}")

    def pending(self, run: str) -> tuple[ControlRequest, ...]:
        """What is asked of the run and not cleared, oldest first."""
        rows = self._db.rows("SELECT id, kind, text, created FROM control WHERE run = ? ORDER BY id", (run,))
        return tuple(ControlRequest(*row) for row in rows)

    def clear(self, run: str, kind: Kind, upto: int | None = None) -> None:
        """Take requests of one kind as served; with `upto` only those seen, so that a newer one is not lost."""
        self._db.change(_CLEAR, {"run": run, "kind": kind, "upto": upto})
