"""Workloads, jobs, autoscalers, nodes and deletions whose state is not the desired one."""

from dataclasses import replace

import pytest
from cluster_objects import ONSET, deployment, found_by, pod, told, view, whole

from opsleuth.analysis.cluster.autoscaling import find_stuck_autoscalers
from opsleuth.analysis.cluster.deletion import find_undeleted_objects
from opsleuth.analysis.cluster.jobs import find_job_troubles
from opsleuth.analysis.cluster.nodes import find_unwell_nodes
from opsleuth.analysis.cluster.workloads import find_failed_pods, find_sidecar_trouble, find_unmet_workloads
from opsleuth.analysis.records import AlertFacts


def test_workload_scaled_to_zero_in_the_incident() -> None:
    scaled = told(
        "Deployment/cart", "ScalingReplicaSet", "Scaled down replica set cart-6d5c7f8b4 from 2 to 0"
    )
    looked = view(deployment("cart", replicas=0), events=[scaled], calls=[("web", "cart")])
    [found] = found_by(find_unmet_workloads, looked)
    assert (found.entity.kind, found.kind, found.latent, found.since) == (
        "Deployment",
        "scheduling",
        False,
        ONSET,
    )
    assert found.undo == "kubectl -n store scale deployment cart --replicas=2"


@pytest.mark.parametrize("message", ["Scaled down replica set cart-6d5c7f8b4 to 0 from 3", ""])
@pytest.mark.parametrize(
    ("alert", "latent"),
    [
        (AlertFacts("nothing answers", "cart"), False),
        (AlertFacts("cart answers nothing"), False),
        (AlertFacts("cart-v2 answers nothing"), True),
        (AlertFacts("web is slow", "web"), True),
    ],
)
def test_service_that_nobody_is_known_to_call_counts_where_the_alert_is_about_it(
    message: str, alert: AlertFacts, latent: bool
) -> None:
    written = {"manager": "kubectl", "subresource": "scale", "time": "2026-01-05T07:30:00Z"}
    metadata = {} if message else {"managedFields": [written]}
    events = [told("Deployment/cart", "ScalingReplicaSet", message)] if message else []
    scaled = deployment("cart", replicas=0, metadata=metadata)
    [found] = found_by(find_unmet_workloads, view(scaled, events=events, alert=alert))
    assert (found.latent, found.since) == (latent, ONSET)
    assert found.undo.endswith("--replicas=3" if message else "--replicas=1")


def test_workload_that_was_never_started_counts_only_with_other_trouble() -> None:
    [found] = found_by(find_unmet_workloads, view(deployment("archive", replicas=0)))
    assert found.latent


def test_rollout_that_may_take_all_pods_down_and_did() -> None:
    rolling = {"strategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}
    down = deployment("cart", replicas=3, ready=0, spec=rolling)
    [found] = found_by(find_unmet_workloads, view(down, pod("cart", ready=False)))
    assert found.kind == "deploy"
    assert "0 of 3" in found.text


def test_the_same_strategy_with_ready_pods_is_in_order() -> None:
    rolling = {"strategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}
    assert found_by(find_unmet_workloads, view(deployment("cart", spec=rolling), pod("cart"))) == []


def test_init_container_that_does_not_end() -> None:
    init = [{"name": "wait", "ready": False, "state": {"running": {"startedAt": "2026-01-05T07:20:00Z"}}}]
    stuck = pod("cart", ready=False, status={"phase": "Pending", "initContainerStatuses": init})
    [found] = found_by(find_unmet_workloads, view(deployment("cart", ready=0), stuck))
    assert "init container wait" in found.text


def test_sidecar_that_is_written_as_an_init_container_runs_on_by_design() -> None:
    init = [{"name": "proxy", "ready": True, "state": {"running": {"startedAt": "2026-01-05T07:20:00Z"}}}]
    spec = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}
    slow = pod("cart", ready=False, spec=spec, status={"initContainerStatuses": init})
    assert found_by(find_unmet_workloads, view(deployment("cart", ready=0), slow)) == []


def test_pods_that_cannot_be_made_say_why() -> None:
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": 'pods "cart-" is forbidden: exceeded quota: compute, requested: cpu=2, used: cpu=4, limited: cpu=4',
    }
    [found] = found_by(
        find_unmet_workloads, view(deployment("cart", ready=0, status={"conditions": [failure]}))
    )
    assert found.kind == "quota"


def test_two_containers_of_one_pod_on_one_port() -> None:
    both = {"containers": [{"name": n, "ports": [{"containerPort": 8080}]} for n in ("cart", "debug")]}
    looked = view(deployment("cart", ready=0, template=both), pod("cart", ready=False))
    [found] = found_by(find_unmet_workloads, looked)
    assert "both listen on port 8080" in found.text


def test_argo_rollout_that_is_degraded() -> None:
    status = {
        "phase": "Degraded",
        "message": "ProgressDeadlineExceeded: ReplicaSet has timed out progressing.",
    }
    found = found_by(find_unmet_workloads, view(deployment("cart", kind="Rollout", status=status)))
    assert [(f.entity.kind, f.kind) for f in found] == [("Rollout", "deploy")]


