"""Which run each kind of alert belongs to: one that comes again joins its run.

It does so while the run goes on, and for a while after its end, unless the alert was over in between: then it tells of
something new.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.backing import Backing
from opsleuth.state.clock import stamp

_PUT = """
INSERT INTO alerts (team, fingerprint, run, document, first, last, count)
VALUES (:team, :fingerprint, :run, :document, :now, :now, 1)
ON CONFLICT (team, fingerprint)
DO UPDATE SET run = :run, document = :document, first = :now, last = :now, count = 1
"""
# `last` is empty from the moment on when the alert was over.
_JOINED = """
team = :team AND EXISTS (
    SELECT 1 FROM runs WHERE runs.id = alerts.run AND (
        runs.status NOT IN ('completed', 'failed', 'canceled', 'terminated')
        OR (alerts.last >= :since AND runs.updated >= :since)
    )
)
"""
_AGAIN = f"UPDATE alerts SET last = :now, count = count + 1 WHERE fingerprint = :fingerprint AND {_JOINED}"  # noqa: S608 - our own words
_RECENT = f"SELECT * FROM alerts WHERE {_JOINED} ORDER BY first, fingerprint"  # noqa: S608 - our own words
_OVER = "UPDATE alerts SET last = '' WHERE team = :team AND fingerprint = :fingerprint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One kind of alert: the run that it belongs to, the alert that began it, and how often it came.

    `last` is empty once it was over.
    """

    fingerprint: str
    run: str
    document: Mapping[str, Any]
    first: str
    last: str
    count: int


class Alerts:
    """The table of alerts."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def again(self, team: str, fingerprint: str, since: datetime) -> str | None:
        """The run that an alert of this kind joins, counted there; None where there is none that goes on, or did so since then."""
        values = {"team": team, "fingerprint": fingerprint, "since": stamp(since), "now": self._backing.now()}
        if not self._db.change(_AGAIN, values):
            return None
        row = self._db.row("SELECT run FROM alerts WHERE team = ? AND fingerprint = ?", (team, fingerprint))
        return str(row["run"]) if row else None

    def over(self, team: str, fingerprint: str) -> None:
        """No alert of this kind fires now: the next one joins no run that has ended."""
        self._db.change(_OVER, {"team": team, "fingerprint": fingerprint})

    def put(self, team: str, fingerprint: str, run: str, document: Mapping[str, Any]) -> None:
        """The first alert of its kind, or the first in a while: it belongs to this run."""
        values = {
            "team": team,
            "fingerprint": fingerprint,
            "run": run,
            "document": self._backing.document(document),
            "now": self._backing.now(),
        }
        self._db.change(_PUT, values)

    def recent(self, team: str, since: datetime) -> tuple[Seen, ...]:
        """The alerts whose runs others may join, the oldest first: runs that go on, or did so since then."""
        rows = self._db.rows(_RECENT, {"team": team, "since": stamp(since)})
        return tuple(
            Seen(
                fingerprint=row["fingerprint"],
                run=row["run"],
                document=json.loads(row["document"]),
                first=row["first"],
                last=row["last"],
                count=row["count"],
            )
            for row in rows
        )

    def count(self, run: str) -> int:
        """How many alerts belong to a run."""
        row = self._db.row("SELECT sum(count) AS total FROM alerts WHERE run = ?", (run,))
        return int(row["total"] or 0) if row else 0
