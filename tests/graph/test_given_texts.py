"""A name that the alert gives is not marked as unseen, in whichever field of it the name stands."""

from datetime import UTC, datetime

import pytest

from opsleuth.nodes.plan.unseen_notices import list_given_texts
from opsleuth.state.calls import CallRequest
from opsleuth.state.investigation import Alert, Investigation, Window
from opsleuth.verification.unseen_values import RunObservations, find_unseen_in_call

WINDOW = Window(start=datetime(2024, 5, 1, 14, tzinfo=UTC), end=datetime(2024, 5, 1, 15, tzinfo=UTC))
ALERT = Alert(text="slow", service="till-api", metric="user_latency_p90", labels={"zone": "shop-a1"})


@pytest.mark.parametrize(
    ("argument", "name", "unseen"),
    [
        ("metric", "user_latency_p90", []),
        ("service", "till-api", []),
        ("name", "shop-a1", []),
        ("metric", "user_latency_p99", ["user_latency_p99"]),
    ],
)
def test_a_name_of_the_alert_is_seen(argument: str, name: str, unseen: list[str]) -> None:
    state = Investigation(question="why", alert=ALERT, window=WINDOW)
    seen = RunObservations(views=(), texts=list_given_texts(state), names=(), window=WINDOW)
    call = CallRequest(tool="metrics_query", arguments={argument: name})
    assert [item.value for item in find_unseen_in_call(call, seen)] == unseen
