"""A figure binds a sentence only in the role that the words around it give it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claim_binding import Binding, bind_prose
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView

WINDOW = (1_781_000_000.0, 1_781_003_600.0)
FAILURES = {
    "findings": [
        {
            "detector": "harm.failures", "direction": "cause", "service": "till", "metric": "error_rate", "kind": "errors",
            "onset": "2026-06-09T10:20:00Z",
            "figures": {"incident": 0.223, "usual": 0.0015, "requests": 12102, "own": 2683, "total": 2701, "unit": "share"},
            "text": "22.3 % of the 12,102 requests to till failed, usually 0.15 %; 2,683 of 2,701 extra failures are its own.",
        }
    ],
    "matched": 1, "scanned_series": 90,
}  # fmt: skip
PATTERNS = {
    "failing": [
        {"service": "till", "pattern": "card reader is offline", "now": 24, "usual": 0, "just_before": 9},
        {
            "service": "till",
            "pattern": "request rejected: overloaded",
            "now": 8,
            "usual": 0,
            "just_before": 3,
        },
    ],
    "patterns": 2,
}
SERIES = {
    "service": "till", "metric": "cpu_usage", "unit": "%", "median": 12.5,
    "max": {"time": "2026-06-09T10:23:00Z", "value": 97.1}, "last": {"time": "2026-06-09T10:50:00Z", "value": 13.2},
    "points": [{"time": "2026-06-09T10:21:00Z", "value": 41.0}, {"time": "2026-06-09T10:22:00Z", "value": 66.0}],
}  # fmt: skip


def bind(text: str, tool: str, record: dict[str, Any]) -> Binding:
    view = EvidenceView("E1", tool, tool, ResultStatus.OK, record)
    return bind_prose(text, view.typed_facts, ("till",), WINDOW)


@pytest.mark.parametrize(
    ("text", "tool", "record"),
    [
        ("22.3 % of 12,102 requests to till failed, usually 0.15 %", "metrics_anomalies", FAILURES),
        ("2,683 of 2,701 extra failures are till's own", "metrics_anomalies", FAILURES),
        ('till wrote "card reader is offline" 24 times, usually never', "logs_patterns", PATTERNS),
        (
            'till wrote "request rejected: overloaded" eight times, 3 times just before',
            "logs_patterns",
            PATTERNS,
        ),
        ("cpu_usage of till peaked at 97.1 %", "metrics_query", SERIES),
        ("cpu_usage of till was 66 % at 10:22Z", "metrics_query", SERIES),
        ("The median of till's cpu_usage is 12.5 %", "metrics_query", SERIES),
    ],
)
def test_a_figure_in_its_own_role_is_bound(text: str, tool: str, record: dict[str, Any]) -> None:
    bound = bind(text, tool, record)
    assert bound.facts
    assert (bound.loose, bound.wrong) == ((), "")


@pytest.mark.parametrize(
    ("text", "tool", "record"),
    [
        ("0.15 % of the requests to till failed", "metrics_anomalies", FAILURES),
        ("till's error_rate is 2,701 %", "metrics_anomalies", FAILURES),
        ("90 additional failures of till are its own", "metrics_anomalies", FAILURES),
        ('till wrote "card reader is offline" 8 times', "logs_patterns", PATTERNS),
        ("till logs 24 lines", "logs_patterns", PATTERNS),
        ("cpu_usage of till peaked at 66 %", "metrics_query", SERIES),
        ("cpu_usage of till was 41 % at 10:22Z", "metrics_query", SERIES),
        ("The median of till's cpu_usage is 13.2 %", "metrics_query", SERIES),
    ],
)
def test_a_figure_of_another_role_is_not_bound(text: str, tool: str, record: dict[str, Any]) -> None:
    bound = bind(text, tool, record)
    assert bound.loose or bound.wrong or not bound.facts


OBJECTS = {
    "findings": [
        {"detector": "objects.state", "direction": "victim", "service": "till", "kind": "other",
         "text": "till is in order: 2 objects read.", "figures": {"objects": 2, "ready": 2, "desired": 2}}
    ],
    "others": [
        {"kind": "Pod", "name": "till-6c5f8d7b9-x2k4q", "namespace": "shop", "ready": 1, "desired": 1,
         "restarts": 0, "state": "Running", "phase": "Active", "captured_at": "2026-06-09T10:50:00Z"}
    ],
    "matched": 39, "scanned": 39,
}  # fmt: skip


@pytest.mark.parametrize("named", ["state", "phase", "namespace"])
@pytest.mark.parametrize(
    "form",
    ["For till the {} is 1.", "We see {} of 1 on till.", "till shows 1 for {}.", "till: {} = 1"],
)
def test_a_number_is_not_of_a_row_that_says_the_same_in_words(named: str, form: str) -> None:
    assert not bind(form.format(named), "objects_get", OBJECTS).facts


@pytest.mark.parametrize(
    "form", ["For till the state is 1.", "We see state of 1 on till.", "till shows 1 for state."]
)
def test_a_number_called_by_a_measure_is_of_that_measure(form: str) -> None:
    plain = {"kind": "Deployment", "name": "till", "namespace": "shop", "ready": 1, "desired": 1}
    record = {**OBJECTS, "others": [plain]}
    assert not bind(form, "objects_get", record).facts
    assert bind(form.replace("1", "2"), "objects_get", record).facts[0].measure == "state"


@pytest.mark.parametrize(
    "text",
    [
        "1 of 1 replicas of till-6c5f8d7b9-x2k4q is ready, its state is Running",
        "For till-6c5f8d7b9-x2k4q the ready is 1",
        "till-6c5f8d7b9-x2k4q is in state Running with 0 restarts",
    ],
)
def test_a_number_beside_the_words_of_its_row_is_bound(text: str) -> None:
    bound = bind(text, "objects_get", OBJECTS)
    assert bound.facts
    assert (bound.loose, bound.wrong) == ((), "")


@pytest.mark.parametrize("name", ["http_401_unauthorized_ratio", "latency_p99_5m", "rate_5xx_errors"])
@pytest.mark.parametrize("form", ["till shows 0.611 for {}.", "The {} of till is 0.611."])
def test_digits_in_the_spoken_name_of_a_measure_are_no_figure(name: str, form: str) -> None:
    found = {"detector": "resources.other", "direction": "cause", "service": "till", "metric": name, "kind": "other", "text": f"{name} of till rose from 0.02 to 0.611", "figures": {"incident": 0.611, "usual": 0.02}}  # fmt: skip
    view = EvidenceView("E1", "metrics_anomalies", "metrics_anomalies", ResultStatus.OK, {"findings": [found]})  # fmt: skip
    window = Window(start=datetime(2026, 6, 9, 10, tzinfo=UTC), end=datetime(2026, 6, 9, 11, tzinfo=UTC))
    claim = Claim(id="C1", text=form.format(name.replace("_", " ")), evidence=("E1",))
    made, problems = resolve_claim(claim, ConclusionBasis({"E1": view}, window, ("till",)))
    assert (made.basis, problems) == ("measured", ())
