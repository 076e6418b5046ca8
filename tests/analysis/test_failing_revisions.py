"""A release whose pods all fail while those of the revision before it run: it is the cause, whatever else changed."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from cluster_objects import NAMESPACE, ONSET, READ_AT, WINDOW, Document, states, whole

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, GradedChange, Recording, ServiceChange
from opsleuth.scenarios.case_folder import format_utc

RELEASED = ONSET - 60.0


class PodFailure(NamedTuple):
    """How a container of a failing release stands: waiting for a reason, after an end."""

    waits: str
    ended: str | None = None
    code: int = 1


FAILURES = (
    PodFailure("ImagePullBackOff"),
    PodFailure("CreateContainerConfigError"),
    PodFailure("CrashLoopBackOff", "Error"),
    PodFailure("CrashLoopBackOff", "OOMKilled", 137),
    PodFailure("RunContainerError", "ContainerCannotRun", 127),
)


def make_pod(revision: str, number: int, created: float, failure: PodFailure | None) -> Document:
    """One pod of `orders`, as the API gives it: up, or failing."""
    state: Document = {"name": "app", "ready": failure is None, "restartCount": 0}
    if failure is None:
        state["state"] = {"running": {"startedAt": format_utc(created + 5)}}
    else:
        state["state"] = {"waiting": {"reason": failure.waits, "message": "back-off"}}
    if failure and failure.ended:
        ended = {"reason": failure.ended, "exitCode": failure.code, "finishedAt": format_utc(READ_AT - 30)}
        state |= {"restartCount": 5, "lastState": {"terminated": ended}}
    owner = {"kind": "ReplicaSet", "name": f"orders-{revision}", "controller": True}
    metadata = {
        "creationTimestamp": format_utc(created),
        "labels": {"app": "orders", "pod-template-hash": revision},
        "ownerReferences": [owner],
    }
    status = {
        "phase": "Running" if failure is None or failure.ended else "Pending",
        "conditions": [{"type": "Ready", "status": str(failure is None)}],
        "containerStatuses": [state],
    }
    spec = {"containers": [{"name": "app"}], "nodeName": "node-a"}
    return whole("Pod", f"orders-{revision}-x{number}k2p", spec, status=status, metadata=metadata)


def make_rollout(failure: PodFailure, *, failing: int, up: int, new_up: int = 0) -> list[Document]:
    older = [make_pod("6d5c7f8b4", number, RELEASED - 86_400, None) for number in range(up)]
    newer = [
        make_pod("57dc4b9f6", number, RELEASED + 2, None if number < new_up else failure)
        for number in range(failing)
    ]
    return [*older, *newer]


def make_change(service: str, time: float, kind: str = "deploy", **columns: Any) -> ServiceChange:
    return ServiceChange(time, service, kind, f"{kind} of {service} at {time - ONSET:.0f}", **columns)


RELEASE = make_change("orders", RELEASED, version="2.14.0")
DECOYS = (
    make_change("payments", ONSET - 20.0),
    make_change("orders", ONSET - 2000.0, version="2.13.9"),
    make_change("orders", ONSET - 10.0, kind="scale"),
    make_change("cart", ONSET - 30.0, kind="config", diff="@@ values.yaml @@\n-timeout: 8\n+timeout: 1\n"),
)


def grade(pods: list[Document], *changes: ServiceChange) -> list[GradedChange]:
    recording = Recording(
        AlertFacts(f"orders of {NAMESPACE} is not available", "orders", onset=ONSET, fired=ONSET + 60),
        WINDOW,
        objects=states(*pods),
        changes=list(changes),
    )
    return [g for g in rank_findings(recording, run_detectors(recording)).changes if g.grade == "cause"]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.ended or failure.waits)
@pytest.mark.parametrize(("failing", "up"), [(1, 1), (1, 5), (3, 2)])
def test_the_release_whose_pods_all_fail_is_the_cause_among_others(
    failure: PodFailure, failing: int, up: int
) -> None:
    (found,) = grade(make_rollout(failure, failing=failing, up=up), *DECOYS, RELEASE)
    assert found.change == RELEASE
    assert found.why == f"its pods fail, all {failing} of them, and the {up} of the revision before are up"


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.ended or failure.waits)
def test_a_release_with_one_pod_that_came_up_is_not_to_blame(failure: PodFailure) -> None:
    assert grade(make_rollout(failure, failing=3, up=2, new_up=1), RELEASE) == []


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.ended or failure.waits)
def test_a_release_without_an_older_pod_that_runs_only_coincides(failure: PodFailure) -> None:
    assert grade(make_rollout(failure, failing=3, up=0), RELEASE) == []


def test_of_two_releases_the_later_one_made_the_failing_pods() -> None:
    pods = make_rollout(FAILURES[0], failing=2, up=2)
    earlier = replace(RELEASE, time=RELEASED - 900.0, version="2.13.9", summary="deploy of orders, earlier")
    (found,) = grade(pods, earlier, RELEASE)
    assert found.change == RELEASE


@pytest.mark.parametrize("kind", ["scale", "config", "flag"])
def test_only_a_release_makes_a_revision(kind: str) -> None:
    assert grade(make_rollout(FAILURES[0], failing=2, up=2), make_change("orders", RELEASED, kind)) == []


def test_a_release_of_another_service_did_not_make_these_pods() -> None:
    assert grade(make_rollout(FAILURES[2], failing=2, up=2), make_change("payments", RELEASED)) == []
