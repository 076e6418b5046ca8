"""Spans and their relatives: own time, sums, status, wording."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.failed_spans import is_failed_status
from opsleuth.analysis.failure_words import speaks_of_exception, speaks_of_failure
from opsleuth.analysis.records import TraceSpan
from opsleuth.analysis.span_statistics import link_span_families, measure_network_gaps, sum_up_operations

PARENT = TraceSpan("t", "p", None, "a", "page", 100.0, 100.0)


def child(name: str, start_ms: float, ms: float, service: str = "a") -> TraceSpan:
    return TraceSpan("t", name, "p", service, "step", 100.0 + start_ms / 1000, ms)


def own_ms(*children: TraceSpan) -> float:
    return next(
        member.self_ms for member in link_span_families([PARENT, *children]) if member.span.span_id == "p"
    )


@pytest.mark.parametrize(
    ("children", "own"),
    [
        ([], 100),
        ([child("x", 10, 30)], 70),
        ([child("x", 10, 30), child("y", 20, 30)], 60),
        ([child("x", 10, 50), child("y", 20, 10)], 50),
        ([child("x", -50, 60), child("y", 90, 500)], 80),
        ([child("x", 0, 100)], 0),
        ([child("x", 200, 50)], 100),
    ],
)
def test_own_time_is_when_no_child_runs(children: list[TraceSpan], own: float) -> None:
    assert own_ms(*children) == pytest.approx(own, abs=1e-3)


@given(st.lists(st.tuples(st.floats(-200, 200), st.floats(0, 300)), max_size=8))
def test_own_time_stays_within_the_span(times: list[tuple[float, float]]) -> None:
    own = own_ms(*(child(str(i), start, ms) for i, (start, ms) in enumerate(times)))
    assert 0 <= own <= 100


def test_a_span_that_was_sent_twice_counts_once() -> None:
    stats = sum_up_operations(link_span_families([PARENT, PARENT]), lambda _: "w")
    assert [(stat.count, stat.traces_in_window) for stat in stats] == [(1, 1)]


def test_a_span_that_names_itself_or_a_lost_parent_has_no_parent() -> None:
    odd = [TraceSpan("t", "s", "s", "a", "x", 0, 1), TraceSpan("t", "o", "gone", "a", "y", 0, 1)]
    assert [member.parent for member in link_span_families(odd)] == [odd[0], None]
    assert all(not member.children for member in link_span_families(odd))


def test_the_gap_is_the_clients_time_without_the_servers() -> None:
    found = measure_network_gaps(link_span_families([PARENT, child("x", 10, 60, service="b")]), lambda _: "w")
    assert [(gap.caller, gap.callee, gap.count) for gap in found] == [("a", "b", 1)]
    assert found[0].network_gap_ms_p50 == pytest.approx(40)


def test_a_span_with_several_children_is_no_way_to_one_service() -> None:
    both = [PARENT, child("x", 10, 20, service="b"), child("y", 40, 20, service="c")]
    assert measure_network_gaps(link_span_families(both), lambda _: "w") == []


@pytest.mark.parametrize(
    "status", ["ERROR", "STATUS_CODE_ERROR", "503", "UNAVAILABLE", "14", "DeadlineExceeded", "Internal"]
)
def test_statuses_of_failure(status: str) -> None:
    assert is_failed_status(status)


@pytest.mark.parametrize(
    "status", [None, "", "OK", "UNSET", "0", "200", "404", "STATUS_CODE_OK", "NOT_FOUND"]
)
def test_statuses_that_are_no_failure_of_the_server(status: str | None) -> None:
    assert not is_failed_status(status)


@pytest.mark.parametrize(
    ("text", "level", "failure", "exception"),
    [
        ("all fine", "INFO", False, False),
        ("all fine", "WARN", False, False),
        ("gave up, upstream timed out", "WARN", True, False),
        ("request failed", None, True, False),
        ("BasicErrorController.error", None, True, False),
        ("java.lang.NullPointerException: x", None, True, True),
        ("Traceback (most recent call last)", None, True, True),
        ("mirrored terrors of failsafe design", "info", False, False),
        ("0 items", "error", True, False),
    ],
)
def test_words_of_failure(text: str, level: str | None, failure: bool, exception: bool) -> None:
    assert speaks_of_failure(text, level) is failure
    assert speaks_of_exception(text) is exception
