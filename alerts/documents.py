"""Alerts as other systems send them: Alertmanager, Grafana, Prometheus, PagerDuty, Opsgenie, CloudWatch.

What a system does not report stays empty: a service is taken where a label names it, never from a job or a host, and not
from labels of an exporter (`alerts/labels.py`). Several alerts are one incident where their times and the calls
between their services say so (`alerts/grouping.py`). Which of them a run is about `alerts/subject.py` decides; the
others are listed behind it.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from opsleuth.alerts.grouping import AlertIncident, ReceivedAlert, group_into_incidents
from opsleuth.alerts.labels import service_in
from opsleuth.alerts.status import describe_muting, failed_evaluation, is_resolved
from opsleuth.alerts.subject import select_firing_alerts, sort_incidents, subject_of
from opsleuth.alerts.times import describe_time, parse_time, unreadable_times
from opsleuth.alerts.unknown_documents import read_unknown_alert
from opsleuth.state.errors import UsageError
from opsleuth.state.json_types import JSON

Document = Mapping[str, Any]

_MOST_TOLD = 20


def parse_alert_document(document: Document) -> tuple[ReceivedAlert, ...]:
    """The alerts in the document, if it comes from a known system; else none."""
    return next((tuple(read(document)) for fits, read in _SYSTEMS if fits(document)), ())


def count_unreadable_entries(document: Document) -> int:
    """Entries of a list of alerts that are not objects: nothing can be read from them."""
    listed = document.get("alerts")
    return sum(not isinstance(entry, Mapping) for entry in listed) if isinstance(listed, list) else 0


def nothing_fires(document: Document) -> bool:
    """Whether the document is of a system that is known, and reports no alert at all."""
    read = next((read for fits, read in _SYSTEMS if fits(document)), None)
    return read is not None and not tuple(read(document))


def declared_calls(sources: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The configured calls between services: all that is known before any source is read."""
    calls: dict[str, tuple[str, ...]] = {}
    for settings in sources.values():
        if settings.get("kind") == "declared":
            calls |= {caller: tuple(callees) for caller, callees in settings["calls"].items()}
    return calls


def group_alert_document(
    document: Document, calls: Mapping[str, Collection[str]], now: datetime, question: str = ""
) -> tuple[AlertIncident, ...]:
    """The incidents of the document, that which a run is about at the front: of alerts that fire, or if all are over of past ones.

    What keeps quiet is in none of them. `question` is what a person asked beside the alerts.
    """
    return sort_incidents(
        group_into_incidents(select_firing_alerts(parse_alert_document(document)), calls, now), question, now
    )


def find_muted_alerts(document: Document) -> tuple[ReceivedAlert, ...]:
    """The alerts that somebody keeps quiet, or that always fire."""
    return tuple(alert for alert in parse_alert_document(document) if alert.muted is not None)


def alert_fields_from_document(
    document: Document, calls: Mapping[str, Collection[str]], now: datetime, question: str = ""
) -> dict[str, Any]:
    """The document as fields of our own alert, by the system that is known to send such, else by what it visibly has.

    Raises UsageError where every alert is kept quiet.
    """
    if found := group_alert_document(document, calls, now, question):
        return _as_one(found[0], found[1:], question)
    if quiet := find_muted_alerts(document):
        raise UsageError(all_muted(quiet))
    return read_unknown_alert(document)


def all_muted(alerts: Sequence[ReceivedAlert]) -> str:
    """Why there is nothing to look into, and what to do."""
    listed = "; ".join(f"{alert.name} is {alert.muted}" for alert in alerts[:_MOST_TOLD])
    return f"no alert asks for attention ({listed}): ask a question, or give --since"


