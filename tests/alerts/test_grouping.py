"""Which alerts are one incident: by what they name, who calls whom, and when; nothing is guessed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.alerts.grouping import WITHIN, ReceivedAlert, alert_fingerprint, group_into_incidents

NOW = datetime(2026, 3, 3, 14, 30, tzinfo=UTC)
CALLS = {"web": ("orders",), "orders": ("stock", "db"), "stock": ("db",), "mail": ("queue",)}
SERVICES = ["web", "orders", "stock", "db", "mail", "queue"]

SOME_ALERTS = st.lists(
    st.builds(
        ReceivedAlert,
        name=st.sampled_from(["Slow", "Errors"]),
        text=st.just("x"),
        service=st.none() | st.sampled_from(SERVICES),
        onset=st.none() | st.integers(0, 240).map(lambda minutes: NOW - timedelta(minutes=minutes)),
        labels=st.dictionaries(st.sampled_from(["team", "pod"]), st.sampled_from(["a", "b"])),
    ),
    max_size=12,
)
EDGES = st.dictionaries(st.sampled_from(SERVICES), st.frozensets(st.sampled_from(SERVICES)))


def alert(service: str | None, minutes: int = 0, name: str = "Slow", **labels: str) -> ReceivedAlert:
    return ReceivedAlert(name, name, service, onset=NOW - timedelta(minutes=minutes), labels=labels)


def together(*alerts: ReceivedAlert) -> list[set[str | None]]:
    return [{a.service for a in incident.alerts} for incident in group_into_incidents(alerts, CALLS, NOW)]


def test_trouble_spreads_along_calls_also_through_services_that_are_silent() -> None:
    assert together(alert("web"), alert("db", 4)) == [{"web", "db"}]
    assert together(alert("web", 1), alert("mail")) == [{"web"}, {"mail"}]


def test_two_that_call_the_same_are_one_incident_only_if_that_one_is_in_trouble() -> None:
    callers = {"a": ("shared",), "b": ("shared",)}
    one, other = alert("a"), alert("b")
    assert len(group_into_incidents([one, other], callers, NOW)) == 2
    assert len(group_into_incidents([one, other, alert("shared", 2)], callers, NOW)) == 1


def test_the_first_incident_is_the_one_that_began_first() -> None:
    assert together(alert("mail", 3), alert("web", 9), alert("orders", 8)) == [{"web", "orders"}, {"mail"}]


@pytest.mark.parametrize(("apart", "count"), [(WITHIN, 1), (WITHIN + timedelta(seconds=1), 2)])
def test_time_joins_and_parts(apart: timedelta, count: int) -> None:
    earlier = replace(alert("web"), onset=NOW - apart)
    assert len(group_into_incidents([alert("web", name="Errors"), earlier], {}, NOW)) == count


def test_a_chain_of_alerts_is_one_incident() -> None:
    assert len(group_into_incidents([alert("web", minutes) for minutes in (0, 25, 50, 75)], {}, NOW)) == 1


def test_without_a_service_only_its_like_belongs_to_it() -> None:
    assert len(group_into_incidents([alert(None, pod="a"), alert(None, 5, pod="b")], CALLS, NOW)) == 1
    assert len(group_into_incidents([alert(None), alert(None, name="Errors"), alert("web")], CALLS, NOW)) == 3


def test_what_changes_from_instance_to_instance_is_no_other_trouble() -> None:
    one = alert("web", pod="web-1", instance="10.0.0.1:80", team="shop")
    assert alert_fingerprint(one) == alert_fingerprint(
        replace(alert("web", 9, pod="web-2", team="shop"), severity="page")
    )
    assert alert_fingerprint(one) != alert_fingerprint(alert("web", team="search"))
    assert alert_fingerprint(one) != alert_fingerprint(replace(one, name="Errors"))
    assert alert_fingerprint(one) != alert_fingerprint(replace(one, service="web2"))


def test_a_fingerprint_bears_labels_of_any_kind() -> None:
    odd = ReceivedAlert("x", "x", labels={"a": float("nan"), "b": "\ud800", "c": [{"d": None}]})
    assert len(alert_fingerprint(odd)) == 16


@settings(deadline=None)
@given(SOME_ALERTS, EDGES, st.randoms())
def test_every_alert_is_in_one_incident_in_whatever_order_they_came(
    alerts: list[ReceivedAlert], calls: dict[str, frozenset[str]], random: Random
) -> None:
    found = group_into_incidents(alerts, calls, NOW)
    shuffled = list(alerts)
    random.shuffle(shuffled)
    assert group_into_incidents(shuffled, calls, NOW) == found
    assert sorted(map(repr, alerts)) == sorted(repr(a) for i in found for a in i.alerts)


@settings(deadline=None)
@given(SOME_ALERTS, EDGES)
def test_incidents_do_not_change_when_they_are_sorted_out_again(
    alerts: list[ReceivedAlert], calls: dict[str, frozenset[str]]
) -> None:
    for incident in group_into_incidents(alerts, calls, NOW):
        assert group_into_incidents(incident.alerts, calls, NOW) == (incident,)


@settings(deadline=None)
@given(SOME_ALERTS, EDGES, EDGES)
def test_more_calls_never_part_what_belongs_together(
    alerts: list[ReceivedAlert], some: dict[str, frozenset[str]], more: dict[str, frozenset[str]]
) -> None:
    all_calls = {s: some.get(s, frozenset()) | more.get(s, frozenset()) for s in SERVICES}
    wide = [set(map(id, i.alerts)) for i in group_into_incidents(alerts, all_calls, NOW)]
    for incident in group_into_incidents(alerts, some, NOW):
        assert any(set(map(id, incident.alerts)) <= group for group in wide)


@settings(deadline=None)
@given(SOME_ALERTS, EDGES)
def test_between_incidents_lies_time_or_no_call(
    alerts: list[ReceivedAlert], calls: dict[str, frozenset[str]]
) -> None:
    found = group_into_incidents(alerts, calls, NOW)
    for place, incident in enumerate(found):
        for other in found[place + 1 :]:
            assert all(_far(a, b) or _strange(a, b, calls) for a in incident.alerts for b in other.alerts)


def _far(one: ReceivedAlert, other: ReceivedAlert) -> bool:
    return abs((one.began or NOW) - (other.began or NOW)) > WITHIN


def _strange(one: ReceivedAlert, other: ReceivedAlert, calls: dict[str, frozenset[str]]) -> bool:
    if one.service is None or other.service is None:
        return alert_fingerprint(one) != alert_fingerprint(other)
    direct = other.service in calls.get(one.service, ()) or one.service in calls.get(other.service, ())
    return one.service != other.service and not direct
