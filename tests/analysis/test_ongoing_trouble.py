"""What runs at the end of the window goes before what was larger and has healed, which is named as earlier."""

import pytest

from opsleuth.analysis.log_onset import find_log_onset
from opsleuth.analysis.ongoing_trouble import find_earlier_troubles
from opsleuth.analysis.onset import with_detected_onset
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, LogLine, MetricSeries, Recording, TimeRange

MINUTE = 60.0
END = 180 * MINUTE
OLD = "payment gateway timeout after 5000 ms for order 4816"
NEW = "could not write invoice: No space left on device /var/lib/invoices"


def _write(writer: str, alert: AlertFacts, *, runs_until: int = 180) -> Recording:
    """Three hours of ordinary lines of `checkout`; a large failure for 25 minutes, a small one for the last 30 of `writer`."""
    lines = [
        LogLine(m * MINUTE + 6 * k, name, f"order {m * 10 + k} accepted in {20 + k} ms", level="info")
        for name in {"checkout", writer}
        for m in range(180)
        for k in range(10)
    ]
    lines += [LogLine(m * MINUTE + 2 * k, "checkout", OLD, level="error") for m in range(20, 45) for k in range(30)]  # fmt: skip
    lines += [LogLine(m * MINUTE + 15 * k, writer, NEW, level="error") for m in range(150, runs_until) for k in range(4)]  # fmt: skip
    return Recording(alert, TimeRange(0.0, END), logs=sorted(lines, key=lambda line: line.time or 0.0))


@pytest.mark.parametrize("writer", ["checkout", "invoices"])
def test_the_running_failure_is_the_cause_and_the_healed_one_is_named(writer: str) -> None:
    recording = _write(writer, AlertFacts("What went wrong in checkout.log?"))
    ranking = rank_findings(recording, run_detectors(recording))
    causes = ranking.suspects[: ranking.causes]
    assert [(s.service, s.kind) for s in causes] == [(writer, "storage_full")]
    assert min(f.onset for f in causes[0].findings if f.onset is not None) >= 149 * MINUTE
    [earlier] = ranking.earlier
    assert earlier.text.startswith(
        "Earlier, healed at 1970-01-01T00:44:58Z: 750 lines of failure of checkout"
    )


@pytest.mark.parametrize("alert", [AlertFacts("slow", onset=20 * MINUTE), AlertFacts("slow", fired=50 * MINUTE), AlertFacts("slow", stated=20 * MINUTE), AlertFacts("why did checkout fail?")])  # fmt: skip
def test_where_a_time_or_the_past_is_meant_nothing_is_put_behind(alert: AlertFacts) -> None:
    assert find_earlier_troubles(_write("checkout", alert), 150 * MINUTE) == []


def test_without_a_running_failure_the_healed_one_stays_the_onset() -> None:
    onset = find_log_onset(_write("checkout", AlertFacts("What went wrong?"), runs_until=150))
    assert onset is not None
    assert abs(onset - 20 * MINUTE) <= 5 * MINUTE


@pytest.mark.parametrize(("alert", "minute"), [(AlertFacts("what is wrong?"), 150)])  # fmt: skip
def test_a_metric_that_is_up_at_the_end_goes_before_a_larger_one_that_fell(
    alert: AlertFacts, minute: int
) -> None:
    times = [m * MINUTE for m in range(180)]
    wobble = [100 + m % 5 for m in range(180)]
    large = [v + (5000 if 20 <= m < 45 else 0) for m, v in enumerate(wobble)]
    small = [v + (400 if m >= 150 else 0) for m, v in enumerate(wobble)]
    rows = [MetricSeries("cart", "latency_ms", "ms", times, large), MetricSeries("shop", "latency_ms", "ms", times, small)]  # fmt: skip
    both = [MetricSeries("shop", "latency_ms", "ms", times, [max(pair) for pair in zip(large, small, strict=True)])]  # fmt: skip
    for metrics in (rows, both):
        started = with_detected_onset(Recording(alert, TimeRange(0.0, END), metrics=metrics))
        assert started.alert.onset == pytest.approx(minute * MINUTE, abs=2 * MINUTE)
