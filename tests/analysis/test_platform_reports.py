"""Events and object states: what is blamed, what is over, what is somebody else's old trouble."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nonempty import nonempty
from platform_rows import END, ONSET, START, crashing, event, pod, recording, row

from opsleuth.analysis import platform_reports
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE
from opsleuth.analysis.records import Finding, ObjectState, PlatformEvent, Recording, TimeRange

HASH = "web-7c9d8b6f5-x2k4p"


def causes(found: Recording) -> list[tuple[str, str]]:
    return [
        (f.service, f.kind)
        for f in platform_reports.find_reported_troubles(found)
        if f.direction == "cause" and f.size > 0
    ]


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        (
            "BackOff",
            "Back-off restarting failed container (reason: OOMKilled, exit code: 137)",
            "out_of_memory",
        ),
        ("BackOff", "Back-off restarting failed container", "crash"),
        ("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.", "scheduling"),
        ("Failed", 'Failed to pull image "r/x:1": dial tcp: lookup r: no such host', "image_pull"),
        ("Unhealthy", "Readiness probe failed: connection refused", "probe"),
        ("FailedCreate", 'pods "web-" is forbidden: exceeded quota: compute', "quota"),
        ("FailedMount", 'MountVolume.SetUp failed: secret "tls" not found', "config"),
        ("Evicted", "The node was low on resource: memory.", "memory"),
    ],
)
def test_events_of_the_kubelet(reason: str, message: str, kind: str) -> None:
    assert causes(recording(events=[event(f"Pod/{HASH}", reason, message)])) == [("web", kind)]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "The free storage capacity for DB instance is low. Free storage is critically low: storage critically low",
            "storage_full",
        ),
        ("Replica lag on web-replica exceeded 900 seconds", "replication_lag"),
        ("Multi-AZ instance failover started.", "failover"),
        ("The instance has reached its maximum number of connections", "connections"),
    ],
)
def test_events_of_a_managed_database(message: str, kind: str) -> None:
    told = event("web", "notification", message, source="rds", type="Normal", time=ONSET)
    assert causes(recording(events=[told])) == [("web", kind)]


def test_a_failover_that_has_ended_is_still_what_broke_the_connections() -> None:
    rows = [
        event("web", "failover", "Multi-AZ instance failover started.", time=ONSET - 30),
        event(
            "web",
            "failover",
            "Multi-AZ instance failover completed; the instance is available.",
            time=ONSET + 60,
        ),
    ]
    assert causes(recording(events=rows)) == [("web", "failover")]


@pytest.mark.parametrize("time", [START - 3600.0, ONSET - 3600.0])
def test_a_failover_long_before_the_onset_is_over(time: float) -> None:
    told = event("web", "failover", "Multi-AZ instance failover started.", time=time)
    found = platform_reports.find_reported_troubles(recording(events=[told]))
    assert [(f.kind, f.size, f.direction) for f in found] == [("failover", 0.0, "victim")]


def test_a_warning_is_over_once_its_pod_is_up() -> None:
    rows = recording(
        text="Pod pending for web",
        events=[event(f"Pod/{HASH}", "FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.")],
        objects=[pod(HASH)],
    )
    found = platform_reports.find_reported_troubles(rows)
    assert causes(rows) == []
    assert [f.kind for f in found if f.direction == "healthy"] == ["other"]
    assert [f.size for f in found if f.kind == "scheduling"] == [0.0]


def test_ready_replicas_do_not_answer_a_complaint_about_latency() -> None:
    found = platform_reports.find_reported_troubles(
        recording(text="high latency at web", objects=[pod(HASH)])
    )
    assert [f.direction for f in found] == ["victim"]


def test_a_later_success_undoes_a_failed_creation() -> None:
    rows = [
        event("Job/web", "FailedCreate", 'serviceaccount "web" not found', time=ONSET),
        event("Job/web", "SuccessfulCreate", "Created pod: web-x2k4p", type="Normal", time=ONSET + 5),
    ]
    assert causes(recording(events=rows)) == []


def test_a_message_that_calls_itself_over_is_over() -> None:
    told = event(f"Pod/{HASH}", "FailedMount", "MountVolume.SetUp failed, retried successfully")
    assert causes(recording(events=[told])) == []


def test_the_kind_that_names_the_cause_weighs_more_than_the_crash_it_makes() -> None:
    rows = recording(
        events=[event(f"Pod/{HASH}", "BackOff", "Back-off restarting failed container", count=8)],
        objects=[crashing(HASH, lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}})],
    )
    sizes = {f.kind: f.size for f in platform_reports.find_reported_troubles(rows)}
    assert sizes == {"out_of_memory": NAMES_CAUSE, "crash": ACTS}


def test_a_container_that_just_came_back_from_an_oom_kill_is_no_healthy_one() -> None:
    state = pod(
        HASH,
        restart_count=4,
        state={"running": {"startedAt": "1970-01-01T11:58:00Z"}},
        lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}},
    )
    assert causes(recording(objects=[state])) == [("web", "out_of_memory")]


def test_one_old_restart_is_no_trouble() -> None:
    state = pod(HASH, restart_count=1, state={"running": {"startedAt": "1970-01-01T09:00:00Z"}})
    assert causes(recording(objects=[state])) == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("CrashLoopBackOff", "crash"),
        ("Init:CrashLoopBackOff", "crash"),
        ("ImagePullBackOff", "image_pull"),
        ("CreateContainerConfigError", "config"),
        ("OOMKilled", "out_of_memory"),
        ("Evicted", "memory"),
        ("Error", "crash"),
    ],
)
def test_rows_of_a_pod_listing(status: str, kind: str) -> None:
    listed = row("Pod", HASH, ready="0/1", status=status, restarts="5 (2m ago)", age="1h", node="node-1")
    assert causes(recording(objects=[listed])) == [("web", kind)]


def test_a_pending_pod_without_a_node_was_not_scheduled() -> None:
    listed = row("Pod", HASH, ready="0/1", status="Pending", restarts="0", age="1h", node="<none>")
    assert causes(recording(objects=[listed])) == [("web", "scheduling")]


@pytest.mark.parametrize("status", ["Running", "Completed"])
def test_rows_of_pods_in_order(status: str) -> None:
    ready = "1/1" if status == "Running" else "0/1"
    listed = row("Pod", HASH, ready=ready, status=status, restarts="0", age="1h", node="node-1")
    assert causes(recording(objects=[listed])) == []


def test_a_neighbour_that_has_been_broken_for_days_is_not_blamed() -> None:
    listed = [
        row("Pod", "mail-6f5cbdf85-4wq74", ready="0/1", status="ImagePullBackOff", restarts="0", age="6d"),
        row("Pod", HASH, ready="0/1", status="CrashLoopBackOff", restarts="5", age="6d"),
    ]
    found = recording(objects=listed)
    assert causes(found) == [("web", "crash")]
    assert [f.direction for f in platform_reports.find_reported_troubles(found) if f.service == "mail"] == [
        "victim"
    ]


def test_of_equal_troubles_the_one_that_the_alert_is_about_comes_first() -> None:
    listed = [
        row("Pod", name, ready="0/1", status="ErrImagePull", restarts="0", age="5m")
        for name in ("aaa-6f5cbdf85-4wq74", HASH)
    ]
    found = platform_reports.find_reported_troubles(recording(objects=listed))
    assert [(f.service, f.direction) for f in found] == [("web", "cause"), ("aaa", "cause")]
    assert found[0].size > found[1].size


@pytest.mark.parametrize(("restarts", "direction"), [("7", "cause"), ("900", "victim")])
def test_a_neighbours_crash_loop_is_as_old_as_its_back_off_tells(restarts: str, direction: str) -> None:
    listed = row(
        "Pod", "mail-6f5cbdf85-4wq74", ready="0/1", status="CrashLoopBackOff", restarts=restarts, age="9d"
    )
    assert [f.direction for f in platform_reports.find_reported_troubles(recording(objects=[listed]))] == [
        direction
    ]


def test_a_rollout_whose_new_pods_fail_while_the_old_ones_run_is_the_deploy() -> None:
    new = [crashing(f"web-5f5cbdf85-{tail}") for tail in ("4wq74", "7zq8p")]
    young = [
        replace(s, status={**dict(s.status), "start_time": "1970-01-01T11:30:00Z"})
        for s in new
        if not isinstance(s.status, str)
    ]
    found = platform_reports.find_reported_troubles(recording(objects=[*young, pod(HASH)]))
    deploy = next(f for f in found if f.kind == "deploy")
    assert (deploy.service, deploy.size, deploy.figures["failing"], deploy.figures["up"]) == (
        "web",
        NAMES_CAUSE,
        2,
        1,
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ({"ready": "True", "memory_pressure": "True"}, "memory"),
        ({"conditions": [{"type": "DiskPressure", "status": "True"}]}, "storage_full"),
        ({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}, "crash"),
    ],
)
def test_nodes(status: dict[str, object], kind: str) -> None:
    node = ObjectState(time=END, kind="Node", name="node-1", status=status)
    assert causes(recording(service=None, objects=[node])) == [("node-1", kind)]


def test_a_failed_delivery_names_what_it_could_not_apply() -> None:
    text = (
        "Name:               argocd/shop\nSync Status:        OutOfSync from HEAD (b882d15)\n"
        "Health Status:      Missing\n\nPhase:              Failed\n"
        'Message:            one or more objects failed to apply, reason: namespaces "shops" not found\n'
    )
    state = ObjectState(time=END, kind="ArgocdAppGet", name="argocd/shop", status=text)
    assert causes(recording(service="shop", objects=[state])) == [("shop", "config")]


def test_nothing_recorded_finds_nothing() -> None:
    assert platform_reports.find_reported_troubles(recording()) == []
    assert platform_reports.find_reported_troubles(recording(events=[], objects=[])) == []


def _world(web: str = "web", mail: str = "mail", total: str = "sum") -> Recording:
    pod_of_web, pod_of_mail = f"{web}-7c9d8b6f5-x2k4p", f"{mail}-6f5cbdf85-4wq74"
    return recording(
        service=web,
        text=f"{web} is not well",
        events=[
            event(
                f"Pod/{pod_of_web}",
                "BackOff",
                "Back-off restarting failed container",
                count=8,
                first_time=ONSET,
            ),
            event(f"Job/{total}", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            event(f"Pod/{pod_of_mail}", "FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu."),
        ],
        objects=[
            crashing(pod_of_web, lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}}),
            row("Pod", pod_of_mail, ready="0/1", status="Pending", restarts="0", age="5m", node="<none>"),
            row("Deployment", mail, ready="0/1", age="6d"),
            row("Job", total, age="5m"),
        ],
    )


NAMES = st.from_regex(r"[a-z]{4,12}(-[a-z]{3,8})?", fullmatch=True)


@given(st.lists(NAMES, min_size=3, max_size=3, unique=True))
def test_names_do_not_matter(names: list[str]) -> None:
    new = dict(zip(("web", "mail", "sum"), names, strict=True))
    expected = {
        (new[f.service], f.kind, f.size, f.direction)
        for f in platform_reports.find_reported_troubles(_world())
    }
    assert {
        (f.service, f.kind, f.size, f.direction)
        for f in platform_reports.find_reported_troubles(_world(*names))
    } == expected


def _essence(findings: list[Finding], shift: float = 0.0) -> list[tuple[object, ...]]:
    return [(f.service, f.kind, f.size, f.text, f.direction, f.onset and f.onset - shift) for f in findings]


@given(st.data())
def test_the_order_of_rows_does_not_matter(data: st.DataObject) -> None:
    world = _world()
    events = data.draw(st.permutations(world.events or ()))
    objects = data.draw(st.permutations(world.objects or ()))
    mixed = replace(world, events=events, objects=objects)
    assert _essence(platform_reports.find_reported_troubles(mixed)) == _essence(
        platform_reports.find_reported_troubles(world)
    )


def test_a_shift_of_all_times_shifts_the_onsets_and_nothing_else() -> None:
    world, shift = _world(), 86_400.0

    def moved(row: PlatformEvent) -> PlatformEvent:
        return replace(row, time=row.time + shift, first_time=row.first_time and row.first_time + shift)

    later = replace(
        world,
        alert=replace(world.alert, onset=ONSET + shift, fired=END + shift),
        window=TimeRange(START + shift, END + shift),
        events=[moved(e) for e in world.events or ()],
        objects=[
            replace(
                o,
                time=END + shift,
                status=o.status
                if isinstance(o.status, str)
                else {k: "1970-01-02T00:00:00Z" if k == "start_time" else v for k, v in o.status.items()},
            )
            for o in world.objects or ()
        ],
    )
    assert _essence(platform_reports.find_reported_troubles(later), shift) == _essence(
        platform_reports.find_reported_troubles(world)
    )


def test_every_number_in_a_text_stands_in_its_figures() -> None:
    for finding in nonempty(platform_reports.find_reported_troubles(_world())):
        held = " ".join(str(value) for value in finding.figures.values())
        said = re.findall(r"\d+(?:\.\d+)?", finding.text.replace(finding.service, ""))
        assert [number for number in said if number not in held] == []


@pytest.mark.parametrize(("ready", "desired"), [(0, 3), (2, 3), (0, 0)])
def test_what_is_not_ready_or_not_wanted_is_not_in_order(ready: int, desired: int) -> None:
    status = {"replicas": desired, "readyReplicas": ready}
    state = ObjectState(time=END, kind="Deployment", name="web", status=status, spec={"replicas": desired})
    found = platform_reports.find_reported_troubles(recording(objects=[state]))
    assert not any("is in order" in finding.text for finding in found)


@pytest.mark.parametrize(
    ("text", "named"),
    [("rapid growth", False), ("api is slow", True), ("the api-gateway", False), ("(api)", True)],
)
def test_a_service_is_named_only_as_a_word(text: str, named: bool) -> None:
    assert platform_reports.names_service(text, "api") == named
    assert not platform_reports.names_service(text, "")
