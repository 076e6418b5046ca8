"""The same pod in every form in which tools record it, and the labels read from described objects."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platform_rows import END, row

from opsleuth.analysis import kubectl_output, workloads
from opsleuth.analysis.records import ObjectState

DESCRIBED = """\
Name:             web-7c9d8b6f5-x2k4p
Namespace:        shop
Node:             node-1/10.0.0.2
Status:           Running
Controlled By:    ReplicaSet/web-7c9d8b6f5
Containers:
  main:
    Image:          registry/web:1
    Command:
      sh -c 'echo Reason: nothing; echo Exit Code: 99'
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Ready:          False
    Restart Count:  7
Conditions:
  Type              Status
  Ready             False
  PodScheduled      True
Events:
  Type     Reason   Age                    From     Message
  ----     ------   ----                   ----     -------
  Warning  BackOff  3m6s (x896 over 4h2m)  kubelet  Back-off restarting failed container
  Normal   Pulled   5m                     kubelet  Successfully pulled image
"""


def _described(text: str = DESCRIBED, kind: str = "Pod", name: str = "web-7c9d8b6f5-x2k4p") -> ObjectState:
    return ObjectState(time=END, kind=kind, name=name, status=text)


def _document(**container: object) -> ObjectState:
    return ObjectState(
        END, "Pod", "web-7c9d8b6f5-x2k4p", {"phase": "Running", "containerStatuses": [container]}
    )


def test_a_described_pod_is_read_by_its_labels_not_by_its_command() -> None:
    state = workloads.read_workload(_described())
    assert state is not None
    assert (state.reasons, state.past, state.exit_code) == (["CrashLoopBackOff"], ["OOMKilled"], 137)
    assert (state.ready, state.desired, state.restarts, state.placed) == (0, 1, 7, True)


def test_an_api_document_says_the_same() -> None:
    state = workloads.read_workload(
        _document(
            ready=False,
            restartCount=7,
            state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
            lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        )
    )
    assert state is not None
    assert (state.reasons, state.past, state.exit_code) == (["CrashLoopBackOff"], ["OOMKilled"], 137)
    assert (state.ready, state.desired, state.restarts, state.messages) == (0, 1, 7, ["back-off 5m0s"])


def test_a_listed_pod_says_what_its_row_holds() -> None:
    state = workloads.read_workload(
        row("Pod", "web", ready="1/2", status="Running", restarts="3 (5h31m ago)", age="6d")
    )
    assert state is not None
    assert (state.ready, state.desired, state.restarts) == (1, 2, 3)
    assert (state.up_seconds, state.age_seconds, state.placed) == (19_860.0, 518_400.0, None)


@pytest.mark.parametrize(
    ("status", "spec", "ready", "desired"),
    [
        ({"desired": 3, "ready": 1, "available": 1, "unavailable": 2}, None, 1, 3),
        ({"replicas": 3, "unavailableReplicas": 3}, {"replicas": 3}, 0, 3),
        ("Name: web\nReplicas:  2 desired | 2 updated | 2 total | 1 available | 1 unavailable\n", None, 1, 2),
    ],
)
def test_controllers_count_their_replicas(status: object, spec: object, ready: int, desired: int) -> None:
    state = workloads.read_workload(ObjectState(END, "Deployment", "web", status, spec=spec))  # type: ignore[arg-type]
    assert state is not None
    assert (state.ready, state.desired) == (ready, desired)


@pytest.mark.parametrize("status", ["state not recorded", "", "OK", {}, {"top_waits": {"CPU": 1.0}}])
def test_what_is_no_workload_is_not_read(status: object) -> None:
    assert workloads.read_workload(ObjectState(END, "Thing", "web", status)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", ["yesterday", "2999-01-01T00:00:00Z", 5, None])
def test_a_start_that_cannot_be_is_not_known(moment: object) -> None:
    state = workloads.read_workload(_document(ready=True, state={"running": {"startedAt": moment}}))
    assert state is not None
    assert state.up_seconds is None


def test_a_running_container_is_as_old_as_its_start() -> None:
    moment = datetime.fromtimestamp(END - 90, UTC).isoformat()
    state = workloads.read_workload(_document(ready=True, state={"running": {"startedAt": moment}}))
    assert state is not None
    assert state.up_seconds == 90.0


def test_events_of_a_description_are_timed_by_their_age() -> None:
    first, second = kubectl_output.read_events_table(DESCRIBED, "Pod/web", END)
    assert (first.reason, first.count, END - first.time, END - (first.first_time or 0)) == (
        "BackOff",
        896,
        186,
        14_520,
    )
    assert (second.reason, second.count, second.first_time) == ("Pulled", None, None)


def test_conditions_of_a_description() -> None:
    assert kubectl_output.read_conditions_table(DESCRIBED) == [
        ("Ready", "False", ""),
        ("PodScheduled", "True", ""),
    ]


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_ages_are_read_back(days: int, hours: int, minutes: int, secs: int) -> None:
    printed = f"{days}d{hours}h{minutes}m{secs}s"
    assert kubectl_output.parse_age_seconds(printed) == days * 86_400 + hours * 3_600 + minutes * 60 + secs


@pytest.mark.parametrize("text", ["", "<unknown>", "12", "5m ago", "h3"])
def test_what_is_no_age_is_none(text: str) -> None:
    assert kubectl_output.parse_age_seconds(text) is None


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(workloads.read_workload(_described(text)), workloads.Workload | None)
    assert {event.object for event in kubectl_output.read_events_table(text, "x", 0.0)} <= {"x"}
