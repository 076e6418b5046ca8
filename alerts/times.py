"""Read the times that alerting systems write. An unreadable time is reported, so that it is not taken for absent."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from opsleuth.state.json_types import JSON

_NO_TIME = "0001-01-01"
_ZONE_NAME = re.compile(r"\s*([+-]\d\d:?\d\d)\s+[A-Z]{1,5}$|\s+(?:UTC|GMT|Z)$|\s+([+-]\d\d:?\d\d)$")


def parse_time(value: JSON) -> datetime | None:
    """A time with a zone as RFC 3339, RFC 2822 or Go write it, or seconds or milliseconds since the epoch; else None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value if 1e9 < value < 1e11 else value / 1000 if 1e11 < value < 1e14 else None
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    if not isinstance(value, str) or value.startswith(_NO_TIME):
        return None
    for read in (_iso_time, parsedate_to_datetime):
        with suppress(ValueError):
            moment = read(value)
            return moment if moment.tzinfo else None
    return None


def _iso_time(value: str) -> datetime:
    """Go's own form has a space before its zone, and the zone's name behind it: `2026-11-29 14:00:30.5 +0000 UTC`."""
    text = _ZONE_NAME.sub(lambda found: found[1] or found[2] or "+00:00", value.strip())
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


def unreadable_times(document: Mapping[str, Any], *fields: str) -> tuple[str, ...]:
    """Times that are given but cannot be read, by the name of their field."""
    given = {name: value for name in fields if (value := document.get(name)) not in (None, "", 0)}
    return tuple(
        f"{name} {str(value)[:60]!r}"
        for name, value in given.items()
        if not str(value).startswith(_NO_TIME) and parse_time(value) is None
    )


def describe_time(value: JSON) -> str:
    moment = parse_time(value)
    return moment.isoformat() if moment else "some time ago"
