"""Where the incident begins when the alert comes late, early or on time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.onset import with_detected_onset
from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, TimeRange

STEP = 300.0


def start(values: list[float], onset: float | None, metric: str = "latency") -> float | None:
    times = [STEP * place for place in range(len(values))]
    alert = AlertFacts("slow", service="web", metric="latency", onset=onset)
    series = MetricSeries("web", metric, "s", times, values)
    return with_detected_onset(
        Recording(alert, TimeRange(0.0, STEP * len(values)), metrics=[series])
    ).alert.onset


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


def test_an_alert_without_its_metric_stays_as_it_is() -> None:
    assert start([1.0, 1.0, 5.0, 5.0, 5.0], onset=4 * STEP, metric="requests") == 4 * STEP


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([1.0, 1.1, 0.9, 1.0, 5.0, 5.2, 5.1, 5.0], 4),
        ([1.0, 1.1, 0.9, 1.0, 5.0, 5.2, 5.1, 1.0, 1.1, 1.0, 0.9, 1.0, 1.1, 1.0], 4),  # over within the window
        ([1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 0.9, 1.1], None),  # nothing happened
        ([5.0, 5.2, 5.1, 5.0, 1.0, 1.1, 0.9, 1.0], None),  # it got better
        ([1.0, 1.0, 5.0, 5.0], None),  # too short to have levels
        ([], None),
    ],
)
def test_an_alert_without_onset_gets_the_moment_at_which_latency_rose(
    values: list[float], place: int | None
) -> None:
    assert start(values, onset=None) == (None if place is None else place * STEP)


def recorded(
    courses: dict[tuple[str, str], list[float]], fired: float | None = None, service: str | None = None
) -> Recording:
    series = [
        MetricSeries(
            name, metric, "ratio" if metric == "error_rate" else "s", [STEP * n for n in range(len(v))], v
        )
        for (name, metric), v in courses.items()
    ]
    return Recording(
        AlertFacts("it fails", service=service, fired=fired), TimeRange(0.0, STEP * 8), metrics=series
    )


def test_without_onset_the_alerting_service_is_heard_first_then_the_clearest_of_all() -> None:
    courses = {
        ("web", "error_rate"): [0.01, 0.02, 0.01, 0.01, 0.01, 0.3, 0.3, 0.3],
        ("shop", "error_rate"): [0.01, 0.02, 0.01, 0.9, 0.9, 0.9, 0.9, 0.9],
    }
    assert with_detected_onset(recorded(courses, service="web")).alert.onset == 5 * STEP
    assert with_detected_onset(recorded(courses)).alert.onset == 3 * STEP
    assert with_detected_onset(recorded(courses, service="unknown")).alert.onset == 3 * STEP


def test_what_rises_after_the_alert_was_sent_did_not_set_it_off() -> None:
    courses = {("web", "latency"): [1.0, 1.1, 1.0, 0.9, 5.0, 5.1, 5.0, 5.2]}
    assert with_detected_onset(recorded(courses, fired=3 * STEP)).alert.onset is None
    assert with_detected_onset(recorded(courses, fired=6 * STEP)).alert.onset == 4 * STEP


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 30 * STEP))
def test_a_start_is_never_later_than_the_alert(values: list[float], onset: float) -> None:
    moved = start(values, onset)
    assert moved is not None
    assert moved <= onset
