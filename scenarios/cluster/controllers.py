"""What controllers derive from the other objects: endpoints, replica counts and their conditions, used quota."""

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.scene import ClusterScene
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest

_MEBI = {"Mi": 1.0, "Gi": 1024.0, "Ki": 1 / 1024}


def settle_controllers(cluster: ClusterScene) -> None:
    """Bring everything that controllers derive into agreement with the objects."""
    for workload in (*cluster.state.of_kind("Deployment"), *cluster.state.of_kind("StatefulSet")):
        _settle_workload(cluster, workload)
    for service in cluster.state.of_kind("Service"):
        _settle_endpoints(cluster, service)
    for quota in cluster.state.of_kind("ResourceQuota"):
        quota["status"] = {"hard": quota["spec"]["hard"], "used": used_quota(cluster, quota)}


def is_ready(pod: Manifest) -> bool:
    """Whether the pod's Ready condition is true."""
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def selected_pods(cluster: ClusterScene, service: Manifest) -> list[Manifest]:
    """The pods that a Service's selector matches; none without a selector."""
    selector = service["spec"].get("selector")
    if not selector:
        return []
    pods = cluster.state.of_kind("Pod", service["metadata"]["namespace"])
    return [p for p in pods if selector.items() <= p["metadata"]["labels"].items()]


def ready_backends(cluster: ClusterScene, service: Manifest) -> list[Manifest]:
    """The selected pods that are ready, have an address and listen on the target port."""
    ports = service["spec"]["ports"]
    return [
        pod
        for pod in selected_pods(cluster, service)
        if is_ready(pod)
        and pod["status"].get("podIP")
        and all(listens_on(pod, p["targetPort"]) for p in ports)
    ]


def listens_on(pod: Manifest, port: int | str) -> bool:
    """Whether a container of the pod declares this port, by number or by name."""
    return resolve_port(pod, port) in {
        p["containerPort"] for c in pod["spec"]["containers"] for p in c.get("ports", ())
    }


def resolve_port(pod: Manifest, port: int | str) -> int | None:
    """The number of a port that is given by number or name; None for a name that no container has."""
    if isinstance(port, int):
        return port
    ports = [p for c in pod["spec"]["containers"] for p in c.get("ports", ())]
    return next((int(p["containerPort"]) for p in ports if p.get("name") == port), None)


def _settle_endpoints(cluster: ClusterScene, service: Manifest) -> None:
    if not service["spec"].get("selector"):
        return
    namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
    label = "kubernetes.io/service-name"
    slices = cluster.state.of_kind("EndpointSlice", namespace)
    found = next((s for s in slices if s["metadata"]["labels"].get(label) == name), None)
    if found is None:
        ref = EntityRef("EndpointSlice", namespace, f"{name}-{cluster.suffix()}")
        created = cluster.base.timing.start - 86_400 * 9
        found = make_manifest(cluster.random, ref, created, labels={label: name}, owner=service)
        cluster.state.add(found)
    pods = [p for p in selected_pods(cluster, service) if p["status"].get("podIP")]
    port = service["spec"]["ports"][0]
    numbers = {resolve_port(pod, port["targetPort"]) for pod in pods} - {None}
    found |= {
        "addressType": "IPv4",
        "endpoints": [_make_endpoint(pod) for pod in pods] if numbers else [],
        "ports": [
            {"name": port.get("name", ""), "port": n, "protocol": "TCP"}
            for n in sorted(filter(None, numbers))
        ],
    }


def _make_endpoint(pod: Manifest) -> Manifest:
    ready = is_ready(pod)
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": ready, "terminating": False},
        "nodeName": pod["spec"].get("nodeName"),
        "targetRef": {
            "kind": "Pod",
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
        },
    }


