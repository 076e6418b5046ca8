"""Callees that do not answer: the path that breaks is blamed, not those who ask, and not a neighbour."""

from dataclasses import replace

from cluster_objects import READ_AT, recorded, service
from shop_recordings import (
    CALLS,
    DESCRIBED_SERVICE,
    GOING_DARK,
    REFUSED,
    SHOP,
    TIMES,
    find_blamed,
    make_errors,
    make_failures,
    make_requests,
    rank_recording,
)

from opsleuth.analysis.ranking import run_detectors
from opsleuth.analysis.records import LogLine, MetricSeries, ObjectState


def test_callee_that_no_request_reaches_is_blamed_by_its_service() -> None:
    recording = recorded(*SHOP, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED))
    assert find_blamed(recording) == ("cart", "dependency", "Service store/cart")


def test_wrong_selector_of_the_silent_callee_is_what_made_it_so() -> None:
    recording = recorded(
        *SHOP, service("cart", "cart-v2"), calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED)
    )
    assert find_blamed(recording) == ("cart", "config", "Service store/cart")


def test_the_same_selector_of_a_neighbour_that_answers_is_not_blamed() -> None:
    recording = recorded(
        *SHOP, service("archive", "gone"), calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED)
    )
    assert [s.service for s in rank_recording(recording).suspects[:1]] == ["cart"]
    assert "archive" not in {s.service for s in rank_recording(recording).suspects}


def test_healthy_shop_with_an_odd_service_has_no_cause() -> None:
    calm = [make_requests("web", 20.0, 20.0), make_failures("web", 0.1, 0.1), make_requests("cart", 8.0, 8.0)]
    recording = recorded(*SHOP, service("archive", "gone"), calls=CALLS, metrics=calm)
    assert rank_recording(recording).causes == 0


def test_callee_whose_caller_does_not_get_to_asking_is_a_victim() -> None:
    """The caller cannot resolve names: nobody asks the callee, and it is well."""
    lookups = [f"dial tcp: lookup {name} on 10.96.0.10:53: no such host" for name in ("cart", "ads")]
    dark = [*GOING_DARK[:3], make_requests("ads", 8.0, 0.0)]
    logs = [line for lookup in lookups for line in make_errors("web", lookup)]
    recording = recorded(*SHOP, calls=CALLS, metrics=dark, logs=logs)
    assert find_blamed(recording)[:2] == ("web", "dns")


def test_callee_that_stops_giving_any_sign_of_life() -> None:
    dark = MetricSeries("cart", "cpu_usage", "cores", TIMES[:30], [0.2] * 30)
    talk = [LogLine(time, "cart", "kept", level="info") for time in TIMES[:30]]
    metrics = [make_failures("web", 0.1, 40.0), dark]
    recording = recorded(
        calls=CALLS, metrics=metrics, logs=[*talk, *make_errors("web", "order was not booked")]
    )
    assert "cart" in {s.service for s in rank_recording(recording).suspects[:1]}


def test_callee_that_is_only_no_longer_scraped_is_not_silent() -> None:
    dark = MetricSeries("cart", "cpu_usage", "cores", TIMES[:30], [0.2] * 30)
    talk = [LogLine(time, "cart", "kept", level="info") for time in TIMES]
    recording = recorded(calls=CALLS, metrics=[make_failures("web", 0.1, 40.0), dark], logs=talk)
    assert "silence" not in {f.detector for f in run_detectors(recording)}


def test_described_service_that_selects_nothing_is_the_cause() -> None:
    recording = recorded(*SHOP, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED))
    text = ObjectState(READ_AT, "Service", "cart", DESCRIBED_SERVICE, "store")
    with_text = replace(recording, objects=[*(recording.objects or ()), text])
    assert find_blamed(with_text) == ("cart", "config", "Service store/cart")
