"""Where trouble began in logs and spans, and the absolute figures where there is no quiet part."""

import random
from dataclasses import replace

import pytest

from opsleuth.analysis.error_fields import text_with_error
from opsleuth.analysis.failing_spans_share import find_failing_span_shares
from opsleuth.analysis.log_levels import find_log_levels, quote_statement
from opsleuth.analysis.log_onset import find_log_onset, find_onset_candidates
from opsleuth.analysis.onset import with_detected_onset
from opsleuth.analysis.records import AlertFacts, LogLine, Recording, TimeRange, TraceSpan

END = 3_600.0


def recorded(lines: list[LogLine], spans: list[TraceSpan] | None = None) -> Recording:
    return Recording(alert=AlertFacts(text=""), window=TimeRange(0.0, END), logs=lines, spans=spans)


def requests(onset: float, until: float = END, share: float = 0.6, seed: int = 1) -> list[LogLine]:
    """One request every two seconds; from the onset on, a share of them fails."""
    rng = random.Random(seed)
    lines = []
    for second in range(0, int(END), 2):
        failing = onset <= second < until and rng.random() < share
        lines.append(
            LogLine(float(second), "web", "GET / HTTP/1.1", extra={"status": 502 if failing else 200})
        )
    return lines


@pytest.mark.parametrize("onset", [600, 1_800, 3_000])
def test_the_onset_is_where_requests_begin_to_fail(onset: int) -> None:
    found = find_log_onset(recorded(requests(onset)))
    assert found == pytest.approx(onset, abs=120)


def test_an_outage_that_ended_has_its_beginning_as_onset() -> None:
    assert find_log_onset(recorded(requests(1_200, until=1_800))) == pytest.approx(1_200, abs=120)


def test_steady_figures_have_no_onset() -> None:
    rng = random.Random(2)
    lines = [LogLine(float(s), "web", f"took {rng.randrange(10, 40)} ms", extra={"status": rng.choice((200, 200, 500))}) for s in range(0, int(END), 2)]  # fmt: skip
    assert find_log_onset(recorded(lines)) is None


def test_durations_rise_and_several_candidates_are_ordered_by_strength() -> None:
    lines = [LogLine(float(s), "web", f"served in {900 + s % 7 if s > 2_000 else 20 + s % 9} ms") for s in range(0, int(END), 3)]  # fmt: skip
    found = find_onset_candidates(recorded(lines + requests(2_400, share=0.1)))
    assert found[0].course.quantity == "longest duration in ms"
    assert found[0].time == pytest.approx(2_000, abs=120)
    assert [c.strength for c in found if c.course.quantity != "lines written"] == sorted((c.strength for c in found if c.course.quantity != "lines written"), reverse=True)  # fmt: skip


def test_without_a_quiet_part_the_share_itself_is_told() -> None:
    recording = with_detected_onset(recorded(requests(0)))
    assert recording.alert.onset is None
    (finding,) = find_log_levels(recording)
    assert (finding.service, finding.kind) == ("web", "dependency")
    assert "baseline" not in finding.figures
    assert finding.figures["requests"] == 1_800


def test_with_a_quiet_part_failures_are_held_against_it() -> None:
    (finding,) = find_log_levels(with_detected_onset(recorded(requests(1_800))))
    assert finding.text.endswith(", before 0 of " + str(finding.figures["baseline_requests"]) + ".")


def test_a_few_failures_accuse_nobody() -> None:
    assert find_log_levels(recorded(requests(0, share=0.02))) == []


def test_a_statement_is_quoted_without_the_head_of_its_record() -> None:
    record = "# User@Host: a[a] @ b\n# Query_time: 9\nSET timestamp=1;\nSELECT *\nFROM orders;"
    assert quote_statement(record) == "SELECT * FROM orders;"


def test_the_error_of_a_structured_line_belongs_to_what_it_says() -> None:
    line = LogLine(
        0.0, "a", "charge failed", extra={"error": {"type": "TLSError", "message": "x509: expired"}}
    )
    assert text_with_error(line) == "charge failed: x509: expired: TLSError"
    assert text_with_error(LogLine(0.0, "a", "fine", extra={"user": "error"})) == "fine"


def test_failing_spans_are_counted_at_the_deepest_service() -> None:
    spans = []
    for number in range(40):
        trace = str(number)
        spans += [
            TraceSpan(trace, "a", None, "web", "GET /", float(number), 9.0, "error"),
            TraceSpan(
                trace, "b", "a", "stock", "GET /stock", float(number), 5.0, "error" if number % 2 else "ok"
            ),
        ]
    found = {f.service: f.figures for f in find_failing_span_shares(recorded([], spans))}
    assert found["stock"] == {"failed": 20, "spans": 40}
    assert found["web"]["failed"] == 20


@pytest.mark.parametrize(("slow_of_thirty", "named"), [(16, False), (30, True)])
def test_fast_and_slow_requests_in_a_mixture_are_no_slowdown(slow_of_thirty: int, *, named: bool) -> None:
    """A median that jumps from the fast half to the slow one moves by a factor; the ranks hardly do."""
    slow = [*range(14), *range(30, 30 + slow_of_thirty)]
    took = [150 + n % 9 if n in slow else 5 + n % 4 for n in range(60)]
    quiet = recorded([LogLine(60.0 * n, "web", f"POST /items took {ms} ms") for n, ms in enumerate(took)])
    recording = replace(quiet, alert=replace(quiet.alert, onset=1_800.0))
    found = [f for f in find_log_levels(recording) if f.detector == "log_durations"]
    assert bool(found) == named
