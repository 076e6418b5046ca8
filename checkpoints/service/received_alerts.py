"""The outcome of each alert that was received, and why. Every alert is found here, whatever it led to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.clock import format_timestamp

AlertOutcome = Literal[
    "started", "linked", "joined", "repeated", "escalated", "flapping", "resolved", "muted", "unreadable"
]
ALERT_OUTCOMES: tuple[AlertOutcome, ...] = get_args(AlertOutcome)

_INSERT = """
INSERT INTO received_alerts (team, received, sender, fingerprint, name, service, severity, outcome, run, linked, note, reason, document)
VALUES (:team, :received, :sender, :fingerprint, :name, :service, :severity, :outcome, :run, :linked, :note, :reason, :document)
"""
_LIST = """
SELECT * FROM received_alerts
WHERE team = :team AND id < :before AND (:run IS NULL OR run = :run) AND (:outcome IS NULL OR outcome = :outcome)
    AND (:name IS NULL OR name = :name)
ORDER BY id DESC
LIMIT :limit
"""
_FORGET = """
DELETE FROM received_alerts WHERE id IN (SELECT id FROM received_alerts WHERE received < :before ORDER BY received LIMIT :limit)
"""
_NEWEST = 2**62
"""Above every row's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReceipt:
    """One alert that was received. `run` is where it went; `linked` the ended run that `run` follows.

    `note` numbers the request that tells `run` of it, None where there is nothing to tell. `id` and `received` are set by
    the store.
    """

    team: str
    sender: str
    fingerprint: str
    name: str
    outcome: AlertOutcome
    reason: str
    service: str | None = None
    severity: str | None = None
    run: str | None = None
    linked: str | None = None
    note: int | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    received: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFilter:
    """Which receipts are asked for; None leaves a field open. `before` is the number that a page ends at."""

    run: str | None = None
    outcome: AlertOutcome | None = None
    name: str | None = None
    before: int | None = None


class ReceivedAlertsTable(Table):
    """The ledger of alerts."""

    def put(self, receipt: AlertReceipt) -> None:
        """Write down the outcome of one alert."""
        clean = self._backing.clean
        values = {
            "team": receipt.team,
            "received": self._backing.now(),
            "sender": clean(receipt.sender),
            "fingerprint": receipt.fingerprint,
            "name": clean(receipt.name[:300]),
            "service": clean(receipt.service) if receipt.service else None,
            "severity": clean(receipt.severity) if receipt.severity else None,
            "outcome": receipt.outcome,
            "run": receipt.run,
            "linked": receipt.linked,
            "note": receipt.note,
            "reason": clean(receipt.reason[:1_000]),
            "document": self._backing.document(receipt.document),
        }
        self._db.change_later(_INSERT, values)

    def list(
        self, team: str, wanted: ReceiptFilter | None = None, limit: int = 100
    ) -> tuple[AlertReceipt, ...]:
        """The outcome of the team's alerts, the newest first."""
        asked = wanted or ReceiptFilter()
        values = {
            "team": team,
            "run": asked.run,
            "outcome": asked.outcome,
            "name": asked.name,
            "before": _NEWEST if asked.before is None else asked.before,
            "limit": limit,
        }
        return tuple(
            decode_row(AlertReceipt, row, {"document": json.loads}) for row in self._db.rows(_LIST, values)
        )

    def list_of_notes(self, run: str) -> dict[int, AlertReceipt]:
        """The alerts that this run is notified of by a note, by the number of the note."""
        rows = self._db.rows(
            "SELECT * FROM received_alerts WHERE run = ? AND note IS NOT NULL ORDER BY id", (run,)
        )
        receipts = (decode_row(AlertReceipt, row, {"document": json.loads}) for row in rows)
        return {receipt.note: receipt for receipt in receipts if receipt.note is not None}

    def forget_before(self, moment: datetime, limit: int) -> int:
        """Remove at most this many receipts that are older than this moment; returns how many."""
        return self._db.change(_FORGET, {"before": format_timestamp(moment), "limit": limit})
