"""What others are told of a run, kept until it is delivered. A run's job ends only after its rows are written."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.backing import Backing
from opsleuth.state.clock import stamp

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
class Notice:
    """One message to one target. `key` says what it tells of: the same is told once, however often it is written."""

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
        """The same at every try: a receiver that knows it has heard it."""
        return f"{self.run}/{self.key}"


class Notices:
    """The table of notices."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def put(self, notice: Notice) -> bool:
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

    def due(self, target: str, limit: int = 100) -> tuple[Notice, ...]:
        """What this target should be told now, the longest waiting first."""
        rows = self._db.rows(_DUE, {"target": target, "now": self._backing.now(), "limit": limit})
        return tuple(
            Notice(
                run=row["run"],
                key=row["key"],
                target=row["target"],
                kind=row["kind"],
                document=json.loads(row["document"]),
                created=row["created"],
                due=row["due"],
                tries=row["tries"],
            )
            for row in rows
        )

    def claim(self, notice: Notice, until: datetime) -> bool:
        """Keep others from it until then; False if somebody was faster."""
        values = {"due": notice.due, "later": stamp(until)}
        return bool(self._db.change(_CLAIM, self._key(notice) | values))

    def delivered(self, notice: Notice) -> None:
        """The target has it."""
        self._db.change(_DELIVERED, self._key(notice) | {"now": self._backing.now()})

    def later(self, notice: Notice, due: datetime, problem: str) -> None:
        """It could not be told: try again at `due`."""
        values = {"due": stamp(due), "problem": self._backing.clean(problem)}
        self._db.change(_LATER, self._key(notice) | values)

    def drop_unknown(self, known: Collection[str], before: datetime) -> dict[str, int]:
        """Drop what was due before this moment to targets other than these; how many by target."""
        rows = self._db.rows(_OVERDUE, {"before": stamp(before)})
        unknown = [str(row["target"]) for row in rows if row["target"] not in known]
        return {
            target: self._db.change(_DROP, {"target": target, "before": stamp(before)}) for target in unknown
        }

    def waiting(self) -> int:
        """How many are not delivered yet."""
        row = self._db.row("SELECT count(*) AS total FROM notices WHERE delivered IS NULL")
        return int(row["total"]) if row else 0

    def _key(self, notice: Notice) -> dict[str, str]:
        return {"run": notice.run, "key": notice.key, "target": notice.target}
