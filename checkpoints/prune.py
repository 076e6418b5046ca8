"""Removing whole runs by age. A run that a kept fork still reads from is kept with it."""

from datetime import datetime

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.lock import RunLock
from opsleuth.checkpoints.processes import is_alive
from opsleuth.checkpoints.runs import Runs
from opsleuth.state.clock import stamp

_OLD = "SELECT id FROM runs WHERE updated < ? ORDER BY created"
_TABLES = (
    "events",
    "event_heads",
    "results",
    "observations",
    "evidence",
    "approvals",
    "effects",
    "control",
    "reports",
    "snapshots",
    "intake",
    "alerts",
    "notices",
)
_SAVER_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('checkpoints', 'writes')"
_UNUSED_BODIES = """
DELETE FROM bodies WHERE sha256 NOT IN (
    SELECT body FROM results UNION SELECT body FROM observations UNION SELECT body FROM evidence
)
"""


class Prune:
    """Removal of runs."""

    def __init__(self, backing: Backing, runs: Runs) -> None:
        self._backing, self._db, self._runs = backing, backing.db, runs

    def candidates(self, before: datetime) -> tuple[str, ...]:
        """Runs that were last changed before this moment, are not alive, and have no fork that is kept."""
        old = {row["id"] for row in self._db.rows(_OLD, (stamp(before),)) if not self._is_alive(row["id"])}
        while kept := {run for run in old if not old.issuperset(self._runs.children(run))}:
            old -= kept
        return tuple(sorted(old))

    def remove(self, run: str) -> None:
        """Remove a run with everything that is stored of it, checkpoints included. Raises Busy."""
        with RunLock(self._backing, run), self._db.write():
            for table in _TABLES:
                self._db.change(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608 - our own names
            for table in [row["name"] for row in self._db.rows(_SAVER_TABLES)]:
                self._db.change(f"DELETE FROM {table} WHERE thread_id = ?", (run,))  # noqa: S608 - our own names
            self._db.change("DELETE FROM runs WHERE id = ?", (run,))

    def reclaim(self) -> int:
        """Drop bodies that nothing points at and give the space back; returns how many bodies went."""
        dropped = self._db.change(_UNUSED_BODIES)
        self._db.rows("PRAGMA incremental_vacuum")
        return dropped

    def _is_alive(self, run: str) -> bool:
        row = self._runs.get(run)
        return row is not None and is_alive(row)
