"""Requests over the API: who sent each run, under which key, and how its attempts went."""

from dataclasses import dataclass

from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.table_context import Table

_INSERT = """
INSERT INTO intake (run, team, severity, sender, request, digest, progress, strikes, follows)
VALUES (:run, :team, :severity, :sender, :request, :digest, 0, 0, :follows)
"""
_LOCK = """
INSERT INTO teams (name, alerts) VALUES (:team, 1)
ON CONFLICT (name) DO UPDATE SET alerts = teams.alerts + 1
"""
_ATTEMPT = """
UPDATE intake
SET strikes = CASE WHEN progress < :progress THEN 1 ELSE strikes + 1 END, progress = :progress
WHERE run = :run
"""
_PARDON = "UPDATE intake SET strikes = 0 WHERE run = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRow:
    """One run as it came in. `severity` 0 to 4; `request` is the sender's idempotency key, `digest` of what was asked.

    `strikes` counts consecutive attempts that started without any newly finished node. `follows` is the ended run that this one
    goes on from.
    """

    run: str
    team: str
    severity: int
    sender: str
    request: str | None
    digest: str
    strikes: int = 0
    follows: str | None = None


class IntakeTable(Table):
    """The table of what came in."""

    def put(self, taken: IntakeRow) -> None:
        """Remember a run. Its key must be new for this team."""
        values = {
            "run": taken.run,
            "team": taken.team,
            "severity": taken.severity,
            "sender": self._backing.clean(taken.sender),
            "request": taken.request,
            "digest": taken.digest,
            "follows": taken.follows,
        }
        self._db.change_later(_INSERT, values)

    def get(self, run: str) -> IntakeRow | None:
        """One run, None for one that did not come over the API."""
        row = self._db.row("SELECT * FROM intake WHERE run = ?", (run,))
        return _intake_from_row(row) if row else None

    def find(self, run: str) -> IntakeRow:
        """One run that came over the API. Raises NotFoundError for another one."""
        found = self.get(run)
        if found is None:
            raise NotFoundError(f"run {run} did not come over the API")
        return found

    def of_request(self, team: str, request: str) -> IntakeRow | None:
        """The run that this team sent under this key."""
        row = self._db.row("SELECT * FROM intake WHERE team = ? AND request = ?", (team, request))
        return _intake_from_row(row) if row else None

    def one_at_a_time(self, team: str) -> None:
        """Within a transaction: whoever calls this for the same team waits until the transaction has ended."""
        self._db.change(_LOCK, {"team": team})

    def attempt(self, run: str, progress: int) -> int:
        """An attempt begins; how many in a row have found the run at this same progress, this one included."""
        self._db.change(_ATTEMPT, {"run": run, "progress": progress})
        found = self.get(run)
        return found.strikes if found else 1

    def pardon(self, run: str) -> None:
        """A person says that it shall go on: what was before counts no more."""
        self._db.change(_PARDON, (run,))


def _intake_from_row(row: Row) -> IntakeRow:
    return decode_row(IntakeRow, row)
