"""A name is marked as unseen only while neither the alert nor an answer with data holds it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from opsleuth.nodes.plan.unseen_notices import drop_refuted_notices, list_given_texts
from opsleuth.state.calls import CallRequest, ResultStatus
from opsleuth.state.investigation import Alert, Investigation, PlannerNotice, Window
from opsleuth.verification.conclusion_basis import EvidenceView
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


def kept_notices(status: ResultStatus) -> list[str]:
    """The notices that remain after a call for the service `ghost` ended so."""
    call = SimpleNamespace(tool="metrics_query", arguments={"service": "ghost"}, purpose="why")
    state: Any = SimpleNamespace(alert=None, question="why", window=WINDOW, pending=(call,), plan=())
    view = EvidenceView("E1", "metrics_query", "metrics", status, {"service": "ghost", "samples": 3})
    deps: Any = SimpleNamespace(observed=SimpleNamespace(views=lambda _: [view]), services=lambda: ())
    unseen = "'ghost' (argument service of metrics_query) appears in no alert and no observation so far"
    notices = [PlannerNotice(code="unseen", text=unseen), PlannerNotice(code="note", text="hurry")]
    return [notice.code for notice in drop_refuted_notices(notices, state, deps, 1)]


def test_a_notice_goes_when_the_call_brought_data() -> None:
    assert kept_notices(ResultStatus.OK) == ["note"]


@pytest.mark.parametrize(
    "status", [ResultStatus.NOT_RECORDED, ResultStatus.NONE_MATCHED, ResultStatus.TIMEOUT]
)
def test_a_notice_stays_when_an_answer_only_repeats_the_name(status: ResultStatus) -> None:
    assert kept_notices(status) == ["unseen", "note"]
