"""Changes before the onset: which counts, how much, and only beside other trouble."""

from dataclasses import replace

import pytest
from platform_rows import ONSET, recording

from opsleuth.analysis import changes
from opsleuth.analysis.changes import drop_rolled_back_changes
from opsleuth.analysis.records import AlertFacts, Finding, ServiceChange


def change(minutes: float, service: str = "web", kind: str = "deploy", summary: str = "v2") -> ServiceChange:
    """A change `minutes` before the onset."""
    return ServiceChange(
        time=ONSET - 60.0 * minutes, service=service, kind=kind, summary=summary, version="1.2"
    )


def trouble(service: str, direction: str = "cause") -> Finding:
    return Finding("harm", "metrics", service, "errors", 5.0, "t", {}, direction=direction)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("deploy", "deploy"),
        ("config", "config"),
        ("flag", "config"),
        ("scale", "config"),
        ("migration", "deploy"),
    ],
)
def test_kinds_of_change(kind: str, found: str) -> None:
    assert [f.kind for f in changes.find_recent_changes(recording(changes=[change(5, kind=kind)]))] == [found]


def test_the_nearer_change_weighs_more() -> None:
    found = changes.find_recent_changes(
        recording(changes=[change(120, "mail"), change(5), change(30, "cart")])
    )
    assert [f.service for f in found] == ["web", "cart", "mail"]
    assert found[1].size == pytest.approx(found[0].size * 7 / 12)


def test_a_rollback_is_rather_a_remedy_than_a_cause() -> None:
    cart, web = changes.find_recent_changes(
        recording(changes=[change(5, kind="rollback"), change(30, "cart")])
    )
    assert (cart.service, web.service) == ("cart", "web")


def test_only_the_last_change_of_a_service_counts() -> None:
    found = changes.find_recent_changes(
        recording(changes=[change(5, summary="late"), change(90, summary="early")])
    )
    assert [f.figures["summary"] for f in found] == ["late"]


def test_a_change_after_the_onset_broke_nothing() -> None:
    assert changes.find_recent_changes(recording(changes=[change(-5)])) == []


def test_an_alert_that_names_no_onset_began_at_the_latest_when_it_was_sent() -> None:
    """Not at the end of the window, which lies minutes later."""
    sent = AlertFacts(text="", fired=ONSET)
    (found,) = changes.find_recent_changes(replace(recording(changes=[change(5)]), alert=sent))
    assert found.figures["minutes_before_onset"] == 5.0


def test_a_change_counts_only_where_its_service_is_in_trouble() -> None:
    web, cart = changes.find_recent_changes(recording(changes=[change(5), change(6, "cart")]))
    kept = changes.weigh_changes_by_support([web, cart, trouble("web")])
    assert [(f.service, f.signal) for f in kept] == [("web", "changes"), ("web", "metrics")]
    assert 0.0 < kept[0].size < web.size


@pytest.mark.parametrize("direction", ["healthy", "victim"])
def test_what_is_no_cause_supports_no_change(direction: str) -> None:
    (web,) = changes.find_recent_changes(recording(changes=[change(5)]))
    assert changes.weigh_changes_by_support([web, trouble("web", direction)]) == [trouble("web", direction)]


def test_no_changes_no_findings() -> None:
    assert changes.find_recent_changes(recording()) == []
    assert changes.weigh_changes_by_support([]) == []


def test_a_change_that_was_taken_back_is_no_longer_in_force() -> None:
    deploy = ServiceChange(100.0, "orders", "deploy", "new", version="2")
    other = ServiceChange(110.0, "cart", "config", "limits")
    back = ServiceChange(200.0, "orders", "rollback", "back to 1", version="1")
    first = ServiceChange(1.0, "orders", "deploy", "first", version="1")
    assert drop_rolled_back_changes([first, deploy, other, back]) == [first, other, back]
    assert drop_rolled_back_changes([deploy, other, back]) == [other, back]
    assert drop_rolled_back_changes([first, deploy, other]) == [first, deploy, other]
    unnamed = ServiceChange(200.0, "orders", "rollback", "back")
    assert drop_rolled_back_changes([first, deploy, unnamed]) == [first, unnamed]
    setting = ServiceChange(100.0, "orders", "deploy", "more cache", version="1")
    assert drop_rolled_back_changes([first, setting, back]) == [first, back]
