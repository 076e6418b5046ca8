"""Dates as HTTP writes them, and how long a server asks to wait: one reading for every server that is asked."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def read_http_date(text: str) -> datetime | None:
    """The moment that an HTTP header names, in UTC where it names no zone; None for any other text."""
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def read_retry_after(text: str, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks to wait, given in seconds or as a date; None for any other text."""
    seconds = read_seconds(text)
    if seconds is not None:
        return seconds
    when = read_http_date(text)
    return None if when is None else max(0.0, (when - now).total_seconds())


def read_seconds(text: str) -> float | None:
    """A number of seconds, 0 or more; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
