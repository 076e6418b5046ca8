"""What came in over the API: who sent each run, under which key, and how its attempts went."""

from dataclasses import dataclass

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.db import Row

_INSERT = """
INSERT INTO intake (run, team, severity, sender, request, digest, progress, strikes)
VALUES (:run, :team, :severity, :sender, :request, :digest, 0, 0)
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
class Taken:
    """One run as it came in. `severity` 0 to 4; `request` is the sender's idempotency key, `digest` of what was asked.

    `strikes` counts consecutive attempts that started without any newly finished node.
    """

    run: str
    team: str
    severity: int
    sender: str
    request: str | None
    digest: str
    strikes: int = 0


class Intake:
    """The table of what came in."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def put(self, taken: Taken) -> None:
        """Remember a run. Its key must be new for this team."""
        values = {
            "run": taken.run,
            "team": taken.team,
            "severity": taken.severity,
            "sender": self._backing.clean(taken.sender),
            "request": taken.request,
            "digest": taken.digest,
        }
        self._db.change(_INSERT, values)

    def get(self, run: str) -> Taken | None:
        """One run, None for one that did not come over the API."""
        row = self._db.row("SELECT * FROM intake WHERE run = ?", (run,))
        return _taken(row) if row else None

    def of_request(self, team: str, request: str) -> Taken | None:
        """The run that this team sent under this key."""
        row = self._db.row("SELECT * FROM intake WHERE team = ? AND request = ?", (team, request))
        return _taken(row) if row else None

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


def _taken(row: Row) -> Taken:
    return Taken(**{name: row[name] for name in Taken.__dataclass_fields__})
