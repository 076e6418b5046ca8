"""Whose number it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claims import find_claim_problems
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView
from opsleuth.verification.number_attribution import find_misplaced_numbers

WINDOW = Window(
    start=datetime(2026, 11, 29, 13, 40, tzinfo=UTC), end=datetime(2026, 11, 29, 14, 20, tzinfo=UTC)
)


def view(number: int, tool: str, record: dict[str, Any], **more: Any) -> EvidenceView:
    return EvidenceView(f"E{number}", tool, "metrics", ResultStatus.OK, record, **more)


EVIDENCE = {
    v.id: v
    for v in [
        view(1, "metrics_query", {"service": "payments", "failed": "42 % of calls", "p99_ms": 340.0}),
        view(2, "topology", {"service": "checkout", "calls": ["payments-gateway"], "depth": 2}),
        view(
            3,
            "traces",
            {
                "rows": [
                    {"service": "checkout", "failed_percent": 3.1},
                    {"service": "payments", "failed_percent": 42.0},
                ]
            },
        ),
        view(4, "calculate", {"result": 17.5}),
        view(5, "metrics_query", {"max_ms": 91.0}, asked={"service": "checkout"}),
        view(6, "database_statements", {"statements": [{"statement": "SELECT 1", "mean_ms": 872.4}]}),
    ]
}


def fails(text: str, *cited: str) -> bool:
    return bool(
        find_claim_problems(Claim(id="C1", text=text, evidence=cited), ConclusionBasis(EVIDENCE, WINDOW))
    )


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("checkout answered 500 in 42 % of calls.", ("E1", "E2")),
        ("The p99 of checkout is 340 ms.", ("E1", "E2")),
        ("checkout failed in 42 % of calls.", ("E3",)),
        ("payments failed in 3.1 % of calls, checkout in 42 %.", ("E3",)),
        ("payments took 91 ms.", ("E1", "E5")),
    ],
)
def test_a_number_of_another_is_refused(text: str, cited: tuple[str, ...]) -> None:
    assert fails(text, *cited)


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("payments failed in 42 % of calls; checkout calls payments-gateway.", ("E1", "E2")),
        ("checkout failed in 3.1 % of calls, payments in 42 %.", ("E3",)),
        ("checkout was well, but payments failed in 42 % of calls.", ("E1", "E2")),
        ("42 % of the calls of payments failed.", ("E1", "E2")),
        ("checkout suffers 17.5 in all.", ("E2", "E4")),
        ("checkout took 91 ms.", ("E2", "E5")),
        ("checkout waits for `SELECT 1`, 872.4 ms a call.", ("E2", "E6")),
        ("payments fails 42 % of what checkout asks.", ("E1", "E2")),
        ("payments failed 38.9 % more often than checkout: 42 % and 3.1 %.", ("E3",)),
    ],
)
def test_a_number_of_its_own_holds(text: str, cited: tuple[str, ...]) -> None:
    assert (
        find_claim_problems(Claim(id="C1", text=text, evidence=cited), ConclusionBasis(EVIDENCE, WINDOW))
        == ()
    )


LINES = {
    "lines": [
        {"service": "web", "message": "nginx/1.29.0 (built 12)"},
        *({"service": "web", "message": f"start worker process {n}"} for n in (29, 30, 31)),
        {"service": "web", "message": "PostgreSQL 16.3.1 listens on 10.0.0.5 with 200 slots"},
        {"service": "web", "message": "10.0.0.9 answered 17 times"},
    ]
}


@pytest.mark.parametrize("version", ["nginx/1.29.0", "nginx 1.29.0", "version 1.29.0", "PostgreSQL 16.3.1"])
@pytest.mark.parametrize("joint", [", with", " and"])
def test_a_version_is_no_subject_of_later_numbers(version: str, joint: str) -> None:
    piece = view(1, "logs_search", LINES)
    text = f"{version} starts{joint} the worker processes 29, 30 and 31"
    assert list(find_misplaced_numbers(text, [piece], [], WINDOW.seconds)) == []


def test_an_address_is_a_subject() -> None:
    piece = view(1, "logs_search", LINES)
    [wrong] = find_misplaced_numbers("10.0.0.5 answered 17 times", [piece], [], WINDOW.seconds)
    assert (wrong.number.text, wrong.names) == ("17 times", ("10.0.0.5",))
