"""What other processes ask of a run: pause, cancel, terminate, and notes. Read before every node."""

from typing import Literal, NamedTuple

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.errors import NotFound

Kind = Literal["pause", "cancel", "terminate", "note"]

ANOTHER_ALERT = "another alert of this incident: "
"""How a note begins that an alert left, not a person: what follows is data."""

_INSERT = """
INSERT INTO control (run, kind, text, created)
SELECT :run, :kind, :text, :created FROM runs WHERE id = :run
"""
_CLEAR = """
DELETE FROM control WHERE run = :run AND kind = :kind AND (:upto IS NULL OR id <= :upto)
"""


class Request(NamedTuple):
    """One request, oldest first by `id`."""

    id: int
    kind: Kind
    text: str
    created: str


class Control:
    """The table of requests."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def set(self, run: str, kind: Kind, text: str = "") -> None:
        """Ask something of a run. Raises NotFound for an unknown run."""
        values = {"run": run, "kind": kind, "text": self._backing.clean(text), "created": self._backing.now()}
        if not self._db.change(_INSERT, values):
            raise NotFound(f"no run {run!r}")

    def pending(self, run: str) -> tuple[Request, ...]:
        """What is asked of the run and not cleared, oldest first."""
        rows = self._db.rows("SELECT id, kind, text, created FROM control WHERE run = ? ORDER BY id", (run,))
        return tuple(Request(*row) for row in rows)

    def clear(self, run: str, kind: Kind, upto: int | None = None) -> None:
        """Take requests of one kind as served; with `upto` only those seen, so that a newer one is not lost."""
        self._db.change(_CLEAR, {"run": run, "kind": kind, "upto": upto})
