"""Alerts as documents: in our own form, as a request of their own, and as they are stored."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from opsleuth.alerts.grouping import ReceivedAlert
from opsleuth.state.json_types import JSON

_NOT_OWN = ("name", "over", "muted", "unevaluated", "unread")
"""Fields of an alert that was received, and that our own form does not have."""
_FIELDS = tuple(field.name for field in fields(ReceivedAlert))


def alert_from_own_form(document: Mapping[str, Any]) -> ReceivedAlert:
    """An alert in our own form."""
    labels = document.get("labels")
    return ReceivedAlert(
        name=str(document.get("name") or document.get("text") or ""),
        text=str(document.get("text") or ""),
        service=_text_or_none(document.get("service")),
        metric=_text_or_none(document.get("metric")),
        severity=_text_or_none(document.get("severity")),
        fired_at=_parse_zoned_time(document.get("fired_at")),
        onset=_parse_zoned_time(document.get("onset")),
        labels=labels if isinstance(labels, Mapping) else {},
    )


def alert_as_request(alert: ReceivedAlert) -> dict[str, Any]:
    """The alert as a request of its own."""
    document = alert_to_json(alert) | {"text": alert.full_text}
    return {key: value for key, value in document.items() if value and key not in _NOT_OWN}


def alert_to_json(alert: ReceivedAlert) -> dict[str, Any]:
    """The alert as it is stored."""
    times = {
        name: moment.isoformat() if (moment := getattr(alert, name)) else None
        for name in ("fired_at", "onset")
    }
    plain = {name: getattr(alert, name) for name in _FIELDS}
    return {**plain, **times, "labels": dict(alert.labels), "unread": list(alert.unread)}


def alert_from_json(document: Mapping[str, Any]) -> ReceivedAlert:
    """The alert, read from its stored form."""
    times = {name: _parse_zoned_time(document[name]) for name in ("fired_at", "onset")}
    return ReceivedAlert(**{**document, **times})


def _text_or_none(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


def _parse_zoned_time(value: JSON) -> datetime | None:
    """A time with a zone; anything else is refused later, where the alert is read for the run."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None
