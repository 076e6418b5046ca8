"""What the runs of a team have spent on each day: money in US dollars, tokens of models. A day is one in UTC."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from opsleuth.checkpoints.table_context import Table

_ADD = """
INSERT INTO spending (team, day, cost, tokens, warned) VALUES (:team, :day, :cost, :tokens, 0)
ON CONFLICT (team, day) DO UPDATE SET cost = spending.cost + :cost, tokens = spending.tokens + :tokens
"""
_WARN = "UPDATE spending SET warned = 1 WHERE team = :team AND day = :day AND warned = 0"
_FORGET = "DELETE FROM spending WHERE day < ?"
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class DaySpending:
    """What a team has spent on one day."""

    day: str
    cost: Decimal = Decimal(0)
    tokens: int = 0


class SpendingTable(Table):
    """The table of what teams spend. The day is that of the database's clock: of many workers one may be wrong."""

    def add(self, team: str, cost: Decimal, tokens: int) -> None:
        """Count what one call to a model cost."""
        values = {"team": team, "day": self._today(), "cost": int(cost * _MILLION), "tokens": tokens}
        self._db.change(_ADD, values)

    def read_today(self, team: str) -> DaySpending:
        """What the team has spent today."""
        day = self._today()
        row = self._db.row("SELECT cost, tokens FROM spending WHERE team = ? AND day = ?", (team, day))
        return (
            DaySpending(day, Decimal(int(row["cost"])) / _MILLION, int(row["tokens"]))
            if row
            else DaySpending(day)
        )

    def mark_warned(self, team: str) -> bool:
        """Whether people are to be warned now: once a day."""
        return bool(self._db.change(_WARN, {"team": team, "day": self._today()}))

    def seconds_until_tomorrow(self) -> float:
        """Seconds until the next day begins."""
        now = self._now()
        return (
            now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1) - now
        ).total_seconds()

    def forget_days_before(self, moment: datetime) -> int:
        """Remove the days before this moment; returns how many rows."""
        return self._db.change(_FORGET, (moment.date().isoformat(),))

    def _today(self) -> str:
        return self._now().date().isoformat()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._db.moment(self._backing.clock), UTC)
