"""Which run each kind of alert belongs to, and the status of that run: one that comes again is distinguished from one that is new."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.clock import format_timestamp
from opsleuth.state.run_status import FINISHED_STATUSES, Status

_PUT = """
INSERT INTO alerts (team, fingerprint, run, document, first, last, count, service, began, severity, refired)
VALUES (:team, :fingerprint, :run, :document, :now, :now, 1, :service, :began, :severity, 0)
ON CONFLICT (team, fingerprint)
DO UPDATE SET run = :run, document = :document, first = :now, last = :now, count = 1, service = :service,
    began = :began, severity = :severity, refired = 0
"""
# `last` is empty from the moment on when the alert was over.
_AGAIN = """
UPDATE alerts
SET last = :now, count = count + 1, severity = :severity, refired = refired + CASE WHEN last = '' THEN 1 ELSE 0 END
WHERE team = :team AND fingerprint = :fingerprint
"""
_OVER = "UPDATE alerts SET last = '' WHERE team = :team AND fingerprint = :fingerprint"
_SELECT = """
SELECT alerts.fingerprint, alerts.run, alerts.first, alerts.last, alerts.count, alerts.service, alerts.severity,
    alerts.refired, runs.status, runs.updated
FROM alerts JOIN runs ON runs.id = alerts.run
"""
_FIND = _SELECT + "WHERE alerts.team = :team AND alerts.fingerprint = :fingerprint"
# The newest of each service are enough: those that are related to one another are in one run already.
_NEAR = (
    _SELECT
    + """
WHERE alerts.team = :team AND alerts.service = :service AND alerts.began >= :earliest AND alerts.began <= :latest
ORDER BY alerts.began DESC
LIMIT 20
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRun:
    """One kind of alert, and the run that it belongs to. `last` is empty once it was over, `refired` counts its returns."""

    fingerprint: str
    run: str
    first: str
    last: str
    count: int
    service: str | None
    severity: str | None
    refired: int
    status: Status
    updated: datetime

    @property
    def is_live(self) -> bool:
        """Whether its run still goes on, and can be notified of something."""
        return self.status not in FINISHED_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertKind:
    """One kind of alert of a team, as it came in now."""

    team: str
    fingerprint: str
    service: str | None
    severity: str | None
    began: datetime


class AlertRunsTable(Table):
    """The table of alerts: the last run of each kind."""

    def find(self, team: str, fingerprint: str) -> AlertRun | None:
        """The run of this kind of alert, None for one that never came or whose run was removed."""
        row = self._db.row(_FIND, {"team": team, "fingerprint": fingerprint})
        return _alert_run_from_row(row) if row else None

    def find_related(
        self, team: str, services: Collection[str], earliest: datetime, latest: datetime
    ) -> tuple[AlertRun, ...]:
        """Alerts of these services that began between the two moments, those whose runs go on first, then the newest."""
        window = {"team": team, "earliest": format_timestamp(earliest), "latest": format_timestamp(latest)}
        rows = [row for name in services for row in self._db.rows(_NEAR, {**window, "service": name})]
        found = sorted(map(_alert_run_from_row, rows), key=lambda alert: (alert.first, alert.fingerprint))
        return tuple(sorted(found, key=lambda alert: not alert.is_live))

    def count_again(self, kind: AlertKind) -> None:
        """The alert of this kind came again, and still belongs to its run."""
        values = {"team": kind.team, "fingerprint": kind.fingerprint, "severity": kind.severity}
        self._db.change_later(_AGAIN, {**values, "now": self._backing.now()})

    def over(self, team: str, fingerprint: str) -> None:
        """No alert of this kind fires now."""
        self._db.change_later(_OVER, {"team": team, "fingerprint": fingerprint})

    def put(self, kind: AlertKind, run: str, document: Mapping[str, Any]) -> None:
        """From now on this kind of alert belongs to this run."""
        values = {
            "team": kind.team,
            "fingerprint": kind.fingerprint,
            "run": run,
            "document": self._backing.document(document),
            "now": self._backing.now(),
            "service": kind.service,
            "began": format_timestamp(kind.began),
            "severity": kind.severity,
        }
        self._db.change_later(_PUT, values)

    def count(self, run: str) -> int:
        """How many alerts belong to a run."""
        row = self._db.row("SELECT sum(count) AS total FROM alerts WHERE run = ?", (run,))
        return int(row["total"] or 0) if row else 0


def _alert_run_from_row(row: Row) -> AlertRun:
    return decode_row(AlertRun, row, {"status": Status, "updated": datetime.fromisoformat})
