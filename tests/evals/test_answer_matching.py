"""What counts as the expected answer."""

from typing import Any

import pytest

from opsleuth.evals.answer_matching import AnswerMatch, match_report, text_contains, values_match
from opsleuth.evals.cases import ExpectedReport


@pytest.mark.parametrize(
    ("part", "text", "there"),
    [
        ("42", "it failed 42 times", True),
        ("42", "it failed 420 times", False),
        ("42", "it failed 42.0 times", True),
        ("1840", "1,840 calls", True),
        ("0.041", "4.1 %", False),
        ("orders-api", "Orders-API is slow", True),
        ("orders", "orders-api is slow", False),
        ("full table  scan", "a Full Table Scan", True),
        ("订单服务", "原因是订单服务变慢", True),
    ],
)
def test_a_text_says_it(part: str, text: str, *, there: bool) -> None:
    assert text_contains(part, text) is there


@pytest.mark.parametrize(
    ("wanted", "given", "right"),
    [
        (0.333333, 0.3333, True),
        (0.333333, 0.33, False),
        (12.5, "12.50", True),
        ("2026-03-03T14:01:00Z", "2026-03-03T22:01:00+08:00", True),
        ("2026-03-03T14:01:00Z", "2026-03-03T14:02:00Z", False),
        ("Orders-API", "orders-api", True),
        (True, 1, False),
        (None, "none", False),
        (["a", 1], ["A", 1.0], True),
        (["a"], ["a", "b"], False),
        ({"p95": 10}, {"p95": 10, "more": 1}, True),
    ],
)
def test_a_field_is_the_expected_one(wanted: Any, given: Any, *, right: bool) -> None:
    assert values_match(wanted, given) is right


def test_partial_credit_stands_apart_from_exact() -> None:
    expected = ExpectedReport(
        "answered", answer=("42", "orders"), fields={"onset": "2026-03-03T14:01Z", "calls": 3}
    )
    report = {"answer": "42 failed", "fields": {"onset": "2026-03-03T14:01:00Z", "calls": 4}}
    assert match_report(expected, report) == AnswerMatch(exact=False, partial=0.5)
    assert match_report(ExpectedReport("answered"), report) is None