def _settle_workload(cluster: ClusterScene, workload: Manifest) -> None:
    refused = workload.pop("refused", None)
    wanted = workload["spec"]["replicas"]
    sets = cluster.state.owned_by(workload, "ReplicaSet")
    for number, owner in enumerate(sets):
        owner["spec"]["replicas"] = (
            wanted if number == len(sets) - 1 else len(_list_running_pods(cluster, owner))
        )
        pods = _list_running_pods(cluster, owner)
        owner["status"] = _count_pods(pods) | {"fullyLabeledReplicas": len(pods)}
    pods = [p for owner in (sets or [workload]) for p in _list_running_pods(cluster, owner)]
    newest = _list_running_pods(cluster, sets[-1]) if sets else pods
    counts = _count_pods(pods)
    status = {
        **counts,
        "updatedReplicas": len(newest),
        "observedGeneration": workload["metadata"]["generation"],
    }
    if workload["kind"] == "Deployment":
        ready = counts.get("readyReplicas", 0)
        if ready < wanted:
            status["unavailableReplicas"] = wanted - ready
        status["conditions"] = _make_conditions(cluster, workload, ready >= 0.75 * wanted, refused)
    workload["status"] = status


def _list_running_pods(cluster: ClusterScene, owner: Manifest) -> list[Manifest]:
    return [p for p in cluster.state.owned_by(owner, "Pod") if p["status"].get("phase") != "Failed"]


def _count_pods(pods: list[Manifest]) -> Manifest:
    ready = sum(map(is_ready, pods))
    counts: Manifest = {"replicas": len(pods)}
    return counts | ({"readyReplicas": ready, "availableReplicas": ready} if ready else {})


def _make_conditions(
    cluster: ClusterScene, workload: Manifest, available: bool, refused: str | None
) -> list[Manifest]:
    timing = cluster.base.timing
    name = workload["metadata"]["name"]
    newest = next(reversed(cluster.state.owned_by(workload, "ReplicaSet")), None)
    revision = newest["metadata"]["name"] if newest else name
    since = format_utc(int(timing.start - 7200 if available else timing.onset + 20))
    has = "has" if available else "does not have"
    conditions = [
        {
            "type": "Available",
            "status": str(available),
            "reason": "MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable",
            "message": f"Deployment {has} minimum availability.",
            "lastTransitionTime": since,
        }
    ]
    stuck = not available and timing.end - timing.onset > workload["spec"].get("progressDeadlineSeconds", 600)
    if stuck and workload["spec"]["replicas"]:
        text = f'ReplicaSet "{revision}" has timed out progressing.'
        reason = "ProgressDeadlineExceeded"
    else:
        text, reason = f'ReplicaSet "{revision}" has successfully progressed.', "NewReplicaSetAvailable"
    progressing = {
        "type": "Progressing",
        "status": str(reason != "ProgressDeadlineExceeded"),
        "reason": reason,
    }
    conditions.append(progressing | {"message": text, "lastTransitionTime": since})
    if refused:
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused}
        conditions.append(failure | {"lastTransitionTime": since})
    return conditions


def used_quota(cluster: ClusterScene, quota: Manifest) -> Manifest:
    """What the pods of the quota's namespace use of each limited resource."""
    pods = cluster.state.of_kind("Pod", quota["metadata"]["namespace"])
    live = [p for p in pods if p["status"].get("phase") not in {"Failed", "Succeeded"}]
    asked = [c.get("resources", {}).get("requests", {}) for p in live for c in p["spec"]["containers"]]
    totals = {
        "pods": str(len(live)),
        "requests.cpu": f"{sum(read_millis(r.get('cpu', '0')) for r in asked)}m",
        "requests.memory": f"{sum(read_mebibytes(r.get('memory', '0Mi')) for r in asked):.0f}Mi",
    }
    return {name: totals[name] for name in quota["spec"]["hard"] if name in totals}


def read_millis(quantity: str) -> int:
    """A CPU quantity in thousandths."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def read_mebibytes(quantity: str) -> float:
    """A memory quantity in MiB."""
    return float(quantity[:-2]) * _MEBI[quantity[-2:]]


def workload_of(cluster: ClusterScene, pod: Manifest) -> EntityRef | None:
    """The Deployment, StatefulSet or DaemonSet behind a pod."""
    for owner in pod["metadata"].get("ownerReferences", ()):
        namespace = pod["metadata"]["namespace"]
        if owner["kind"] != "ReplicaSet":
            return EntityRef(owner["kind"], namespace, owner["name"])
        above = cluster.state.find(EntityRef("ReplicaSet", namespace, owner["name"]))
        if above:
            return EntityRef("Deployment", namespace, above["metadata"]["ownerReferences"][0]["name"])
    return None
