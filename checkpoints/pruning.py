"""Removing whole runs by age. A run that a kept fork still reads from is kept with it."""

from datetime import datetime

from opsleuth.checkpoints.processes import is_alive
from opsleuth.checkpoints.runs import RunsTable
from opsleuth.checkpoints.table_context import TableContext
from opsleuth.state.clock import format_timestamp

_OLD = "SELECT id FROM runs WHERE updated < ? ORDER BY created DESC"
_OLD_ENDED = """
SELECT id FROM runs
WHERE updated < :before AND status IN ('completed', 'failed', 'canceled', 'terminated')
    AND NOT EXISTS (SELECT 1 FROM runs AS forks WHERE forks.parent = runs.id)
ORDER BY updated
LIMIT :limit
"""
_STILL_OLD = "SELECT 1 FROM runs WHERE id = ? AND updated < ?"
_TABLES = (
    "events",
    "event_heads",
    "seals",
    "seal_heads",
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
    "seen_objects",
    "incidents",
    "incident_terms",
)
_SAVER_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "writes")
_UNUSED = """
SELECT sha256 FROM bodies
EXCEPT SELECT body FROM results EXCEPT SELECT body FROM observations EXCEPT SELECT body FROM evidence
"""
_DROP = """
DELETE FROM bodies WHERE sha256 IN ({these}) AND sha256 NOT IN (
    SELECT body FROM results WHERE body IN ({these}) UNION SELECT body FROM observations WHERE body IN ({these})
    UNION SELECT body FROM evidence WHERE body IN ({these})
)
"""
_AT_ONCE = 200
"""Bodies that are dropped in one transaction: other writers wait meanwhile."""


class RunPruner:
    """Removal of runs."""

    def __init__(self, backing: TableContext, runs: RunsTable) -> None:
        self._backing, self._db, self._runs = backing, backing.db, runs

    def candidates(self, before: datetime) -> tuple[str, ...]:
        """Runs that were last changed before this moment, are not alive, and have no fork that is kept.

        Forks come before the runs that they read from, in the order in which they can be removed.
        """
        rows = self._db.rows(_OLD, (format_timestamp(before),))
        old = dict.fromkeys(row["id"] for row in rows if not self._is_alive(row["id"]))
        while kept := [run for run in old if not old.keys() >= set(self._runs.children(run))]:
            for run in kept:
                del old[run]
        return tuple(old)

    def list_ended(self, before: datetime, limit: int) -> tuple[str, ...]:
        """Runs without a fork that have ended and were last changed before this moment, the oldest first, at most this many."""
        rows = self._db.rows(_OLD_ENDED, {"before": format_timestamp(before), "limit": limit})
        return tuple(str(row["id"]) for row in rows)

    def remove(self, run: str, before: datetime) -> bool:
        """Remove a run with everything that is stored of it, checkpoints included; whether it went.

        It stays where somebody changed it or made a fork of it since it was found to be old. Raises RunBusyError, and NotFoundError
        where another process has removed it.
        """
        saved = self._db.checkpoint_db
        with self._backing.lock(run), self._db.write(run), saved.write(run):
            if not self._db.row(_STILL_OLD, (run, format_timestamp(before))) or self._runs.children(run):
                return False
            for table in _TABLES:
                self._db.change(f"DELETE FROM {table} WHERE run = ?", (run,))  # our own names
            for table in saved.tables().intersection(_SAVER_TABLES):
                saved.change(f"DELETE FROM {table} WHERE thread_id = ?", (run,))  # our own names
            self._db.change("DELETE FROM runs WHERE id = ?", (run,))
        return True

    def reclaim(self) -> int:
        """Drop bodies that nothing points at and give the space back; returns how many bodies went."""
        unused, dropped = [row["sha256"] for row in self._db.rows(_UNUSED)], 0
        for start in range(0, len(unused), _AT_ONCE):
            these = {f"b{number}": body for number, body in enumerate(unused[start : start + _AT_ONCE])}
            with self._db.exclusive():  # whoever stores a body again now has not pointed at it yet
                dropped += self._db.change(_DROP.format(these=", ".join(f":{name}" for name in these)), these)
        self._db.vacuum()
        return dropped

    def _is_alive(self, run: str) -> bool:
        row = self._runs.get(run)
        return row is not None and is_alive(row)
