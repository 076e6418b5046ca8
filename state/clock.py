"""Time as a dependency: nothing else of opsleuth asks the operating system what time it is."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """`now` is the wall clock in UTC, `monotonic` seconds that never go back."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that stands still until it is moved: for replays, golden screens and tests."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Move both readings forward by `seconds`."""
        self._now += timedelta(seconds=seconds)
        self._elapsed += seconds


YEARS = range(1900, 2500)
"""Times of other years are slips of a clock or a unit, and near the calendar's ends arithmetic overflows."""


def convert_to_utc(moment: datetime) -> datetime:
    """An aware moment in UTC. Raises ValueError outside of `YEARS`."""
    if moment.year not in YEARS:
        raise ValueError(f"the year {moment.year} is out of range: {YEARS[0]} to {YEARS[-1]}")
    return moment.astimezone(UTC)


def format_timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and Z, the one form in which times are stored and shown."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
