"""Alerts of unknown systems: title, text, severity, times and labels, as far as the document visibly has them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from opsleuth.analysis.log_times import TimeReader
from opsleuth.state.json_types import JSON

Document = Mapping[str, Any]

_OWN = frozenset(["text", "service", "metric", "severity", "fired_at", "onset", "labels"])
_TITLES = (
    "title", "name", "alertname", "alert_name", "alertName", "rule_name", "ruleName", "monitor_name", "monitorName", "check_name", "check",
    "subject", "headline", "problem_title", "ProblemTitle", "event_name", "incident_name", "condition_name", "trigger_name",
    "event_title",
)  # fmt: skip
_TEXTS = (
    "text", "description", "summary", "message", "details", "body", "reason", "output", "event_message", "comment", "problem_details",
    "ProblemDetailsText", "msg", "condition", "event_msg",
)  # fmt: skip
_SEVERITIES = (
    "severity",
    "priority",
    "urgency",
    "level",
    "criticality",
    "alert_level",
    "ProblemSeverity",
    "importance",
)
_SERVICES = (
    "service", "service_name", "serviceName", "app", "app_kubernetes_io_name", "application", "deployment", "statefulset", "component",
)  # fmt: skip
_METRICS = (
    "metric",
    "metric_name",
    "metricName",
    "MetricName",
    "alert_metric",
    "alertMetric",
    "metric_query",
)
_ONSETS = (
    "startedAt", "started_at", "startsAt", "starts_at", "start_time", "startTime", "start", "since", "onset", "first_seen", "firstSeen",
    "first_occurrence", "firstOccurrence", "triggered_at", "triggeredAt", "activeAt", "began", "opened_at", "openedAt",
)  # fmt: skip
_SENT = (
    "fired_at", "firedAt", "lastReceived", "last_received", "received_at", "sent_at", "timestamp", "time", "date", "created_at", "createdAt", "created",
    "updated_at", "updatedAt", "last_updated", "event_time", "eventTime", "occurred_at",
)  # fmt: skip
_LABELS = (
    "labels",
    "tags",
    "dimensions",
    "attributes",
    "custom_details",
    "customDetails",
    "metadata",
    "context",
)
_WITHIN = (
    "alert",
    "incident",
    "event",
    "data",
    "payload",
    "problem",
    "object",
    "attributes",
    "fields",
    "detail",
    "monitor",
)
_HEADINGS = frozenset(_TITLES) - {"name", "check"} | {"summary", "check"}
"""What a line of a log seldom has beside its message."""
_ALERT_WORDS = frozenset((
    "severity", "priority", "urgency", "criticality", "alert_level", "alert_type", "alert_transition", "alert_status", "alert_metric", "alert_id",
    "ProblemSeverity", "ProblemState", "triggered_at", "triggeredAt", "silence_url", "silenceURL", "runbook", "runbook_url", "monitor_id",
))  # fmt: skip
_STATES = (
    "status",
    "state",
    "current_state",
    "currentState",
    "alert_state",
    "new_state",
    "hoststate",
    "servicestate",
)
_TROUBLED = frozenset(
    (
        "firing",
        "alerting",
        "triggered",
        "alarm",
        "critical",
        "warning",
        "problem",
        "open",
        "down",
        "unknown",
        "resolved",
        "recovered",
        "ok",
    )
)
_FOREIGN = frozenset((*_TITLES, *_TEXTS, *_ONSETS, *_SENT, *_METRICS, *_SEVERITIES, *_SERVICES)) - _OWN
_MOST_LABELS = 60
_LONGEST = 4_000
_LONGEST_LABEL = 300


def read_unknown_alert(document: Document) -> dict[str, Any]:
    """The document as fields of our own alert; one in our own form, or with neither title nor text, stays as it is."""
    if isinstance(document.get("text"), str) and not document.keys() & _FOREIGN:
        return dict(document)
    parts = [document, *_find_nested_objects(document)]
    labels = _collect_labels(parts)
    title, text = _first_text(parts, _TITLES), _first_text(parts, _TEXTS)
    words = ": ".join(dict.fromkeys(word for word in (title, text) if word))
    if not words:
        return dict(document)
    found = {
        "text": words[:_LONGEST],
        "service": _first_word(labels, _SERVICES) or _first_of(parts, _SERVICES),
        "metric": _first_of(parts, _METRICS),
        "severity": _first_of(parts, _SEVERITIES) or _first_word(labels, _SEVERITIES),
        "fired_at": _first_time(parts, _SENT),
        "onset": _first_time(parts, _ONSETS),
        "labels": labels,
    }
    return {name: value for name, value in found.items() if value}


def looks_like_alert(document: Document) -> bool:
    """Whether a document that stands alone announces trouble: a heading, and a severity, a state or times of an alert."""
    parts = [document, *_find_nested_objects(document)]
    headed = any(part.keys() & _HEADINGS for part in parts)
    graded = any(part.keys() & _ALERT_WORDS for part in parts)
    states = (part.get(name) for part in parts for name in _STATES)
    troubled = any(isinstance(state, str) and state.casefold() in _TROUBLED for state in states)
    return (headed and (graded or troubled)) or (
        troubled
        and _first_text(parts, _TEXTS) is not None
        and bool(document.keys() & {"host", "service", "check", "name"})
    )


def _find_nested_objects(document: Document) -> Iterator[Document]:
    """Objects in which systems wrap what they tell, outer ones first."""
    for name in _WITHIN:
        inner = document.get(name)
        if isinstance(inner, Mapping):
            yield inner
            yield from (inner[deeper] for deeper in _WITHIN if isinstance(inner.get(deeper), Mapping))


def _collect_labels(parts: list[Document]) -> dict[str, str]:
    """Labels and tags, then whatever other single words stand beside them."""
    found: dict[str, str] = {}
    for part in parts:
        for name in _LABELS:
            found |= {k: v for k, v in _read_pairs(part.get(name)) if k not in found}
    used = {*_TITLES, *_TEXTS, *_ONSETS, *_SENT, *_METRICS, *_SEVERITIES, *_SERVICES}
    for key, value in parts[0].items():
        if key not in used and isinstance(value, str | int | float) and not isinstance(value, bool):
            found.setdefault(key, str(value)[:_LONGEST_LABEL])
    return dict(list(found.items())[:_MOST_LABELS])


def _read_pairs(value: JSON) -> Iterator[tuple[str, str]]:
    """An object, a list of `key:value` or a text of them with commas, or a list of objects with a key and a value."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, Mapping):
        yield from (
            (str(k), str(v)[:_LONGEST_LABEL]) for k, v in value.items() if isinstance(v, str | int | float)
        )
        return
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, str) and ":" in entry:
            key, _, word = entry.partition(":")
            yield key.strip(), word.strip()[:_LONGEST_LABEL]
        elif isinstance(entry, Mapping):
            name, value_of = entry.get("key") or entry.get("name") or entry.get("tag"), entry.get("value")
            if name and isinstance(value_of, str | int | float):
                yield str(name), str(value_of)[:_LONGEST_LABEL]


def _first_of(parts: list[Document], names: tuple[str, ...]) -> str | None:
    return next((word for part in parts if (word := _first_word(part, names))), None)


def _first_word(part: Document, names: tuple[str, ...]) -> str | None:
    """The first value that is a word; an object with a name or a summary counts by that."""
    for name in names:
        value = part.get(name)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("summary")
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)[:_LONGEST_LABEL]
    return None


def _first_text(parts: list[Document], names: tuple[str, ...]) -> str | None:
    for part in parts:
        for name in names:
            if isinstance(value := part.get(name), str) and value.strip():
                return value.strip()
    return None


def _first_time(parts: list[Document], names: tuple[str, ...]) -> str | None:
    """The first time written with a zone or since the epoch; others are ambiguous."""
    for part in parts:
        for name in names:
            reader = TimeReader(UTC)
            seconds = reader.read_value(part.get(name))
            if seconds is not None and not reader.tally.without_zone:
                return datetime.fromtimestamp(seconds, UTC).isoformat()
    return None