def _as_one(incident: AlertIncident, others: Sequence[AlertIncident], question: str) -> dict[str, Any]:
    """One alert of several: the subject of the incident, then the rest of it, then what is not known to belong to it."""
    subject = subject_of(incident, question)
    rest = [alert for alert in incident.alerts if alert is not subject]
    apart = [alert for other in others for alert in other.alerts]
    told = {
        "text": subject.full_text
        + _list_other_alerts(f"; and {len(rest)} more: ", rest)
        + _list_other_alerts("; not known to belong to it: ", apart),
        "service": subject.service,
        "metric": subject.metric,
        "severity": subject.severity,
        "fired_at": subject.fired_at and subject.fired_at.isoformat(),
        "onset": subject.onset and subject.onset.isoformat(),
        "labels": dict(subject.labels),
    }
    return {name: value for name, value in told.items() if value}


def _list_other_alerts(head: str, alerts: Sequence[ReceivedAlert]) -> str:
    return head + "; ".join(map(_summarize_alert, alerts[:_MOST_TOLD])) if alerts else ""


def _summarize_alert(alert: ReceivedAlert) -> str:
    where = f" of {alert.service}" if alert.service and alert.service not in alert.text else ""
    return f"{alert.text}{where}" + (f" since {alert.began.isoformat()}" if alert.began else "")


# --- Alertmanager, Grafana, Prometheus -----------------------------------------------------------------------


def _parse_alertmanager(document: Document) -> list[ReceivedAlert]:
    common = _as_mapping(document.get("commonLabels"))
    notes = _as_mapping(document.get("commonAnnotations"))
    return [_alert_from_labels(alert, common, notes) for alert in _each_alert(document.get("alerts"))]


def _each_alert(listed: JSON) -> list[Document]:
    """The alerts of a list, or of the groups in it as /api/v2/alerts/groups lists them."""
    return [
        alert
        for entry in _as_objects(listed)
        for alert in (_as_objects(entry["alerts"]) if isinstance(entry.get("alerts"), list) else [entry])
    ]


def _alertmanager_v1(document: Document) -> list[ReceivedAlert]:
    return [_alert_from_labels(alert, {}, {}) for alert in _each_alert(document.get("data"))]


def _is_alertmanager_v1(document: Document) -> bool:
    data = document.get("data")
    return isinstance(data, list) and all("labels" in one or "alerts" in one for one in _as_objects(data))


def _parse_alerting_rules(document: Document) -> list[ReceivedAlert]:
    """Alerting rules with their alerts, as /api/v1/rules of Prometheus and of Grafana lists them."""
    groups = _as_objects(_as_mapping(document.get("data")).get("groups"))
    rules = [rule for group in groups for rule in _as_objects(group.get("rules"))]
    alerts = [_of_rule(alert, rule) for rule in rules for alert in _as_objects(rule.get("alerts"))]
    lasting = [alert for alert in alerts if not _is_inactive(alert)]
    return [_alert_from_labels(alert, {}, {}) for alert in _no_longer_pending(lasting)]


def _of_rule(alert: Document, rule: Document) -> Document:
    """The alert with what its rule says of all of them."""
    labels = {
        "alertname": rule.get("name"),
        **_as_mapping(rule.get("labels")),
        **_as_mapping(alert.get("labels")),
    }
    return {**alert, "labels": labels, "annotations": {**_as_mapping(rule.get("annotations")), **_as_mapping(alert.get("annotations"))}}  # fmt: skip


def _is_inactive(alert: Document) -> bool:
    return str(alert.get("state", "")).casefold() in ("inactive", "normal")


def _no_longer_pending(alerts: Sequence[Document]) -> Sequence[Document]:
    """Those that fire; where none does yet those that are about to."""
    return [alert for alert in alerts if str(alert.get("state", "")).casefold() != "pending"] or alerts


def _parse_prometheus_rules(document: Document) -> list[ReceivedAlert]:
    alerts = _as_objects(_as_mapping(document.get("data")).get("alerts"))
    return [_alert_from_labels(alert, {}, {}) for alert in _no_longer_pending(alerts)]


