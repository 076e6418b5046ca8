"""A name or number that nobody has seen is recognised in the turn in which it turns up."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import CallRequest, ResultStatus
from opsleuth.state.investigation import Window
from opsleuth.verification.conclusion_basis import EvidenceView
from opsleuth.verification.unseen_values import RunObservations, find_unseen_in_call, find_unseen_in_text

WINDOW = Window(
    start=datetime(2026, 11, 29, 13, 40, tzinfo=UTC), end=datetime(2026, 11, 29, 14, 20, tzinfo=UTC)
)
RECORD = {"rows": [{"service": "cart", "pod": "cart-7f9dd8b6c4-x7gr9", "status": 503, "p99_ms": 1250.5}]}
SEEN = RunObservations(
    views=(EvidenceView("E1", "logs_search", "logs", ResultStatus.OK, RECORD),),
    texts=("orders API is slow, 4.1 % of requests fail",),
    names=("orders-api", "ledger", "支付服务"),
    window=WINDOW,
)


def unseen(**arguments: Any) -> list[str]:
    return [u.value for u in find_unseen_in_call(CallRequest(tool="logs_search", arguments=arguments), SEEN)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"service": "cart", "limit": 100},
        {"service": "支付服务"},
        {"service": "orders-api", "query": "status=503"},
        {"pod": "cart-7f9dd8b6c4-*"},
        {"query": "timeout|refused|Connection reset", "min_count": 25},
        {"services": ["cart", "ledger"]},
        {"selector": {"pod": "cart-7f9dd8b6c4-x7gr9"}},
        {"expression": "1.25 s"},
        {"start": "2026-11-29T13:40:00Z"},
        {"share": 4.1},
    ],
)
def test_what_was_seen_or_is_a_choice_passes(arguments: dict[str, Any]) -> None:
    assert unseen(**arguments) == []


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ({"service": "inventory"}, ["inventory"]),
        ({"service": "库存服务"}, ["库存服务"]),
        ({"query": "pod cart-7f9dd8b6c4-zzzzz"}, ["cart-7f9dd8b6c4-zzzzz"]),
        ({"query": "status=504"}, ["504"]),
        ({"services": ["cart", "inventory", "inventory"]}, ["inventory"]),
        ({"expression": "1350 ms"}, ["1350 ms"]),
        ({"value": 77.7}, ["77.7"]),
        ({"selector": {"pod": "cart-0"}}, ["cart-0"]),
    ],
)
def test_what_nobody_has_seen_is_named(arguments: dict[str, Any], values: list[str]) -> None:
    assert unseen(**arguments) == values


def test_a_plan_step_is_read_too() -> None:
    step = "Compare the latency of stock-service with its 5,400 ms peak"
    found = find_unseen_in_text(step, "plan step 2", SEEN)
    assert [u.value for u in found] == ["stock-service", "5,400 ms"]
    assert "plan step 2" in str(found[0])


def test_large_observations_stay_quick() -> None:
    big = EvidenceView("E2", "logs_search", "logs", ResultStatus.OK, {"lines": ["x y z " * 50] * 400})
    seen = RunObservations(views=(big,), texts=(), names=("cart",), window=WINDOW)
    assert [u.value for u in find_unseen_in_text("look at stock-service", "plan", seen)] == ["stock-service"]
