"""Alerts as other systems document them become one alert of ours; nothing is guessed."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsleuth.alerts.documents import alert_fields_from_document, declared_calls, parse_alert_document
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest, first_state, open_sources
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError

NOW = datetime.fromisoformat("2026-03-03T14:30:00+00:00")
CALLS = {"gateway": ("orders-api",)}
FIRED = "2026-03-03T14:12:00+00:00"


def one(name: str, starts: str, **labels: str) -> dict[str, Any]:
    return {
        "status": "firing",
        "labels": {"alertname": name, "severity": "critical", **labels},
        "annotations": {"summary": f"{name} is bad"},
        "startsAt": starts,
        "endsAt": "0001-01-01T00:00:00Z",
    }


ALERTMANAGER = {
    "version": "4",
    "status": "firing",
    "receiver": "oncall",
    "groupLabels": {"cluster": "eu"},
    "commonLabels": {"cluster": "eu"},
    "commonAnnotations": {},
    "externalURL": "http://alertmanager",
    "alerts": [
        one("GatewayErrors", "2026-03-03T14:14:00Z", service="gateway"),
        one("OrdersApiSlow", "2026-03-03T14:12:00Z", service="orders-api"),
    ],
}


def test_of_several_alerts_the_first_is_the_subject_and_the_others_are_told() -> None:
    told = alert_fields_from_document(ALERTMANAGER, CALLS, NOW)
    assert (told["service"], told["severity"], told["fired_at"]) == ("orders-api", "critical", FIRED)
    assert told["text"] == (
        "OrdersApiSlow: OrdersApiSlow is bad; and 1 more: GatewayErrors: GatewayErrors is bad of gateway"
        " since 2026-03-03T14:14:00+00:00"
    )
    assert told["labels"] == {"alertname": "OrdersApiSlow", "cluster": "eu", "service": "orders-api"}


def test_what_no_call_connects_is_told_apart() -> None:
    told = alert_fields_from_document(ALERTMANAGER, {}, NOW)
    assert told["service"] == "orders-api"
    assert told["text"] == (
        "OrdersApiSlow: OrdersApiSlow is bad; not known to belong to it: GatewayErrors: GatewayErrors is bad"
        " of gateway since 2026-03-03T14:14:00+00:00"
    )


def test_what_is_known_of_calls_is_what_the_configuration_declares() -> None:
    sources: dict[str, dict[str, Any]] = {
        "m": {"kind": "prometheus", "url": "http://127.0.0.1:9"},
        "configuration": {"kind": "declared", "calls": {"gateway": ["orders-api"]}},
    }
    assert declared_calls(sources) == CALLS
    request = StartRequest(run="inv-1", alert=ALERTMANAGER, settings=RunSettings(sources=sources))
    state = first_state(request, open_sources(request.settings), SystemClock())
    assert "and 1 more" in state.question


def test_one_that_is_over_is_not_the_subject() -> None:
    over = one("First", "2026-03-03T14:00:00Z", service="cart") | {"status": "resolved", "endsAt": FIRED}
    told = alert_fields_from_document({**ALERTMANAGER, "alerts": [over, *ALERTMANAGER["alerts"]]}, CALLS, NOW)
    assert told["service"] == "orders-api"
    alone = alert_fields_from_document({**ALERTMANAGER, "alerts": [over]}, {}, NOW)
    assert alone["text"] == f"First: First is bad (resolved {FIRED})"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            {"status": "success", "data": {"alerts": [{"labels": {"alertname": "Slow", "app": "cart", "job": "node"},
             "annotations": {}, "state": "firing", "activeAt": "2026-03-03T14:12:00Z", "value": "7"}]}},
            {"text": "Slow", "service": "cart", "onset": FIRED},
        ),
        (
            {"event": {"event_type": "incident.triggered", "occurred_at": "2026-03-03T14:13:00Z", "data": {
             "id": "P1", "title": "Cart is slow", "service": {"summary": "cart"}, "urgency": "high",
             "created_at": "2026-03-03T14:12:00Z"}}},
            {"text": "Cart is slow", "service": "cart", "severity": "high", "fired_at": FIRED},
        ),
        (
            {"routing_key": "geheim", "event_action": "trigger", "payload": {"summary": "Cart is slow", "source": "mon-1",
             "severity": "error", "timestamp": "2026-03-03T15:12:00+01:00", "component": "cart"}},
            {"text": "Cart is slow", "service": "cart", "severity": "error", "fired_at": "2026-03-03T15:12:00+01:00"},
        ),
        (
            {"action": "Create", "alert": {"message": "Cart is slow", "entity": "cart", "createdAt": 1772547120000,
             "priority": "P1", "tags": ["x"], "details": {}}},
            {"text": "Cart is slow", "service": "cart", "severity": "P1", "fired_at": FIRED},
        ),
        (
            {"Type": "Notification", "Message": json.dumps({"AlarmName": "cart-db-cpu", "AlarmDescription": "CPU is high",
             "NewStateValue": "ALARM", "NewStateReason": "crossed", "StateChangeTime": "2026-03-03T14:12:00.000+0000",
             "Trigger": {"MetricName": "CPUUtilization", "Namespace": "AWS/RDS",
                         "Dimensions": [{"name": "DBInstanceIdentifier", "value": "cart-db"}]}})},
            {"text": "cart-db-cpu: CPU is high", "service": "cart-db", "metric": "CPUUtilization", "fired_at": FIRED},
        ),
    ],
)  # fmt: skip
def test_systems(document: dict[str, Any], expected: dict[str, Any]) -> None:
    told = alert_fields_from_document(document, {}, NOW)
    assert {name: told[name] for name in expected} == expected
    assert "geheim" not in json.dumps(told)


def test_a_job_or_a_host_is_no_service() -> None:
    told = alert_fields_from_document(
        {"alerts": [one("Down", FIRED, job="blackbox", instance="10.0.0.1:9100")]}, {}, NOW
    )
    assert "service" not in told


def test_our_own_form_stays_as_it_is() -> None:
    ours = {"text": "slow", "service": "cart", "fired_at": FIRED, "team": "shop"}
    assert alert_fields_from_document(ours, {}, NOW) == ours


def test_an_alert_becomes_question_service_and_window() -> None:
    chosen = RunSettings(sources={"m": {"kind": "prometheus", "url": "http://127.0.0.1:9"}})
    request = StartRequest(run="inv-1", alert=ALERTMANAGER, settings=chosen)
    state = first_state(request, open_sources(chosen), SystemClock())
    assert state.question.startswith("OrdersApiSlow")
    assert state.alert is not None
    assert state.alert.service == "orders-api"
    assert state.window.start.isoformat() == "2026-03-03T13:42:00+00:00"
    assert state.window.end.isoformat() == "2026-03-03T14:17:00+00:00"


def test_what_nobody_knows_says_what_is_needed() -> None:
    chosen = RunSettings(sources={"m": {"kind": "prometheus", "url": "http://127.0.0.1:9"}})
    with pytest.raises(UsageError, match="needs a `text`"):
        first_state(
            StartRequest(run="inv-1", alert={"strange": 1}, settings=chosen),
            open_sources(chosen),
            SystemClock(),
        )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["alerts", "labels", "data", "event", "event_type", "payload", "event_action", "alert", "action",
                         "message", "Message", "AlarmName", "Trigger", "Dimensions", "service", "startsAt", "status"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(
            ["alerts", "data", "event", "payload", "event_action", "alert", "action", "Message", "AlarmName"]
        ),
        _JSON,
    )
)
def test_any_document_is_borne(document: dict[str, Any]) -> None:
    assert isinstance(alert_fields_from_document(document, {}, NOW), dict)
    assert all(alert.name for alert in parse_alert_document(document))
