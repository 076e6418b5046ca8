"""Two claims of one report that cannot both be true: code finds them and says which one stands."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Cause, Claim, Conclusion
from opsleuth.state.investigation import Window
from opsleuth.state.run_status import Verdict
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView
from opsleuth.verification.conclusion_checks import check_conclusion, strip_unsupported
from opsleuth.verification.contradictions import find_contradictions

WINDOW = Window(start=datetime(2026, 5, 12, 8, 30, tzinfo=UTC), end=datetime(2026, 5, 12, 9, 30, tzinfo=UTC))
SERVICES = ("till", "web", "orders-db")
MEASURES = ("error_rate", "latency_p99", "queue_depth")


def finding(
    service: str, metric: str, usual: float, now: float, onset: str = "2026-05-12T09:00:00Z"
) -> dict[str, Any]:
    return {
        "service": service, "kind": "errors", "direction": "cause", "metric": metric, "onset": onset, "detector": "resources.errors",
        "text": f"{metric} of {service} went from {usual} to {now} %", "figures": {"usual": usual, "incident": now, "unit": "%"},
    }  # fmt: skip


def make_basis(*pieces: tuple[str, dict[str, Any]]) -> ConclusionBasis:
    """Evidence of one finding each: the tool and the finding, E1 first."""
    views = {}
    for number, (tool, row) in enumerate(pieces, 1):
        record = {"findings": [row], "matched": 1, "scanned_series": 4}
        signal = "derived" if tool == "rank_suspects" else tool
        views[f"E{number}"] = EvidenceView(f"E{number}", tool, signal, ResultStatus.OK, record)
    return ConclusionBasis(views, WINDOW, SERVICES)


def draw(basis: ConclusionBasis, *claims: Claim, blamed: str = "till") -> tuple[Conclusion, list[str]]:
    """What is left of a conclusion that blames a service by its first claim, and the claims that fell by contradiction."""
    cause = Cause(service=blamed, kind="errors", claims=(claims[0].id,))
    draft = Conclusion(
        verdict=Verdict.CAUSE_FOUND, answer=f"{blamed} is to blame.", causes=(cause,), claims=claims
    )
    problems = check_conclusion(draft, basis)
    return strip_unsupported(draft, problems), [p.text for p in problems if "contradicts" in p.text]


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("metric", MEASURES)
@pytest.mark.parametrize(
    "tools",
    [
        ("metrics_anomalies", "metrics_anomalies"),
        ("metrics_anomalies", "rank_suspects"),
        ("rank_suspects", "metrics_anomalies"),
    ],
)
def test_opposite_directions_of_one_series_are_found(
    service: str, metric: str, tools: tuple[str, str]
) -> None:
    basis = make_basis(
        (tools[0], finding(service, metric, 1.0, 9.0)), (tools[1], finding(service, metric, 9.0, 1.0))
    )
    left, fallen = draw(
        basis, Claim(id="C1", facts=("E1.1",)), Claim(id="C2", facts=("E2.1",)), blamed=service
    )
    falling, standing = ("C1", "C2") if tools[0] == "rank_suspects" or tools[0] == tools[1] else ("C2", "C1")
    assert len(fallen) == 1
    assert fallen[0].startswith(f"{falling} contradicts {standing}, which stands: {metric} of {service}")
    assert {c.id: c.status for c in left.claims} == {falling: "unsupported", standing: "holds"}


@pytest.mark.parametrize("now", [5.0, 9.5, 90.0])
def test_one_look_up_made_twice_with_two_values_is_found(now: float) -> None:
    basis = make_basis(
        ("metrics_anomalies", finding("till", "error_rate", 1.0, 9.0)), ("metrics_anomalies", finding("till", "error_rate", 1.0, now)),
    )  # fmt: skip
    _, fallen = draw(basis, Claim(id="C1", facts=("E1.1",)), Claim(id="C2", facts=("E2.1",)))
    assert [text.partition(",")[0] for text in fallen] == ["C1 contradicts C2"]


@pytest.mark.parametrize(
    "words",
    [
        "is healthy",
        "was fine",
        "stayed normal",
        "remained unaffected",
        "is entirely in order",
        "looks as usual",
    ],
)
@pytest.mark.parametrize("service", SERVICES)
def test_a_cause_that_is_called_healthy_stays_the_cause(words: str, service: str) -> None:
    basis = make_basis(("metrics_anomalies", finding(service, "error_rate", 1.0, 9.0)))
    said = Claim(id="C2", text=f"{service} {words}", facts=(), evidence=("E1",), basis="inferred")
    draft = Conclusion(
        verdict=Verdict.CAUSE_FOUND,
        answer="It fails.",
        causes=(Cause(service=service, kind="errors", claims=("C1",)),),
        claims=(Claim(id="C1", facts=("E1.1",), evidence=("E1",), basis="measured", text="it rose"), said),
    )
    assert [p.text for p in find_contradictions(draft, basis)] == ["C2 contradicts C1, which stands: it rose"]


@pytest.mark.parametrize(("text", "found"), [
    ("error_rate of till dropped", True), ("the error_rate at till is lower", True), ("error_rate of till rose", False),
    ("error_rate of till fell again", False), ("error_rate of till would fall", False), ("error_rate of till did not drop", False),
    ("error_rate of web dropped", False), ("latency_p99 of till dropped", False), ("till was healthy before the release", False),
    ("error_rate of till rose while the load fell", False),
])  # fmt: skip
def test_words_that_turn_a_measured_series_around_fall(text: str, *, found: bool) -> None:
    basis = make_basis(("metrics_anomalies", finding("till", "error_rate", 1.0, 9.0)))
    claims = (
        Claim(id="C1", facts=("E1.1",), evidence=("E1",), basis="measured", text="it rose"),
        Claim(id="C2", text=text, evidence=("E1",), basis="inferred"),
    )
    draft = Conclusion(verdict=Verdict.INCONCLUSIVE, answer="?", claims=claims)
    assert bool(list(find_contradictions(draft, basis))) is found


@pytest.mark.parametrize("other", [
    finding("till", "error_rate", 9.0, 1.0, "2026-05-12T09:20:00Z"),
    finding("web", "error_rate", 9.0, 1.0),
    finding("till", "latency_p99", 9.0, 1.0),
    finding("till", "error_rate", 1.0, 9.1),
])  # fmt: skip
def test_what_can_be_true_together_stands(other: dict[str, Any]) -> None:
    basis = make_basis(
        ("metrics_anomalies", finding("till", "error_rate", 1.0, 9.0)), ("metrics_anomalies", other)
    )
    _, fallen = draw(basis, Claim(id="C1", facts=("E1.1",)), Claim(id="C2", facts=("E2.1",)))
    assert fallen == []
