"""Alerts as other systems send them: Alertmanager, Grafana, Prometheus, PagerDuty, Opsgenie, CloudWatch.

What a system does not say stays away: a service is taken where a label names it, never from a job or a host. Several
alerts are one incident where their times and the calls between their services say so (`state/alerts.py`). A run is about
the first incident, and in it about the alert that fired first; the others are told.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from opsleuth.state.alerts import Incident, ReceivedAlert, incidents

Document = Mapping[str, Any]

_SERVICE_LABELS = (
    "service", "service_name", "app", "app_kubernetes_io_name", "application", "deployment", "statefulset", "component",
)  # fmt: skip
_WORST_FIRST = ("critical", "page", "error", "high", "warning", "low", "info")
_NO_TIME = "0001-01-01"
_MOST_TOLD = 20


def received(document: Document) -> tuple[ReceivedAlert, ...]:
    """The alerts in the document, if it is of a system that is known; else none."""
    return next((tuple(read(document)) for fits, read in _SYSTEMS if fits(document)), ())


def nothing_fires(document: Document) -> bool:
    """Whether the document is of a system that is known, and tells of no alert at all."""
    read = next((read for fits, read in _SYSTEMS if fits(document)), None)
    return read is not None and not tuple(read(document))


def declared_calls(sources: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Whom each service calls, as the configuration says: all that is known before anything was read."""
    calls: dict[str, tuple[str, ...]] = {}
    for settings in sources.values():
        if settings.get("kind") == "declared":
            calls |= {caller: tuple(callees) for caller, callees in settings["calls"].items()}
    return calls


def grouped(document: Document, calls: Mapping[str, Collection[str]], now: datetime) -> tuple[Incident, ...]:
    """The incidents that the document tells of: those that fire, or if all are over the past ones."""
    alerts = received(document)
    return incidents([alert for alert in alerts if alert.over is None] or alerts, calls, now)


def understood(document: Document, calls: Mapping[str, Collection[str]], now: datetime) -> dict[str, Any]:
    """The document as fields of our own alert, if a system is known that sends such; else the document itself."""
    found = grouped(document, calls, now)
    return _as_one(found[0], found[1:]) if found else dict(document)


def _as_one(incident: Incident, others: Sequence[Incident]) -> dict[str, Any]:
    """One alert of several: the first of the incident, then the rest of it, then what is not known to belong to it."""
    subject = min(incident.alerts, key=lambda a: (a.began is None, a.began, _rank(a.severity)))
    rest = [alert for alert in incident.alerts if alert is not subject]
    apart = [alert for other in others for alert in other.alerts]
    told = {
        "text": subject.text
        + (f" (resolved {subject.over})" if subject.over else "")
        + _listed(f"; and {len(rest)} more: ", rest)
        + _listed("; not known to belong to it: ", apart),
        "service": subject.service,
        "metric": subject.metric,
        "severity": subject.severity,
        "fired_at": subject.fired_at and subject.fired_at.isoformat(),
        "onset": subject.onset and subject.onset.isoformat(),
        "labels": dict(subject.labels),
    }
    return {name: value for name, value in told.items() if value}


def _listed(head: str, alerts: Sequence[ReceivedAlert]) -> str:
    return head + "; ".join(map(_short, alerts[:_MOST_TOLD])) if alerts else ""


def _short(alert: ReceivedAlert) -> str:
    where = f" of {alert.service}" if alert.service and alert.service not in alert.text else ""
    return f"{alert.text}{where}" + (f" since {alert.began.isoformat()}" if alert.began else "")


def _rank(severity: str | None) -> int:
    word = (severity or "").lower()
    return _WORST_FIRST.index(word) if word in _WORST_FIRST else len(_WORST_FIRST)


# --- Alertmanager, Grafana, Prometheus -----------------------------------------------------------------------


def _alertmanager(document: Document) -> list[ReceivedAlert]:
    common = _mapping(document.get("commonLabels"))
    notes = _mapping(document.get("commonAnnotations"))
    return [_labelled(alert, common, notes) for alert in _objects(document.get("alerts"))]


def _prometheus(document: Document) -> list[ReceivedAlert]:
    alerts = _objects(_mapping(document.get("data")).get("alerts"))
    firing = [alert for alert in alerts if alert.get("state") == "firing"] or alerts
    return [_labelled(alert, {}, {}) for alert in firing]


def _samples(document: Document) -> list[ReceivedAlert]:
    """The series ALERTS, as a query of Prometheus answers: an instant one, or one over a range.

    ALERTS is 1 while an alert lasts, ALERTS_FOR_STATE is the moment at which it began.
    """
    series = _objects(_mapping(document.get("data")).get("result"))
    firing = [one for one in series if _mapping(one.get("metric")).get("alertstate") != "pending"] or series
    return [_labelled(_as_alert(one), {}, {}) for one in firing]


def _as_alert(series: Document) -> Document:
    labels = _mapping(series.get("metric"))
    time, value = _sample(series)
    about = {k: v for k, v in labels.items() if k not in ("__name__", "alertstate")}
    if labels.get("__name__") == "ALERTS_FOR_STATE":
        return {"labels": about, "activeAt": _milliseconds(value)}
    return {"labels": about, "startsAt": _milliseconds(time)}


def _sample(series: Document) -> tuple[Any, Any]:
    """The sample of an instant query, or the first of a range: (time in seconds, value)."""
    several = series.get("values")
    pair = series.get("value") or (several[0] if isinstance(several, list) and several else None)
    return (pair[0], pair[1]) if isinstance(pair, list) and len(pair) == 2 else (None, None)


def _milliseconds(seconds: Any) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return float(seconds) * 1000
    except (TypeError, ValueError, OverflowError):
        return None


