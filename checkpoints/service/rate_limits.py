"""Rates that all workers share: each caller takes the next free moment and is told how long it has to wait for it.

A row holds the moment from which on the gate is free; a caller pushes it forward by what it takes (the generic
cell rate algorithm). One statement, no lock that a killed worker could keep. The time is the database's: of many workers
one clock may be wrong.
"""

from opsleuth.checkpoints.table_context import Table

_OPEN = "INSERT INTO gates (name, free) VALUES (:name, 0) ON CONFLICT DO NOTHING"
_TAKE = """
UPDATE gates
SET free = CASE WHEN free < :earliest THEN :earliest WHEN free > :latest THEN :latest ELSE free END + :cost
WHERE name = :name
"""
LONGEST_WAIT = 600.0
"""The longest wait in seconds: a moment further away was written by a clock that was wrong."""


class RateLimitsTable(Table):
    """The table of gates."""

    def take(self, name: str, cost: float, burst: float = 0.0) -> float:
        """Take `cost` seconds of the gate's time; the seconds to wait first. Up to `burst` seconds may be taken at once."""
        with self._db.write():
            now = self._db.moment(self._backing.clock)
            self._db.change(_OPEN, {"name": name})
            limits = {"earliest": now - burst, "latest": now + LONGEST_WAIT}
            self._db.change(_TAKE, {"name": name, "cost": cost, **limits})
            row = self._db.row("SELECT free FROM gates WHERE name = ?", (name,))
        return max(0.0, float(row["free"]) - cost - now) if row else 0.0
