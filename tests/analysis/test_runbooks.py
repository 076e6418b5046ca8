"""Which runbook fits which alert, and files that are written in every way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.runbooks import RunbookQuery, find_matching_runbooks, parse_runbook

FULL = """---
title: Orders are slow
services: [orders-api, "orders-worker"]
labels:
  severity: critical
alerts:
  - OrdersApiLatencyHigh
---
# Heading

1. Look at the database.
"""
ALERT = RunbookQuery("OrdersApiLatencyHigh: latency above 1500 ms", "orders-api", {"severity": "critical"})


def fitting(text: str, subject: RunbookQuery = ALERT) -> list[str]:
    return [match.why for match in find_matching_runbooks([parse_runbook("book.md", text)], subject)]


def test_front_matter_is_read() -> None:
    book = parse_runbook("a/b.md", FULL)
    assert (book.title, book.services, book.alerts) == (
        "Orders are slow",
        ("orders-api", "orders-worker"),
        ("OrdersApiLatencyHigh",),
    )
    assert book.labels == {"severity": "critical"}
    assert book.text.startswith("# Heading")


@pytest.mark.parametrize(
    ("head", "fits"),
    [
        ("service: orders-api", True),
        ("services:\n- orders-api", True),
        ("services: [cart]", False),
        ("labels: {severity: critical}", True),
        ("labels: {severity: critical, region: eu}", False),
        ("alert: OtherAlert\nservice: orders-api", False),
        ("alerts: [OtherAlert, 'OrdersApiLatencyHigh:']", True),
    ],
)
def test_what_front_matter_names_must_hold(head: str, fits: bool) -> None:
    assert bool(fitting(f"---\n{head}\n---\n# Unrelated words here\n")) is fits


@pytest.mark.parametrize(
    ("title", "fits"),
    [
        ("orders-api latency", True),
        ("Orders API: latency high", True),
        ("How to restart the printer", False),
        ("The API", False),
        ("", False),
    ],
)
def test_without_front_matter_the_title_decides(title: str, fits: bool) -> None:
    assert bool(fitting(f"# {title}\n\ntext about orders-api latency\n")) is fits


def test_the_best_comes_first_and_a_cluster_in_front_of_the_name_does_not_matter() -> None:
    by_title = parse_runbook("title.md", "# orders api latency")
    by_service = parse_runbook("service.md", "---\nservices: [orders-api]\n---\n# other")
    full = parse_runbook("full.md", FULL)
    subject = RunbookQuery(
        ALERT.text, "eu:orders-api", {"severity": "critical", "alertname": "OrdersApiLatencyHigh"}
    )
    found = [match.runbook.name for match in find_matching_runbooks([by_title, by_service, full], subject)]
    assert found == ["full.md", "service.md", "title.md"]


def test_titles_in_other_scripts_fit_too() -> None:
    assert fitting("# 订单接口 变慢", RunbookQuery("告警：订单接口 变慢", None))


@given(st.text(max_size=300))
def test_any_text_is_a_runbook(text: str) -> None:
    for body in (text, f"---\n{text}\n---\n{text}"):
        runbook = parse_runbook("any.md", body)
        assert runbook.name == "any.md"
        assert [match.runbook for match in find_matching_runbooks([runbook], ALERT)] in ([], [runbook])
