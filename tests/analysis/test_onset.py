"""Where the incident begins when the alert comes late, early or on time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.onset import with_start
from opsleuth.analysis.records import AlertFacts, Recording, Series, Span

STEP = 300.0


def start(values: list[float], onset: float | None, metric: str = "latency") -> float | None:
    times = [STEP * place for place in range(len(values))]
    alert = AlertFacts("slow", service="web", metric="latency", onset=onset)
    series = Series("web", metric, "s", times, values)
    return with_start(Recording(alert, Span(0.0, STEP * len(values)), metrics=[series])).alert.onset


def test_a_late_alert_is_moved_back_to_where_its_metric_rose() -> None:
    assert start([1.0, 1.1, 1.0, 5.0, 5.2, 5.1, 5.0], onset=5.5 * STEP) == 3 * STEP


def test_a_fall_is_followed_as_well_as_a_rise() -> None:
    assert start([100.0, 99.0, 100.0, 60.0, 58.0, 61.0], onset=4.5 * STEP) == 3 * STEP


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.1, 1.0, 1.0, 5.0, 5.2, 5.1],  # on time
        [1.0, 5.0, 5.0, 1.0, 1.0, 5.2, 5.1],  # an earlier disturbance that was over
        [1.0, 1.1, 1.0, 1.05, 1.1, 1.0, 1.1],  # nothing happened
        [5.0, 5.1, 5.0, 5.0, 5.0, 5.2, 5.1],  # always so
        [],
    ],
)
def test_otherwise_the_alert_is_taken_at_its_word(values: list[float]) -> None:
    assert start(values, onset=4 * STEP) == 4 * STEP


def test_an_alert_without_onset_or_without_its_metric_stays_as_it_is() -> None:
    assert start([1.0, 1.0, 5.0, 5.0], onset=None) is None
    assert start([1.0, 1.0, 5.0, 5.0, 5.0], onset=4 * STEP, metric="requests") == 4 * STEP


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 30 * STEP))
def test_a_start_is_never_later_than_the_alert(values: list[float], onset: float) -> None:
    moved = start(values, onset)
    assert moved is not None
    assert moved <= onset
