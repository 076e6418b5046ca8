"""The status of an alert as Alertmanager, Prometheus and Grafana report it: over, silenced, or never evaluated."""

from collections.abc import Mapping
from typing import Any

from opsleuth.alerts.subject import is_heartbeat
from opsleuth.alerts.times import parse_time

Document = Mapping[str, Any]
_WITHOUT_RESULT = {"DatasourceNoData": "no data", "DatasourceError": "an error"}


def is_resolved(alert: Document) -> bool:
    """By its status, or because it ended before it was last updated."""
    if alert.get("status") in ("resolved", "inactive"):
        return True
    ended, updated = parse_time(alert.get("endsAt")), parse_time(alert.get("updatedAt"))
    return ended is not None and updated is not None and ended <= updated


def describe_muting(alert: Document, name: str, labels: Document) -> str | None:
    """What keeps the alert quiet, by the status that Alertmanager gives it, or because it fires always."""
    given = alert.get("status")
    status: Document = given if isinstance(given, Mapping) else {}
    for key, word in (("silencedBy", "silenced"), ("inhibitedBy", "inhibited"), ("mutedBy", "muted")):
        if by := status.get(key):
            return f"{word} by {', '.join(map(str, by)) if isinstance(by, list) else by}"
    if status.get("state") == "suppressed":
        return "suppressed by its Alertmanager"
    if is_heartbeat(name):
        return "an alert that always fires, to prove that alerting works"
    severity = labels.get("severity")
    if isinstance(severity, str) and severity.casefold() == "none":
        return "of severity none"
    return None


def failed_evaluation(alert: Document, name: str, labels: Document, annotations: Document) -> str | None:
    """Grafana's own words for a rule that found no data, or that its data source refused."""
    reason = str(annotations.get("grafana_state_reason") or alert.get("state") or "")
    found = _WITHOUT_RESULT.get(name) or (
        "no data" if "NoData" in reason else "an error" if "Error" in reason else None
    )
    if found is None:
        return None
    rule = labels.get("rulename") or name
    return f"rule {rule} got {found} from its data source: this alone says nothing about the service"