def _parse_alert_series(document: Document) -> list[ReceivedAlert]:
    """The series ALERTS, as a query of Prometheus answers: an instant one, or one over a range.

    ALERTS is 1 while an alert lasts, ALERTS_FOR_STATE is the moment at which it began.
    """
    series = _as_objects(_as_mapping(document.get("data")).get("result"))
    lasting = [
        one for one in series if _as_mapping(one.get("metric")).get("alertstate") != "pending"
    ] or series
    return [_alert_from_labels(_as_alert(one), {}, {}) for one in lasting]


def _as_alert(series: Document) -> Document:
    labels = _as_mapping(series.get("metric"))
    time, value = _first_sample(series)
    about = {k: v for k, v in labels.items() if k not in ("__name__", "alertstate")}
    if labels.get("__name__") == "ALERTS_FOR_STATE":
        return {"labels": about, "activeAt": _seconds_to_milliseconds(value)}
    return {"labels": about, "startsAt": _seconds_to_milliseconds(time)}


def _first_sample(series: Document) -> tuple[Any, Any]:
    """The sample of an instant query, or the first of a range: (time in seconds, value)."""
    several = series.get("values")
    pair = series.get("value") or (several[0] if isinstance(several, list) and several else None)
    return (pair[0], pair[1]) if isinstance(pair, list) and len(pair) == 2 else (None, None)


def _seconds_to_milliseconds(seconds: JSON) -> JSON:
    try:
        return float(seconds) * 1000
    except (TypeError, ValueError, OverflowError):
        return None


def _are_alerts(document: Document) -> bool:
    """An empty answer has no name; one of another series is not an alert."""
    data = _as_mapping(document.get("data"))
    series = data.get("result")
    names = {str(_as_mapping(one.get("metric")).get("__name__", "ALERTS")) for one in _as_objects(series)}
    return isinstance(series, list) and data.get("resultType") in ("vector", "matrix") and names <= {"ALERTS", "ALERTS_FOR_STATE"}  # fmt: skip


def _alert_from_labels(alert: Document, common: Document, notes: Document) -> ReceivedAlert:
    labels = {**common, **_as_mapping(alert.get("labels"))}
    annotations = {**notes, **_as_mapping(alert.get("annotations"))}
    words = next(
        (str(annotations[k]) for k in ("summary", "description", "message") if annotations.get(k)), ""
    )
    name = str(labels.get("alertname") or "alert")
    rest = {k: v for k, v in labels.items() if k not in ("alertname", "severity")}
    return ReceivedAlert(
        name=name,
        text=f"{name}: {words}" if words else name,
        service=service_in(labels),
        severity=_find_severity(labels),
        fired_at=parse_time(alert.get("startsAt")),
        onset=parse_time(alert.get("activeAt")),
        labels={"alertname": name, **rest},
        over=describe_time(alert.get("endsAt")) if is_resolved(alert) else None,
        muted=describe_muting(alert, name, labels),
        unevaluated=failed_evaluation(alert, name, labels, annotations),
        unread=unreadable_times(alert, "startsAt", "activeAt"),
    )


def _find_severity(labels: Document) -> str | None:
    return next(
        (word for key in ("severity", "priority", "level") if (word := _as_short_text(labels.get(key)))), None
    )


# --- others --------------------------------------------------------------------------------------------------


def _parse_pagerduty(document: Document) -> list[ReceivedAlert]:
    event = _as_mapping(document["event"])
    data = _as_mapping(event.get("data"))
    title = str(data.get("title") or data.get("summary") or "incident")
    resolved = str(event.get("event_type", "")).endswith("resolved")
    return [
        ReceivedAlert(
            name=title,
            text=title,
            service=_as_short_text(_as_mapping(data.get("service")).get("summary")),
            severity=_as_short_text(_as_mapping(data.get("priority")).get("summary"))
            or _as_short_text(data.get("urgency")),
            fired_at=parse_time(data.get("created_at")) or parse_time(event.get("occurred_at")),
            labels={k: data[k] for k in ("id", "html_url") if isinstance(data.get(k), str)},
            unread=unreadable_times(data, "created_at"),
            over=describe_time(event.get("occurred_at")) if resolved else None,
        )
    ]


