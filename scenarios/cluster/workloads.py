"""Deployments, StatefulSets, DaemonSets and Jobs with their revisions and pods, as controllers write them."""

from dataclasses import dataclass, field
from random import Random

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest, ref_of

CPU_REQUEST_MILLIS = 200


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """What a workload runs. `selector` are the labels by which its Service finds the pods."""

    name: str
    namespace: str
    kind: str
    image: str
    port: int
    replicas: int
    selector: dict[str, str]
    created: float
    environment: list[Manifest] = field(default_factory=list)
    config_map: str | None = None
    claim: str | None = None
    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def make_pod_spec(plan: WorkloadPlan) -> Manifest:
    """The pod's specification in the template."""
    probe = {"tcpSocket": {"port": "main"}} if plan.kind == "StatefulSet" else _http_probe()
    container: Manifest = {
        "name": plan.name,
        "image": plan.image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "main", "containerPort": plan.port, "protocol": "TCP"}],
        "env": [*plan.environment],
        "resources": {
            "requests": {"cpu": f"{CPU_REQUEST_MILLIS}m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "readinessProbe": dict(probe, periodSeconds=10, timeoutSeconds=2, failureThreshold=3),
        "livenessProbe": dict(probe, periodSeconds=20, timeoutSeconds=5, failureThreshold=3),
    }
    spec: Manifest = {
        "serviceAccountName": plan.name,
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": [],
    }
    if plan.config_map:
        spec["volumes"].append({"name": "settings", "configMap": {"name": plan.config_map}})
        container.setdefault("volumeMounts", []).append({"name": "settings", "mountPath": "/etc/app"})
    if plan.claim:
        spec["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": plan.claim}})
        container.setdefault("volumeMounts", []).append({"name": "data", "mountPath": "/var/lib/data"})
    return spec


def _http_probe() -> Manifest:
    return {"httpGet": {"path": "/healthz", "port": "main", "scheme": "HTTP"}}


def add_workload(cluster: ClusterScene, plan: WorkloadPlan) -> Manifest:
    """Add the workload, its ServiceAccount, its revision and its running pods."""
    random, state = cluster.random, cluster.state
    template = {"metadata": {"labels": dict(plan.selector)}, "spec": make_pod_spec(plan)}
    spec: Manifest = {
        "replicas": plan.replicas,
        "selector": {"matchLabels": dict(plan.selector)},
        "template": template,
    }
    if plan.kind == "StatefulSet":
        spec |= {"serviceName": plan.name, "podManagementPolicy": "OrderedReady"}
    else:
        spec |= {
            "strategy": _make_rolling_update("25%"),
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }
    ref = EntityRef(plan.kind, plan.namespace, plan.name)
    workload = state.add(make_manifest(random, ref, plan.created, labels=plan.selector, spec=spec, status={}))
    account = EntityRef("ServiceAccount", plan.namespace, plan.name)
    if account not in state:
        state.add(make_manifest(random, account, plan.created, labels=plan.selector))
    owner, names = workload, plan.pods
    if plan.kind == "Deployment":
        owner = add_replica_set(cluster, workload, plan.created, names)
        names = names or tuple(
            f"{owner['metadata']['name']}-{cluster.suffix()}" for _ in range(plan.replicas)
        )
    else:
        names = names or tuple(f"{plan.name}-{i}" for i in range(plan.replicas))
    for i, name in enumerate(names):
        nodes = plan.nodes or tuple(cluster.nodes)
        add_pod(cluster, owner, name, nodes[i % len(nodes)], plan.created + random.uniform(5, 40))
    return workload


def _make_rolling_update(unavailable: str) -> Manifest:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": "25%"}}


def add_replica_set(
    cluster: ClusterScene, workload: Manifest, created: float, pods: tuple[str, ...] = ()
) -> Manifest:
    """A revision of a Deployment; its name follows from that of its pods where they are given."""
    name = workload["metadata"]["name"]
    digest = pods[0].removeprefix(f"{name}-").split("-")[0] if pods else cluster.suffix(10)
    template = workload["spec"]["template"]
    labels = template["metadata"]["labels"] | {"pod-template-hash": digest}
    spec = {
        "replicas": workload["spec"]["replicas"],
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": copy_manifest(template["spec"])},
    }
    ref = EntityRef("ReplicaSet", workload["metadata"]["namespace"], f"{name}-{digest}")
    manifest = make_manifest(
        cluster.random, ref, created, labels=labels, owner=workload, spec=spec, status={}
    )
    revision = 1 + len(cluster.state.owned_by(workload, "ReplicaSet"))
    for annotated in (manifest, workload):
        annotations = annotated["metadata"].setdefault("annotations", {})
        annotations["deployment.kubernetes.io/revision"] = str(revision)
    return cluster.state.add(manifest)


