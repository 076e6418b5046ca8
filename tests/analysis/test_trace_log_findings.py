"""Time and steps that go missing between and inside services: what is found, and what must not be."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nonempty import nonempty
from traced_shop import ONSET, incident

from opsleuth.analysis import trace_log_findings
from opsleuth.analysis.records import Finding, LogLine, Recording, TimeRange, TraceSpan

FAULTS = ["slow_way", "starved", "slow_work", "breaks_off", "fails"]


def causes(recording: Recording) -> list[Finding]:
    return [
        finding
        for finding in trace_log_findings.find_lost_time_and_steps(recording)
        if finding.direction == "cause"
    ]


def strongest(recording: Recording, detector: str) -> Finding:
    return max((f for f in causes(recording) if f.detector == detector), key=lambda f: f.size)


@pytest.mark.parametrize("service", ["cart", "pay"])
@pytest.mark.parametrize(
    ("fault", "detector", "kind"),
    [
        ("slow_way", "span_time", "network_delay"),
        ("slow_work", "span_time", "latency"),
        ("breaks_off", "lost_steps", "errors"),
        ("fails", "lost_steps", "exception"),
        ("fails", "span_status", "errors"),
        ("fails", "new_failures", "exception"),
    ],
)
def test_a_fault_is_found_at_its_service(fault: str, service: str, detector: str, kind: str) -> None:
    finding = strongest(incident(fault, service), detector)
    assert (finding.service, finding.kind) == (service, kind)


def test_a_starved_caller_is_named_and_not_those_whom_it_calls() -> None:
    found = causes(incident("starved", "front"))
    assert {finding.service for finding in found} == {"front"}
    assert {finding.kind for finding in found} == {"latency"}


@pytest.mark.parametrize("fault", FAULTS)
def test_nobody_but_the_faulty_service_is_a_cause(fault: str) -> None:
    assert {finding.service for finding in causes(incident(fault, "cart"))} == {"cart"}


@given(st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_a_quiet_day_has_no_findings(seed: int) -> None:
    assert trace_log_findings.find_lost_time_and_steps(incident(None, "", seed=seed)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_every_number_of_the_text_stands_in_the_figures(fault: str) -> None:
    for finding in nonempty(trace_log_findings.find_lost_time_and_steps(incident(fault, "cart"))):
        words = finding.text.replace(",", " ").replace(";", " ").split()
        numbers = [float(word) for word in words if word.replace(".", "", 1).isdigit()]
        quoted = " ".join(str(value) for value in finding.figures.values() if isinstance(value, str))
        figures = [float(value) for value in finding.figures.values() if not isinstance(value, str)]
        unknown = [
            number
            for number in nonempty(numbers)
            if f"{number:g}" not in quoted and pytest.approx(number, abs=0.06) not in figures
        ]
        assert unknown == [], (finding.text, finding.figures)


def test_without_a_reference_nothing_is_said() -> None:
    recording = replace(incident("fails", "cart"), spans_baseline=None, logs_baseline=None)
    assert trace_log_findings.find_lost_time_and_steps(recording) == []


def test_earlier_rows_of_the_window_serve_as_a_reference() -> None:
    recording = incident("slow_way", "cart")
    moved = [replace(span, start=span.start + 2400) for span in recording.spans_baseline or ()]
    together = replace(recording, spans_baseline=None, spans=[*moved, *(recording.spans or ())])
    assert strongest(together, "span_time").service == "cart"


def test_nothing_recorded_is_no_finding() -> None:
    empty = Recording(alert=incident(None, "").alert, window=TimeRange(0, 1))
    assert trace_log_findings.find_lost_time_and_steps(empty) == []
    assert (
        trace_log_findings.find_lost_time_and_steps(
            replace(empty, spans=[], logs=[], span_stats=[], edges=[], patterns=[])
        )
        == []
    )


def shifted(recording: Recording, by: float) -> Recording:
    def spans(rows: Sequence[TraceSpan] | None) -> list[TraceSpan]:
        return [replace(row, start=row.start + by) for row in rows or ()]

    def lines(rows: Sequence[LogLine] | None) -> list[LogLine]:
        return [replace(row, time=row.time + by) for row in rows or () if row.time is not None]

    return replace(
        recording,
        alert=replace(recording.alert, onset=ONSET + by),
        window=TimeRange(recording.window.start + by, recording.window.end + by),
        spans=spans(recording.spans),
        spans_baseline=spans(recording.spans_baseline),
        logs=lines(recording.logs),
        logs_baseline=lines(recording.logs_baseline),
    )


def shuffled(recording: Recording, seed: int) -> Recording:
    def mixed(rows: Sequence[object] | None) -> list[object]:
        order = list(rows or ())
        random.Random(seed).shuffle(order)
        return order

    names = ("spans", "spans_baseline", "logs", "logs_baseline")
    return replace(recording, **{name: mixed(getattr(recording, name)) for name in names})  # type: ignore[arg-type]


def renamed(recording: Recording, names: dict[str, str]) -> Recording:
    def text(words: str) -> str:
        return " ".join(names.get(word, word) for word in words.split(" "))

    def lines(rows: Sequence[LogLine] | None) -> list[LogLine]:
        return [replace(row, service=names[row.service], message=text(row.message)) for row in rows or ()]

    def spans(rows: Sequence[TraceSpan] | None) -> list[TraceSpan]:
        return [replace(row, service=names[row.service], operation=text(row.operation)) for row in rows or ()]

    return replace(
        recording,
        alert=replace(recording.alert, service=names["front"]),
        spans=spans(recording.spans),
        spans_baseline=spans(recording.spans_baseline),
        logs=lines(recording.logs),
        logs_baseline=lines(recording.logs_baseline),
        topology=[
            replace(e, caller=names[e.caller], callee=names[e.callee]) for e in recording.topology or ()
        ],
    )


def essence(
    findings: list[Finding], name: Callable[[str], str] = str
) -> list[tuple[str, str, str, str, float]]:
    rows = [(f.detector, name(f.service), f.kind, f.direction, round(f.size, 6)) for f in findings]
    return sorted(rows)


@given(st.sampled_from(FAULTS), st.integers(-(10**7), 10**7), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_the_clock_and_the_order_of_rows_play_no_part(fault: str, by: int, seed: int) -> None:
    recording = incident(fault, "cart", requests=15)
    usual = essence(trace_log_findings.find_lost_time_and_steps(recording))
    assert [
        row[:4] for row in essence(trace_log_findings.find_lost_time_and_steps(shifted(recording, by)))
    ] == [row[:4] for row in usual]
    assert trace_log_findings.find_lost_time_and_steps(
        shuffled(recording, seed)
    ) == trace_log_findings.find_lost_time_and_steps(recording)


@given(st.sampled_from(FAULTS), st.permutations(["zufo", "malik", "orbetane"]))
@settings(max_examples=15, deadline=None)
def test_names_play_no_part(fault: str, words: list[str]) -> None:
    names = dict(zip(("front", "cart", "pay"), words, strict=True))
    back = {new: old for old, new in names.items()}
    recording = incident(fault, "cart", requests=15)
    found = essence(
        trace_log_findings.find_lost_time_and_steps(renamed(recording, names)), lambda service: back[service]
    )
    assert found == essence(trace_log_findings.find_lost_time_and_steps(recording))


def test_sums_over_all_traces_count_before_sampled_spans() -> None:
    recording = incident("slow_way", "cart")
    assert (
        trace_log_findings.find_lost_time_and_steps(replace(recording, span_stats=[], edges=[], logs=None))
        == []
    )