def _are_alerts(document: Document) -> bool:
    """An empty answer has no name; one of another series is no alert."""
    data = _mapping(document.get("data"))
    series = data.get("result")
    names = {str(_mapping(one.get("metric")).get("__name__", "ALERTS")) for one in _objects(series)}
    return isinstance(series, list) and data.get("resultType") in ("vector", "matrix") and names <= {"ALERTS", "ALERTS_FOR_STATE"}  # fmt: skip


def _labelled(alert: Document, common: Document, notes: Document) -> ReceivedAlert:
    labels = {**common, **_mapping(alert.get("labels"))}
    annotations = {**notes, **_mapping(alert.get("annotations"))}
    words = next(
        (str(annotations[k]) for k in ("summary", "description", "message") if annotations.get(k)), ""
    )
    name = str(labels.get("alertname") or "alert")
    rest = {k: v for k, v in labels.items() if k not in ("alertname", "severity")}
    return ReceivedAlert(
        name=name,
        text=f"{name}: {words}" if words else name,
        service=_service(labels),
        severity=_word(labels.get("severity")),
        fired_at=_time(alert.get("startsAt")),
        onset=_time(alert.get("activeAt")),
        labels={"alertname": name, **rest},
        over=_since(alert.get("endsAt")) if alert.get("status") == "resolved" else None,
    )


# --- others --------------------------------------------------------------------------------------------------


def _pagerduty(document: Document) -> list[ReceivedAlert]:
    event = _mapping(document["event"])
    data = _mapping(event.get("data"))
    title = str(data.get("title") or data.get("summary") or "incident")
    resolved = str(event.get("event_type", "")).endswith("resolved")
    return [
        ReceivedAlert(
            name=title,
            text=title,
            service=_word(_mapping(data.get("service")).get("summary")),
            severity=_word(_mapping(data.get("priority")).get("summary")) or _word(data.get("urgency")),
            fired_at=_time(data.get("created_at")) or _time(event.get("occurred_at")),
            labels={k: data[k] for k in ("id", "html_url") if isinstance(data.get(k), str)},
            over=_since(event.get("occurred_at")) if resolved else None,
        )
    ]


def _pagerduty_event(document: Document) -> list[ReceivedAlert]:
    """An event as monitors send it to PagerDuty; its routing key is a secret and stays away."""
    payload = _mapping(document["payload"])
    details = _mapping(payload.get("custom_details"))
    summary = str(payload.get("summary") or "event")
    return [
        ReceivedAlert(
            name=summary,
            text=summary,
            service=_word(payload.get("component")) or _service(details),
            severity=_word(payload.get("severity")),
            fired_at=_time(payload.get("timestamp")),
            labels={k: v for k, v in {"source": payload.get("source"), "class": payload.get("class"), **details}.items() if v},
            over="by this event" if document.get("event_action") == "resolve" else None,
        )
    ]  # fmt: skip


def _opsgenie(document: Document) -> list[ReceivedAlert]:
    alert = _mapping(document["alert"])
    details = _mapping(alert.get("details"))
    message = str(alert.get("message") or "alert")
    return [
        ReceivedAlert(
            name=message,
            text=message,
            service=_service(details) or _word(alert.get("entity")),
            severity=_word(alert.get("priority")),
            fired_at=_time(alert.get("createdAt")),
            labels={**details, "tags": alert.get("tags") or []},
            over="by this message" if document.get("action") == "Close" else None,
        )
    ]


def _cloudwatch(document: Document) -> list[ReceivedAlert]:
    alarm = document if "AlarmName" in document else _mapping(_json(document.get("Message")))
    trigger = _mapping(alarm.get("Trigger"))
    dimensions = {str(d.get("name")): d.get("value") for d in _objects(trigger.get("Dimensions"))}
    name = str(alarm.get("AlarmName"))
    words = alarm.get("AlarmDescription") or alarm.get("NewStateReason") or ""
    return [
        ReceivedAlert(
            name=name,
            text=f"{name}: {words}" if words else name,
            service=_word(next(iter(dimensions.values()), None)) if len(dimensions) == 1 else None,
            metric=_word(trigger.get("MetricName")),
            fired_at=_time(alarm.get("StateChangeTime")),
            labels={
                **dimensions,
                "namespace": trigger.get("Namespace") or "",
                "reason": alarm.get("NewStateReason") or "",
            },
            over=_since(alarm.get("StateChangeTime")) if alarm.get("NewStateValue") == "OK" else None,
        )
    ]


_SYSTEMS: tuple[tuple[Callable[[Document], bool], Callable[[Document], list[ReceivedAlert]]], ...] = (
    (lambda d: isinstance(d.get("alerts"), list) and "text" not in d, _alertmanager),
    (lambda d: isinstance(_mapping(d.get("data")).get("alerts"), list), _prometheus),
    (_are_alerts, _samples),
    (lambda d: "event_type" in _mapping(d.get("event")), _pagerduty),
    (lambda d: "payload" in d and "event_action" in d, _pagerduty_event),
    (lambda d: "action" in d and "message" in _mapping(d.get("alert")), _opsgenie),
    (lambda d: "AlarmName" in d or "AlarmName" in _mapping(_json(d.get("Message"))), _cloudwatch),
)


def _service(labels: Document) -> str | None:
    return next((word for name in _SERVICE_LABELS if (word := _word(labels.get(name)))), None)


def _time(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON value
    """An RFC 3339 time with a zone, or milliseconds since the epoch; anything else is no time."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e11 < value < 1e14:
        return datetime.fromtimestamp(value / 1000, UTC)
    if not isinstance(value, str) or value.startswith(_NO_TIME):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _since(value: Any) -> str:  # noqa: ANN401 - any JSON value
    moment = _time(value)
    return moment.isoformat() if moment else "some time ago"


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