def test_evicted_pod_is_read_with_its_message() -> None:
    gone = pod("cart", ready=False, status={
        "phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi",
    })  # fmt: skip
    [found] = found_by(find_failed_pods, view(deployment("cart", ready=0), gone))
    assert (found.kind, found.latent) == ("storage_full", False)


def test_evicted_pod_that_was_replaced_is_background() -> None:
    gone = pod(
        "cart", ready=False, status={"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    )
    [found] = found_by(find_failed_pods, view(deployment("cart"), gone, pod("cart", number=2)))
    assert found.latent


def test_sidecar_that_was_killed_is_told_from_the_program() -> None:
    killed = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-01-05T07:40:00Z"}}
    rows = [{"name": "cart", "ready": True}, {"name": "shipper", "ready": True, "lastState": killed}]
    [found] = found_by(
        find_sidecar_trouble, view(deployment("cart"), pod("cart", status={"containerStatuses": rows}))
    )
    assert "container shipper beside cart" in found.text


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ({"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}, "config"),
        ({"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}, "quota"),
    ],
)
def test_autoscaler_that_does_not_scale(condition: dict[str, str], kind: str) -> None:
    spec = {"maxReplicas": 4, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}
    scaler = whole(
        "HorizontalPodAutoscaler", "web-hpa", spec, status={"currentReplicas": 4, "conditions": [condition]}
    )
    [found] = found_by(find_stuck_autoscalers, view(scaler))
    assert (found.service, found.kind, found.latent) == ("web", kind, True)


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"},
        {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"},
    ],
)
def test_autoscaler_that_is_off_on_purpose_or_works(condition: dict[str, str]) -> None:
    scaler = whole("HorizontalPodAutoscaler", "web", {"maxReplicas": 4}, status={"conditions": [condition]})
    assert found_by(find_stuck_autoscalers, view(scaler)) == []


def job_pod() -> dict[str, object]:
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    rows = [{"name": "report", "state": done}, {"name": "proxy", "state": {"running": {"startedAt": "x"}}}]
    owner = {"ownerReferences": [{"kind": "Job", "name": "report-29458080"}]}
    return pod("report", ready=False, status={"containerStatuses": rows}, metadata=owner)


def test_job_that_its_sidecar_keeps_from_completing_is_its_cron_jobs() -> None:
    status = {"active": 1, "startTime": "2026-01-05T07:00:00Z"}
    job = whole("Job", "report-29458080", status=status)
    looked = view(job, whole("CronJob", "report"), job_pod())
    [found] = found_by(find_job_troubles, looked)
    assert (found.entity.kind, found.entity.name, found.kind) == ("CronJob", "report", "config")
    assert "container proxy runs on" in found.text


def test_job_that_runs_for_an_hour_is_no_news_unless_the_alert_is_about_it() -> None:
    job = whole("Job", "import", status={"active": 1, "startTime": "2026-01-05T07:00:00Z"})
    looked = view(job)
    assert found_by(find_job_troubles, looked) == []
    about = replace(looked, alert=AlertFacts("job store/import does not complete"))
    assert [d.entity.name for d in found_by(find_job_troubles, about)] == ["import"]


def test_object_that_its_finalizer_holds() -> None:
    meta = {"deletionTimestamp": "2026-01-05T07:30:00Z", "finalizers": ["backup.example.com/wait"]}
    [found] = found_by(find_undeleted_objects, view(pod("db", metadata=meta)))
    assert (found.kind, found.entity.kind) == ("config", "Pod")
    assert "backup.example.com/wait" in found.text


def test_object_that_was_deleted_just_now_may_take_its_time() -> None:
    meta = {"deletionTimestamp": "2026-01-05T07:59:30Z", "finalizers": ["backup.example.com/wait"]}
    assert found_by(find_undeleted_objects, view(pod("db", metadata=meta))) == []


def node(name: str, *conditions: dict[str, str]) -> dict[str, object]:
    return whole("Node", name, namespace=None, status={"conditions": list(conditions)})


READY = {"type": "Ready", "status": "True"}


def test_node_that_is_not_ready_names_whom_it_carries() -> None:
    lost = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }
    looked = view(node("node-a", lost), node("node-b", READY), deployment("cart"), pod("cart"))
    [found] = found_by(find_unwell_nodes, looked)
    assert (found.entity.name, found.victims) == ("node-a", ("cart",))


def test_problem_that_a_daemon_reports_of_a_node() -> None:
    problem = {"type": "NTPProblem", "status": "True", "reason": "NTPIsDown", "message": "clock offset 400 s"}
    [found] = found_by(find_unwell_nodes, view(node("node-a", READY, problem)))
    assert found.kind == "certificate"


def test_node_with_all_in_order() -> None:
    pressure = {"type": "MemoryPressure", "status": "False"}
    assert found_by(find_unwell_nodes, view(node("node-a", READY, pressure))) == []


def test_node_without_an_address_for_another_pod() -> None:
    waiting = pod("cart", ready=False, status={"phase": "Pending"})
    event = told(
        f"Pod/{waiting['metadata']['name']}", "FailedCreatePodSandBox",
        "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.6",
    )  # fmt: skip
    looked = view(node("node-a", READY), deployment("cart", ready=0), waiting, events=[event])
    [found] = found_by(find_unwell_nodes, looked)
    assert (found.entity.kind, found.service, found.kind) == ("Node", "cart", "network_loss")
