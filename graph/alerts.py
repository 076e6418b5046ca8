"""Alerts as other systems send them: Alertmanager, Grafana, Prometheus, PagerDuty, Opsgenie, CloudWatch.

Each becomes the fields of our own alert. What a system does not say stays away: a service is taken where a label
names it, never from a job or a host. Of several alerts the first that fires is the subject, the others are told.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Document = Mapping[str, Any]

_SERVICE_LABELS = (
    "service", "service_name", "app", "app_kubernetes_io_name", "application", "deployment", "statefulset", "component",
)  # fmt: skip
_WORST_FIRST = ("critical", "page", "error", "high", "warning", "low", "info")
_NO_TIME = "0001-01-01"
_MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class _Told:
    """One alert: what it says, since when, and how it stands."""

    text: str
    service: str | None = None
    metric: str | None = None
    severity: str | None = None
    fired_at: str | None = None
    onset: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    over: str | None = None


def understood(document: Document) -> dict[str, Any]:
    """The document as fields of our own alert, if a system is known that sends such; else the document itself."""
    for fits, read in _SYSTEMS:
        if fits(document):
            return _as_one(read(document)) or dict(document)
    return dict(document)


def _as_one(alerts: Sequence[_Told]) -> dict[str, Any]:
    """One alert of several: the first that fires; a group of which all are over tells of the last time."""
    if not alerts:
        return {}
    firing = [alert for alert in alerts if alert.over is None] or list(alerts)
    subject = min(firing, key=lambda a: (a.onset or a.fired_at or "9", _rank(a.severity)))
    others = [alert for alert in alerts if alert is not subject]
    text = subject.text + (f" (resolved {subject.over})" if subject.over else "")
    if others:
        text += f"; and {len(others)} more: " + "; ".join(_short(alert) for alert in others[:_MOST_TOLD])
    told = {
        "text": text,
        "service": subject.service,
        "metric": subject.metric,
        "severity": subject.severity,
        "fired_at": subject.fired_at,
        "onset": subject.onset,
        "labels": dict(subject.labels),
    }
    return {name: value for name, value in told.items() if value}


def _short(alert: _Told) -> str:
    where = f" of {alert.service}" if alert.service and alert.service not in alert.text else ""
    when = alert.onset or alert.fired_at
    return f"{alert.text}{where}" + (f" since {when}" if when else "") + (" (resolved)" if alert.over else "")


def _rank(severity: str | None) -> int:
    word = (severity or "").lower()
    return _WORST_FIRST.index(word) if word in _WORST_FIRST else len(_WORST_FIRST)


# --- Alertmanager, Grafana, Prometheus -----------------------------------------------------------------------


def _alertmanager(document: Document) -> list[_Told]:
    common = _mapping(document.get("commonLabels"))
    notes = _mapping(document.get("commonAnnotations"))
    return [_labelled(alert, common, notes) for alert in _objects(document.get("alerts"))]


def _prometheus(document: Document) -> list[_Told]:
    alerts = _objects(_mapping(document.get("data")).get("alerts"))
    firing = [alert for alert in alerts if alert.get("state") == "firing"] or alerts
    return [_labelled(alert, {}, {}) for alert in firing]


def _labelled(alert: Document, common: Document, notes: Document) -> _Told:
    labels = {**common, **_mapping(alert.get("labels"))}
    annotations = {**notes, **_mapping(alert.get("annotations"))}
    words = next(
        (str(annotations[k]) for k in ("summary", "description", "message") if annotations.get(k)), ""
    )
    name = str(labels.get("alertname") or "alert")
    rest = {k: v for k, v in labels.items() if k not in ("alertname", "severity")}
    return _Told(
        text=f"{name}: {words}" if words else name,
        service=_service(labels),
        severity=_word(labels.get("severity")),
        fired_at=_time(alert.get("startsAt")),
        onset=_time(alert.get("activeAt")),
        labels={"alertname": name, **rest},
        over=_time(alert.get("endsAt")) or "some time ago" if alert.get("status") == "resolved" else None,
    )


# --- others --------------------------------------------------------------------------------------------------


def _pagerduty(document: Document) -> list[_Told]:
    event = _mapping(document["event"])
    data = _mapping(event.get("data"))
    resolved = str(event.get("event_type", "")).endswith("resolved")
    return [
        _Told(
            text=str(data.get("title") or data.get("summary") or "incident"),
            service=_word(_mapping(data.get("service")).get("summary")),
            severity=_word(_mapping(data.get("priority")).get("summary")) or _word(data.get("urgency")),
            fired_at=_time(data.get("created_at")) or _time(event.get("occurred_at")),
            labels={k: data[k] for k in ("id", "html_url") if isinstance(data.get(k), str)},
            over=_time(event.get("occurred_at")) or "some time ago" if resolved else None,
        )
    ]


def _pagerduty_event(document: Document) -> list[_Told]:
    """An event as monitors send it to PagerDuty; its routing key is a secret and stays away."""
    payload = _mapping(document["payload"])
    details = _mapping(payload.get("custom_details"))
    return [
        _Told(
            text=str(payload.get("summary") or "event"),
            service=_word(payload.get("component")) or _service(details),
            severity=_word(payload.get("severity")),
            fired_at=_time(payload.get("timestamp")),
            labels={k: v for k, v in {"source": payload.get("source"), "class": payload.get("class"), **details}.items() if v},
            over="by this event" if document.get("event_action") == "resolve" else None,
        )
    ]  # fmt: skip


def _opsgenie(document: Document) -> list[_Told]:
    alert = _mapping(document["alert"])
    details = _mapping(alert.get("details"))
    return [
        _Told(
            text=str(alert.get("message") or "alert"),
            service=_service(details) or _word(alert.get("entity")),
            severity=_word(alert.get("priority")),
            fired_at=_time(alert.get("createdAt")),
            labels={**details, "tags": alert.get("tags") or []},
            over="by this message" if document.get("action") == "Close" else None,
        )
    ]


def _cloudwatch(document: Document) -> list[_Told]:
    alarm = document if "AlarmName" in document else _mapping(_json(document.get("Message")))
    trigger = _mapping(alarm.get("Trigger"))
    dimensions = {str(d.get("name")): d.get("value") for d in _objects(trigger.get("Dimensions"))}
    words = alarm.get("AlarmDescription") or alarm.get("NewStateReason") or ""
    return [
        _Told(
            text=f"{alarm.get('AlarmName')}: {words}" if words else str(alarm.get("AlarmName")),
            service=_word(next(iter(dimensions.values()), None)) if len(dimensions) == 1 else None,
            metric=_word(trigger.get("MetricName")),
            fired_at=_time(alarm.get("StateChangeTime")),
            labels={
                **dimensions,
                "namespace": trigger.get("Namespace") or "",
                "reason": alarm.get("NewStateReason") or "",
            },
            over=_time(alarm.get("StateChangeTime")) if alarm.get("NewStateValue") == "OK" else None,
        )
    ]


_SYSTEMS: tuple[tuple[Callable[[Document], bool], Callable[[Document], list[_Told]]], ...] = (
    (lambda d: isinstance(d.get("alerts"), list) and "text" not in d, _alertmanager),
    (lambda d: isinstance(_mapping(d.get("data")).get("alerts"), list), _prometheus),
    (lambda d: "event_type" in _mapping(d.get("event")), _pagerduty),
    (lambda d: "payload" in d and "event_action" in d, _pagerduty_event),
    (lambda d: "action" in d and "message" in _mapping(d.get("alert")), _opsgenie),
    (lambda d: "AlarmName" in d or "AlarmName" in _mapping(_json(d.get("Message"))), _cloudwatch),
)


def _service(labels: Document) -> str | None:
    return next((word for name in _SERVICE_LABELS if (word := _word(labels.get(name)))), None)


def _time(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """An RFC 3339 time with a zone, or milliseconds since the epoch; anything else is no time."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e11 < value < 1e14:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat()
    if not isinstance(value, str) or value.startswith(_NO_TIME):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.isoformat() if moment.tzinfo else None


def _mapping(value: Any) -> Document:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Document]:  # noqa: ANN401 - any JSON value
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _word(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    return value[:300] if isinstance(value, str) and value else None


def _json(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
