"""How long a server that limits requests asks to wait: by headers of several providers, or in the words of its error."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from opsleuth.state.http_dates import read_retry_after, read_seconds

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_UNIT = r"(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|d)"
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*{_UNIT}(?![a-z])", re.IGNORECASE)
_DURATION = re.compile(rf"(?:\d+(?:\.\d+)?\s*{_UNIT}\s*)+", re.IGNORECASE)
_ASKED = re.compile(
    r"(?:(?:try again|retry|wait|available|resets?)\D{0,24}?|retrydelay\W{1,6})"
    rf"((?:\d+(?:\.\d+)?\s*{_UNIT}(?![a-z])\s*)+)",
    re.IGNORECASE,
)
_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")
_EPOCH = 1_000_000_000.0
"""A larger number is a moment, not a duration; a thousand times larger, one in milliseconds."""


def find_asked_wait(headers: Mapping[str, str], words: str, now: datetime | None = None) -> float:
    """Seconds that the server asks to wait, 0 if it does not say. Headers count before words."""
    now = now or datetime.now(UTC)
    if ms := read_seconds(headers.get("retry-after-ms", "")):
        return ms / 1000
    if seconds := read_retry_after(headers.get("retry-after", ""), now):
        return seconds
    if waits := list(_waits_of_limits(headers, now)):
        return max(waits)
    found = _ASKED.search(words)
    return (read_duration(found[1]) or 0.0) if found else 0.0


def read_duration(text: str) -> float | None:
    """Seconds of a duration as providers write it: 20ms, 12s, 6m0s, 1h30m, 12 seconds; None for any other text."""
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(float(number) * _UNITS[_unit_symbol(unit)] for number, unit in _PART.findall(text))


def _unit_symbol(unit: str) -> str:
    low = unit.lower()
    return "ms" if low.startswith(("ms", "milli")) else low[0]


def _waits_of_limits(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    """Until each limit that is used up starts over. A limit that is not used up does not count."""
    for prefix in ("x-ratelimit", "anthropic-ratelimit"):
        for kind in ("", *(f"-{kind}" for kind in _LIMITS)):
            names = (
                (f"{prefix}-remaining{kind}", f"{prefix}-reset{kind}")
                if prefix == "x-ratelimit"
                else (f"{prefix}{kind}-remaining", f"{prefix}{kind}-reset")
            )
            remaining, reset = (headers.get(name, "").strip() for name in names)
            if remaining in ("0", "0.0") and (wait := _read_reset(reset, now)) is not None:
                yield wait


def _read_reset(text: str, now: datetime) -> float | None:
    if (number := read_seconds(text)) is not None:
        if number >= _EPOCH:
            number = (number / 1000 if number >= _EPOCH * 1000 else number) - now.timestamp()
        return max(0.0, number)
    if (duration := read_duration(text)) is not None:
        return duration
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return max(0.0, ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds())
