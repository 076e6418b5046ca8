"""Oddities beside the incident: other namespaces, old states, jobs that no request concerns."""

from cluster_objects import ONSET, recorded, whole
from shop_recordings import (
    CALLS,
    GOING_DARK,
    REFUSED,
    SHOP,
    find_blamed,
    make_errors,
    make_failures,
    make_requests,
    rank_recording,
)

from opsleuth.analysis.ranking import run_detectors
from opsleuth.analysis.records import PlatformEvent


def test_passing_trouble_in_a_foreign_namespace_is_not_blamed() -> None:
    waiting = PlatformEvent(
        ONSET, "kubernetes", "Pod/batch-x", "Warning", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.",
        extra={"namespace": "other-team"},
    )  # fmt: skip
    recording = recorded(
        *SHOP, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED), events=[waiting]
    )
    assert {s.service for s in rank_recording(recording).suspects} & {"batch", "batch-x"} == set()


def test_autoscaler_that_has_long_been_off_is_not_todays_cause() -> None:
    off = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetResourceMetric",
        "lastTransitionTime": "2025-12-01T00:00:00Z",
    }
    scaler = whole(
        "HorizontalPodAutoscaler", "cart", {"scaleTargetRef": {"kind": "Deployment", "name": "cart"}}, status={"conditions": [off]}
    )  # fmt: skip
    recording = recorded(*SHOP, scaler, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED))
    assert find_blamed(recording) == ("cart", "dependency", "Service store/cart")


def test_failed_job_that_nobody_in_the_incident_calls_is_not_blamed() -> None:
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "lastTransitionTime": "2026-01-05T07:31:00Z",
    }
    job = whole("Job", "cleanup", status={"failed": 6, "conditions": [failed]})
    calm = [make_requests("web", 20.0, 20.0), make_failures("web", 0.1, 0.1)]
    found = [
        f for f in run_detectors(recorded(*SHOP, job, calls=CALLS, metrics=calm)) if f.detector == "cluster"
    ]
    assert [f.figures.get("latent") for f in found] == [True]