def add_pod(cluster: ClusterScene, owner: Manifest, name: str, node: str, started: float) -> Manifest:
    """A pod of this owner that runs and is ready."""
    template = owner["spec"]["template"]
    labels = dict(template["metadata"]["labels"])
    if owner["kind"] == "StatefulSet":
        labels["statefulset.kubernetes.io/pod-name"] = name
    spec = {**copy_manifest(template["spec"]), "nodeName": node}
    address = cluster.next_address()
    containers = [running_container(cluster.random, c, started) for c in spec["containers"]]
    status = {
        "phase": "Running",
        "startTime": format_utc(int(started)),
        "hostIP": f"10.0.{sum(map(ord, node)) % 200}.{len(node) + 4}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "conditions": [_make_condition(kind, started) for kind in _POD_CONDITIONS],
        "containerStatuses": containers,
    }
    ref = EntityRef("Pod", owner["metadata"]["namespace"], name)
    return cluster.state.add(
        make_manifest(cluster.random, ref, started - 3, labels=labels, owner=owner, spec=spec, status=status)
    )


_POD_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def _make_condition(kind: str, at: float, status: str = "True") -> Manifest:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": format_utc(int(at))}


def running_container(random: Random, container: Manifest, started: float) -> Manifest:
    """The status of a container that runs."""
    digest = f"{random.getrandbits(256):064x}"
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"{container['image'].split(':')[0]}@sha256:{digest}",
        "containerID": f"containerd://{digest[::-1]}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": format_utc(int(started))}},
        "lastState": {},
    }


def copy_manifest(value: Manifest) -> Manifest:
    """A deep copy of plain JSON."""
    if isinstance(value, dict):
        return {k: copy_manifest(v) for k, v in value.items()}
    return [copy_manifest(v) for v in value] if isinstance(value, list) else value


def replace_pods(cluster: ClusterScene, target: Target, *, partial: bool = False) -> list[Manifest]:
    """Roll the changed template out and return the new pods, which run and are ready until a fault says otherwise.

    `partial` keeps half of the old pods, as a roll-out that is stuck does.
    """
    workload, random = cluster.workload(target), cluster.random
    old, replicas = cluster.pods(target), workload["spec"]["replicas"]
    if workload["kind"] == "StatefulSet":
        names, owner = [p["metadata"]["name"] for p in old], workload
    else:
        workload["spec"]["strategy"] = _make_rolling_update("50%") if partial else {"type": "Recreate"}
        owner = add_replica_set(cluster, workload, target.since)
        names = [f"{owner['metadata']['name']}-{cluster.suffix()}" for _ in range(replicas)]
    leaving = old[: max(1, replicas // 2)] if partial else old
    for pod in leaving:
        cluster.state.remove(ref_of(pod))
    fresh = []
    for i, (gone, name) in enumerate(zip(leaving, names, strict=False)):
        node = gone["spec"].get("nodeName") or cluster.nodes[i % len(cluster.nodes)]
        fresh.append(add_pod(cluster, owner, name, node, target.since + random.uniform(4, 20)))
        if gone["metadata"]["name"] != name:
            cluster.renamed[gone["metadata"]["name"]] = (target.since, name)
    return fresh


def roll_out(cluster: ClusterScene, target: Target, summary: str, diff: str | None = None) -> list[Manifest]:
    """Someone changes the template; returns the new pods. One roll-out in four is stuck half-way."""
    cluster.edit(cluster.workload(target), target, f"{target.name}: {summary}", diff)
    return replace_pods(cluster, target, partial=cluster.random.random() < 0.25)


def drop_pods(cluster: ClusterScene, target: Target, keep: int = 0) -> None:
    """Delete all but `keep` pods of a target."""
    for pod in cluster.pods(target)[keep:]:
        cluster.state.remove(ref_of(pod))