def _pagerduty_event(document: Document) -> list[ReceivedAlert]:
    """An event as monitors send it to PagerDuty; its routing key is a secret and stays away."""
    payload = _as_mapping(document["payload"])
    details = _as_mapping(payload.get("custom_details"))
    summary = str(payload.get("summary") or "event")
    return [
        ReceivedAlert(
            name=summary,
            text=summary,
            service=_as_short_text(payload.get("component")) or service_in(details),
            severity=_as_short_text(payload.get("severity")),
            fired_at=parse_time(payload.get("timestamp")),
            labels={k: v for k, v in {"source": payload.get("source"), "class": payload.get("class"), **details}.items() if v},
            unread=unreadable_times(payload, "timestamp"),
            over="by this event" if document.get("event_action") == "resolve" else None,
        )
    ]  # fmt: skip


def _parse_opsgenie(document: Document) -> list[ReceivedAlert]:
    alert = _as_mapping(document["alert"])
    details = _as_mapping(alert.get("details"))
    message = str(alert.get("message") or "alert")
    return [
        ReceivedAlert(
            name=message,
            text=message,
            service=service_in(details) or _as_short_text(alert.get("entity")),
            severity=_as_short_text(alert.get("priority")),
            fired_at=parse_time(alert.get("createdAt")),
            labels={**details, "tags": alert.get("tags") or []},
            unread=unreadable_times(alert, "createdAt"),
            over="by this message" if document.get("action") == "Close" else None,
        )
    ]


def _parse_cloudwatch(document: Document) -> list[ReceivedAlert]:
    alarm = document if "AlarmName" in document else _as_mapping(_parse_json_text(document.get("Message")))
    trigger = _as_mapping(alarm.get("Trigger"))
    dimensions = {str(d.get("name")): d.get("value") for d in _as_objects(trigger.get("Dimensions"))}
    name = str(alarm.get("AlarmName") or "alarm")
    words = alarm.get("AlarmDescription") or alarm.get("NewStateReason") or ""
    return [
        ReceivedAlert(
            name=name,
            text=f"{name}: {words}" if words else name,
            service=_as_short_text(next(iter(dimensions.values()), None)) if len(dimensions) == 1 else None,
            metric=_as_short_text(trigger.get("MetricName")),
            fired_at=parse_time(alarm.get("StateChangeTime")),
            labels={
                **dimensions,
                "namespace": trigger.get("Namespace") or "",
                "reason": alarm.get("NewStateReason") or "",
            },
            unread=unreadable_times(alarm, "StateChangeTime"),
            over=describe_time(alarm.get("StateChangeTime")) if alarm.get("NewStateValue") == "OK" else None,
        )
    ]


_SYSTEMS: tuple[tuple[Callable[[Document], bool], Callable[[Document], list[ReceivedAlert]]], ...] = (
    (lambda d: isinstance(d.get("alerts"), list) and "text" not in d, _parse_alertmanager),
    (lambda d: isinstance(_as_mapping(d.get("data")).get("alerts"), list), _parse_prometheus_rules),
    (lambda d: isinstance(_as_mapping(d.get("data")).get("groups"), list), _parse_alerting_rules),
    (_is_alertmanager_v1, _alertmanager_v1),
    (_are_alerts, _parse_alert_series),
    (lambda d: "event_type" in _as_mapping(d.get("event")), _parse_pagerduty),
    (lambda d: "payload" in d and "event_action" in d, _pagerduty_event),
    (lambda d: "action" in d and "message" in _as_mapping(d.get("alert")), _parse_opsgenie),
    (
        lambda d: "AlarmName" in d or "AlarmName" in _as_mapping(_parse_json_text(d.get("Message"))),
        _parse_cloudwatch,
    ),
)


def _as_mapping(value: JSON) -> Document:
    return value if isinstance(value, Mapping) else {}


def _as_objects(value: JSON) -> list[Document]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _as_short_text(value: JSON) -> str | None:
    return value[:300] if isinstance(value, str) and value else None


def _parse_json_text(value: JSON) -> JSON:
    try:
        return json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
