"""Lines that are missing, and new ones of failure, from counts by template."""

from collections.abc import Mapping, Sequence

from opsleuth.analysis.logdiff import find_lost_log_steps, find_new_failure_lines, read_log_statements
from opsleuth.analysis.records import (
    AlertFacts,
    Finding,
    LogPatternCount,
    Recording,
    ServiceDependency,
    SpanStat,
    TimeRange,
)
from opsleuth.analysis.span_statistics import summarize_spans

BEFORE, DURING = "2024-05-01T10:00Z", "2024-05-01T10:02Z"
ONSET = 1_714_557_690.0  # 10:01:30


def recording(
    rows: Mapping[tuple[str, str, str], Sequence[int]],
    spans: Sequence[SpanStat] = (),
    topology: Sequence[ServiceDependency] = (),
) -> Recording:
    """Counts of (service, level, pattern) usually, before the onset, and in the incident."""
    patterns = [
        LogPatternCount(window, *key, count=count, traces_in_window=None)
        for key, counts in rows.items()
        for window, count in zip(("baseline", BEFORE, DURING), counts, strict=True)
        if count
    ]
    alert = AlertFacts("", onset=ONSET)
    return Recording(
        alert,
        TimeRange(ONSET - 600, ONSET + 300),
        patterns=patterns,
        span_stats=spans,
        edges=(),
        topology=topology,
    )


def lost(data: Recording) -> list[Finding]:
    return find_lost_log_steps(read_log_statements(data), summarize_spans(data))


def test_a_line_gone_while_its_companion_stays_is_lost() -> None:
    found = lost(recording({("a", "INFO", "got it"): (30, 30, 25), ("a", "INFO", "sent it"): (30, 20, 0)}))
    assert [(f.service, f.kind) for f in found] == [("a", "exception")]
    assert '"sent it"' in found[0].text


def test_a_line_of_failure_in_its_place_makes_it_surer_and_tells_the_kind() -> None:
    rows = {("a", "INFO", "got it"): (30, 30, 25), ("a", "INFO", "sent it"): (30, 30, 0)}
    silent = lost(recording(rows))[0]
    loud = lost(recording({**rows, ("a", "ERROR", "nothing to send"): (0, 0, 25)}))[0]
    assert loud.size > 1.5 * silent.size
    assert loud.kind == "errors"


def test_an_operation_can_be_the_companion() -> None:
    counts = (("baseline", 30), (BEFORE, 30), (DURING, 25))
    spans = [SpanStat(w, "a", "handle", n, n, 5, 5, 5, 0) for w, n in counts]
    rows = {("a", "INFO", "sent it"): (30, 30, 0), ("b", "INFO", "something else"): (9, 9, 9)}
    assert [f.service for f in lost(recording(rows, spans))] == ["a"]


def test_a_minute_without_any_line_was_not_recorded() -> None:
    counts = (("baseline", 30), (BEFORE, 30), (DURING, 25))
    spans = [SpanStat(w, "a", "handle", n, n, 5, 5, 5, 0) for w, n in counts]
    assert lost(recording({("a", "INFO", "sent it"): (30, 30, 0)}, spans)) == []


def test_lines_that_all_become_rarer_are_no_loss() -> None:
    assert (
        lost(recording({("a", "INFO", "got it"): (30, 30, 3), ("a", "INFO", "sent it"): (30, 30, 3)})) == []
    )


def test_two_lines_that_only_agreed_by_chance_are_no_pair() -> None:
    rows = {("a", "INFO", "got it"): (30, 30, 25), ("a", "INFO", "other work"): (30, 70, 0)}
    assert lost(recording(rows)) == []


def test_failures_that_stop_are_not_missed() -> None:
    rows = {("a", "INFO", "got it"): (30, 30, 25), ("a", "ERROR", "could not"): (30, 30, 0)}
    assert lost(recording(rows)) == []


def test_new_failures_of_a_caller_are_a_victims() -> None:
    rows = {
        ("a", "ERROR", "b said no"): (0, 0, 9),
        ("b", "ERROR", "no"): (0, 0, 9),
        ("a", "INFO", "x"): (9, 9, 9),
    }
    data = recording(rows, topology=[ServiceDependency("a", "b")])
    found = {f.service: f.direction for f in find_new_failure_lines(read_log_statements(data), data.topology)}
    assert found == {"a": "victim", "b": "cause"}


def test_failures_that_name_a_callee_which_speaks_for_itself_are_a_victims() -> None:
    rows = {
        ("a", "WARN", "call to b failed"): (0, 0, 9),
        ("a", "INFO", "x"): (9, 9, 9),
        ("b", "INFO", "y"): (9, 9, 9),
    }
    data = recording(rows, topology=[ServiceDependency("a", "b")])
    assert [f.direction for f in find_new_failure_lines(read_log_statements(data), data.topology)] == [
        "victim"
    ]
    silent = recording(
        {key: n for key, n in rows.items() if key[0] == "a"}, topology=[ServiceDependency("a", "b")]
    )
    assert [f.direction for f in find_new_failure_lines(read_log_statements(silent), silent.topology)] == [
        "cause"
    ]


def test_warnings_count_where_they_tell_of_failure_or_slowness() -> None:
    rows = {
        ("a", "INFO", "x"): (9, 9, 9),
        ("a", "WARN", "slow request"): (0, 0, 12),
        ("b", "WARN", "queue is half full"): (0, 0, 12),
        ("c", "INFO", "slow lane opened"): (0, 0, 12),
    }
    data = recording(rows)
    assert [(f.service, f.kind) for f in find_new_failure_lines(read_log_statements(data), None)] == [
        ("a", "latency")
    ]


def test_failures_as_usual_are_not_new() -> None:
    data = recording({("a", "ERROR", "as always"): (9, 9, 90)})
    assert find_new_failure_lines(read_log_statements(data), None) == []


def test_without_a_reference_there_is_nothing_to_miss() -> None:
    data = recording({("a", "ERROR", "no"): (0, 0, 9)})
    assert lost(data) == []
    assert find_new_failure_lines(read_log_statements(data), None) == []


def test_a_rare_failure_that_came_by_chance_is_no_finding() -> None:
    data = recording({("a", "INFO", "x"): (90, 90, 90), ("a", "ERROR", "client went away"): (0, 0, 2)})
    assert find_new_failure_lines(read_log_statements(data), None) == []


def test_more_lines_of_all_kinds_are_no_more_failures() -> None:
    data = recording({("a", "INFO", "x"): (90, 90, 900), ("a", "ERROR", "as always"): (5, 5, 50)})
    assert find_new_failure_lines(read_log_statements(data), None) == []
