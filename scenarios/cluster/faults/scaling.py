"""Replicas that are none, or fewer than the load needs."""

from collections.abc import Sequence

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.drawing import add_autoscaler
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, ref_of
from opsleuth.scenarios.cluster.traffic import fail_requests, slow_down
from opsleuth.scenarios.cluster.workloads import drop_pods, replace_pods

Entities = Sequence[EntityRef]


def scale_to_zero(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Fewer replicas than before: one, or none."""
    workload = cluster.workload(target)
    before = workload["spec"]["replicas"]
    wanted = 0 if wrong else max(before, 2)
    workload["spec"]["replicas"] = wanted
    cluster.edit(workload, target, f"{target.name}: replicas {before} to {wanted}")
    if wrong:
        sets = cluster.state.owned_by(workload, "ReplicaSet")
        for pod in cluster.pods(target):
            cluster.event(
                pod, "Killing", f"Stopping container {target.name}", target, kind="Normal", repeats=False
            )
        cluster.event(
            workload,
            "ScalingReplicaSet",
            f"Scaled down replica set {sets[-1]['metadata']['name']} from {before} to 0",
            target,
            kind="Normal",
            repeats=False,
        )
        drop_pods(cluster, target)
    return [cluster.workload_ref(target)]


def _ensure_autoscaler(cluster: ClusterScene, target: Target) -> Manifest:
    ref = cluster.ref("HorizontalPodAutoscaler", target)
    replicas = cluster.workload(target)["spec"]["replicas"]
    return cluster.state.find(ref) or add_autoscaler(
        cluster, target.name, target.namespace, replicas, target.since - 86_400
    )


def _set_condition(scaler: Manifest, kind: str, at: float, **fields: str) -> None:
    for condition in scaler["status"]["conditions"]:
        if condition["type"] == kind:
            condition |= {**fields, "lastTransitionTime": format_utc(int(at))}


def _add_rush(cluster: ClusterScene, target: Target) -> None:
    """More load than the replicas carry."""
    if target.live:
        cluster.base.effects.add(
            target.name, "rps", 0.7 * cluster.base.rest[target.name].rps, cluster.base.lasting
        )
    slow_down(cluster, target, 3.0, cpu=45)
    fail_requests(
        cluster,
        target,
        0.06,
        lambda r: f"request timed out in queue after {r.randrange(900, 1100)} ms",
        "WARN",
    )


def blind_autoscaler(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """An autoscaler by CPU over pods that state their request, or do not."""
    scaler = _ensure_autoscaler(cluster, target)
    requests = cluster.container(target)["resources"]["requests"]
    if wrong:
        for holder in (
            cluster.container(target),
            *(p["spec"]["containers"][0] for p in cluster.pods(target)),
        ):
            holder["resources"]["requests"] = {"memory": "256Mi"}
        pod = cluster.pods(target)[0]["metadata"]["name"]
        why = (
            f"failed to get cpu utilization: missing request for cpu in container {target.name} of Pod {pod}"
        )
        text = f"the HPA was unable to compute the replica count: {why}"
        _set_condition(
            scaler,
            "ScalingActive",
            target.since,
            status="False",
            reason="FailedGetResourceMetric",
            message=text,
        )
        cluster.event(scaler, "FailedGetResourceMetric", why, target)
        cluster.event(
            scaler,
            "FailedComputeMetricsReplicas",
            f"invalid metrics (1 invalid out of 1), first error is: {why}",
            target,
        )
        _add_rush(cluster, target)
    else:
        requests["cpu"] = "250m"
        replace_pods(cluster, target)
    cluster.edit(cluster.workload(target), target, f"{target.name}: requests tidied up")
    return [ref_of(scaler), cluster.workload_ref(target)]


def cap_autoscaler(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """An autoscaler that has room above, or has none."""
    scaler = _ensure_autoscaler(cluster, target)
    replicas = cluster.workload(target)["spec"]["replicas"]
    scaler["spec"]["maxReplicas"] = replicas if wrong else replicas + 6
    cluster.edit(scaler, target, f"{target.name}: at most {scaler['spec']['maxReplicas']} replicas")
    if wrong:
        text = "the desired replica count is more than the maximum replica count"
        _set_condition(
            scaler, "ScalingLimited", target.since, status="True", reason="TooManyReplicas", message=text
        )
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 96, "averageValue": "192m"}},
        }
        scaler["status"]["currentMetrics"] = [metric]
        _add_rush(cluster, target)
    return [ref_of(scaler)]


FAULTS = (
    ClusterFault("scaled_to_zero", "app", "scheduling", scale_to_zero, "ITBench scaled-to-zero-kubernetes-workload; SREGym, AIOpsLab scale_pod_zero", ("config", "crash", "dependency", "other", "deploy")),
    ClusterFault("autoscaler_blind", "app", "config", blind_autoscaler, "ITBench misconfigured autoscaler; SREGym hpa_missing_effective_cpu_request", ("traffic", "cpu", "quota", "latency")),
    ClusterFault("autoscaler_capped", "app", "config", cap_autoscaler, "ITBench misconfigured-kubernetes-horizontal-pod-autoscaler", ("traffic", "cpu", "quota", "latency")),
)  # fmt: skip
