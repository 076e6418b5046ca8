"""Notices about a run to others, kept until they are delivered. A run's job ends only after its rows are written."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.clock import format_timestamp

_PUT = """
INSERT INTO notices (run, key, target, kind, document, created, due, tries, problem)
VALUES (:run, :key, :target, :kind, :document, :now, :now, 0, '')
ON CONFLICT DO NOTHING
"""
_DUE = "SELECT * FROM notices WHERE delivered IS NULL AND target = :target AND due <= :now ORDER BY due LIMIT :limit"
_OVERDUE = "SELECT DISTINCT target FROM notices WHERE delivered IS NULL AND due < :before"
_DROP = "DELETE FROM notices WHERE delivered IS NULL AND due < :before AND target = :target"
_CLAIM = """
UPDATE notices SET due = :later
WHERE run = :run AND key = :key AND target = :target AND delivered IS NULL AND due = :due
"""
_DELIVERED = """
UPDATE notices SET delivered = :now, tries = tries + 1, problem = ''
WHERE run = :run AND key = :key AND target = :target AND delivered IS NULL
"""
_LATER = """
UPDATE notices SET due = :due, tries = tries + 1, problem = :problem
WHERE run = :run AND key = :key AND target = :target AND delivered IS NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingNotice:
    """One message to one target. `key` says what it reports: the same is told once, however often it is written."""

    run: str
    key: str
    target: str
    kind: str
    document: Mapping[str, Any]
    created: str = ""
    due: str = ""
    tries: int = 0

    @property
    def id(self) -> str:
        """The same at every attempt: a receiver that knows it has heard it."""
        return f"{self.run}/{self.key}"


class NoticesTable(Table):
    """The table of notices."""

    def put(self, notice: OutgoingNotice) -> bool:
        """Have it told; False if it was written before."""
        values = {
            "run": notice.run,
            "key": notice.key,
            "target": notice.target,
            "kind": notice.kind,
            "document": self._backing.document(notice.document),
            "now": self._backing.now(),
        }
        return bool(self._db.change(_PUT, values))

    def due(self, target: str, limit: int = 100) -> tuple[OutgoingNotice, ...]:
        """What this target should be told now, the longest waiting first."""
        rows = self._db.rows(_DUE, {"target": target, "now": self._backing.now(), "limit": limit})
        return tuple(decode_row(OutgoingNotice, row, {"document": json.loads}) for row in rows)

    def claim(self, notice: OutgoingNotice, until: datetime) -> bool:
        """Keep others from it until then; False if somebody was faster."""
        values = {"due": notice.due, "later": format_timestamp(until)}
        return bool(self._db.change(_CLAIM, self._key(notice) | values))

    def delivered(self, notice: OutgoingNotice) -> None:
        """Mark as delivered."""
        self._db.change(_DELIVERED, self._key(notice) | {"now": self._backing.now()})

    def later(self, notice: OutgoingNotice, due: datetime, problem: str) -> None:
        """It could not be told: try again at `due`."""
        values = {"due": format_timestamp(due), "problem": self._backing.clean(problem)}
        self._db.change(_LATER, self._key(notice) | values)

    def drop_unknown(self, known: Collection[str], before: datetime) -> dict[str, int]:
        """Drop what was due before this moment to targets other than these; how many by target."""
        rows = self._db.rows(_OVERDUE, {"before": format_timestamp(before)})
        unknown = [str(row["target"]) for row in rows if row["target"] not in known]
        return {
            target: self._db.change(_DROP, {"target": target, "before": format_timestamp(before)})
            for target in unknown
        }

    def waiting(self) -> int:
        """How many are not delivered yet."""
        row = self._db.row("SELECT count(*) AS total FROM notices WHERE delivered IS NULL")
        return int(row["total"]) if row else 0

    def _key(self, notice: OutgoingNotice) -> dict[str, str]:
        return {"run": notice.run, "key": notice.key, "target": notice.target}
