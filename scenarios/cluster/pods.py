"""What is wrong with a pod, in the fields and words in which the kubelet and the scheduler say it."""

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import Manifest, ref_of
from opsleuth.scenarios.fault_propagation import Shape

_BACKOFFS = ("40s", "1m20s", "2m40s", "5m0s")


def mark_unready(pod: Manifest, at: float) -> None:
    """The pod runs but serves nothing: its Ready conditions are false."""
    unready = [c["name"] for c in pod["status"].get("containerStatuses", ()) if not c["ready"]]
    for condition in pod["status"]["conditions"]:
        if condition["type"] in {"Ready", "ContainersReady"}:
            condition |= {
                "status": "False",
                "lastTransitionTime": format_utc(int(at)),
                "reason": "ContainersNotReady",
            }
            condition["message"] = f"containers with unready status: [{' '.join(unready)}]"


def fail_readiness(cluster: ClusterScene, target: Target, pods: list[Manifest], message: str) -> None:
    """The pods run, and a readiness probe fails with `message`."""
    for pod in pods:
        for status in pod["status"]["containerStatuses"]:
            status["ready"] = False
        mark_unready(pod, target.since)
        cluster.event(pod, "Unhealthy", f"Readiness probe failed: {message}", target)


def keep_waiting(
    cluster: ClusterScene,
    target: Target,
    pods: list[Manifest],
    reason: str,
    message: str,
    event: str = "Failed",
) -> None:
    """The pods are placed, and their container cannot be started for `reason`."""
    for pod in pods:
        pod["status"]["phase"] = "Pending"
        status = pod["status"]["containerStatuses"][0]
        status |= {
            "ready": False,
            "started": False,
            "state": {"waiting": {"reason": reason, "message": message}},
        }
        mark_unready(pod, target.since)
        if event:
            cluster.event(pod, event, f"Error: {message}", target)


def pull_badly(cluster: ClusterScene, target: Target, pods: list[Manifest], image: str, why: str) -> None:
    """The image cannot be pulled."""
    message = f'Back-off pulling image "{image}"'
    keep_waiting(cluster, target, pods, "ImagePullBackOff", message, event="")
    for pod in pods:
        pod["status"]["containerStatuses"][0]["image"] = image
        cluster.event(pod, "Failed", f'Failed to pull image "{image}": {why}', target)
        cluster.event(pod, "Failed", "Error: ErrImagePull", target)
        cluster.event(pod, "BackOff", message, target, kind="Normal")


def crash_pods(
    cluster: ClusterScene,
    target: Target,
    pods: list[Manifest],
    *,
    code: int = 1,
    reason: str = "Error",
    container: int = 0,
) -> None:
    """A container ends soon after each start and is backed off."""
    timing = cluster.base.timing
    if reason == "OOMKilled" and container == 0 and target.live:
        cluster.base.effects.add(target.name, "memory", 40.0, _fill_and_fall(target.since))
    for pod in pods:
        status = pod["status"]["containerStatuses"][container]
        restarts = max(3, min(200, round((timing.end - target.since) / 150)))
        ended = timing.end - cluster.random.uniform(30, 140)
        name, own = status["name"], pod["metadata"]
        text = f"back-off {cluster.random.choice(_BACKOFFS)} restarting failed container={name} pod={own['name']}_{own['namespace']}({own['uid']})"
        ending = {
            "exitCode": code,
            "reason": reason,
            "startedAt": format_utc(int(ended - 9)),
            "finishedAt": format_utc(int(ended)),
        }
        status |= {
            "ready": False,
            "started": False,
            "restartCount": restarts,
            "lastState": {"terminated": ending},
        }
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        mark_unready(pod, target.since)
        cluster.event(
            pod,
            "BackOff",
            f"Back-off restarting failed container {name} in pod {own['name']}_{own['namespace']}({own['uid']})",
            target,
        )


def _fill_and_fall(since: float) -> Shape:
    """Memory that grows from each start to the kill that follows."""
    return lambda moment: ((moment - since) % 150) / 150 if moment >= since else 0.0


def hold_init(cluster: ClusterScene, target: Target, pods: list[Manifest], *, code: int | None) -> None:
    """The first init container runs without end (`code` None) or fails with `code` again and again."""
    for pod in pods:
        pod["status"]["phase"] = "Pending"
        for status in pod["status"]["containerStatuses"]:
            status |= {"ready": False, "started": False, "state": {"waiting": {"reason": "PodInitializing"}}}
        mark_unready(pod, target.since)
        _init_condition(pod, target)
        spec = pod["spec"]["initContainers"][0]
        status = {"name": spec["name"], "image": spec["image"], "ready": False, "restartCount": 0}
        status["state"] = {"running": {"startedAt": format_utc(int(target.since + 6))}}
        if code is not None:
            ending = {
                "exitCode": code,
                "reason": "Error",
                "finishedAt": format_utc(int(cluster.base.timing.end - 60)),
            }
            text = f"back-off 2m40s restarting failed container={spec['name']} pod={pod['metadata']['name']}"
            status |= {"restartCount": 7, "lastState": {"terminated": ending}}
            status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
            cluster.event(
                pod,
                "BackOff",
                f"Back-off restarting failed container {spec['name']} in pod {pod['metadata']['name']}",
                target,
            )
        pod["status"]["initContainerStatuses"] = [status]


def _init_condition(pod: Manifest, target: Target) -> None:
    names = [c["name"] for c in pod["spec"]["initContainers"]]
    for condition in pod["status"]["conditions"]:
        if condition["type"] == "Initialized":
            condition |= {
                "status": "False",
                "reason": "ContainersNotInitialized",
                "lastTransitionTime": format_utc(int(target.since)),
            }
            condition["message"] = f"containers with incomplete status: [{' '.join(names)}]"


def leave_unscheduled(
    cluster: ClusterScene, target: Target, pods: list[Manifest], why: str, hint: str = ""
) -> None:
    """No node takes the pods; `why` is the scheduler's count of nodes and reasons."""
    count = len(cluster.state.of_kind("Node"))
    preempt = (
        hint
        or f"preemption: 0/{count} nodes are available: {count} Preemption is not helpful for scheduling."
    )
    message = f"0/{count} nodes are available: {why}. {preempt}"
    for pod in pods:
        pod["spec"].pop("nodeName", None)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        condition["lastTransitionTime"] = format_utc(int(target.since + 1))
        pod["status"] = {"phase": "Pending", "qosClass": "Burstable", "conditions": [condition]}
        cluster.event(pod, "FailedScheduling", message, target)


def fail_sandbox(cluster: ClusterScene, target: Target, pods: list[Manifest], why: str) -> None:
    """The pods are placed, and the runtime cannot give them a network."""
    keep_waiting(cluster, target, pods, "ContainerCreating", "", event="")
    for pod in pods:
        pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
        for field in ("podIP", "podIPs"):
            pod["status"].pop(field, None)
        name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"
        text = f'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "{cluster.random.getrandbits(128):032x}": plugin type="{why}'
        cluster.event(pod, "FailedCreatePodSandBox", text.replace("{pod}", name), target)


def fail_mount(
    cluster: ClusterScene, target: Target, pods: list[Manifest], reason: str, message: str
) -> None:
    """The pods are placed, and a volume of theirs cannot be had."""
    fail_start(pods, target)
    for pod in pods:
        cluster.event(pod, reason, message, target)


def fail_start(pods: list[Manifest], target: Target) -> None:
    """The pods are placed and wait for what their containers need."""
    for pod in pods:
        pod["status"]["phase"] = "Pending"
        pod["status"]["containerStatuses"][0] |= {"ready": False, "started": False}
        pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
        for field in ("podIP", "podIPs"):
            pod["status"].pop(field, None)
        mark_unready(pod, target.since)


def refuse_creation(cluster: ClusterScene, target: Target, why: str, keep: int = 0) -> None:
    """Pods were deleted and their replacements are refused at admission; `{pod}` in `why` is the pod's name."""
    workload = cluster.workload(target)
    pods = cluster.pods(target)
    for pod in pods[keep:]:
        cluster.state.remove(ref_of(pod))
    sets = cluster.state.owned_by(workload, "ReplicaSet")
    owner = sets[-1] if sets else workload
    name = f"{owner['metadata']['name']}-{cluster.suffix()}"
    cluster.event(owner, "FailedCreate", f"Error creating: {why.replace('{pod}', name)}", target)
    refused = f"{why.replace('{pod}', name)}"
    workload.setdefault("refused", refused)


def evict_pods(cluster: ClusterScene, target: Target, pods: list[Manifest], node: str, why: str) -> None:
    """The kubelet evicted the pods; their husks stay behind."""
    for pod in pods:
        pod["status"] = {
            "phase": "Failed",
            "reason": "Evicted",
            "message": why,
            "startTime": pod["status"].get("startTime"),
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "TerminationByKubelet",
                    "message": why,
                }
            ],
        }
        pod["spec"]["nodeName"] = node
        cluster.event(pod, "Evicted", why, target, repeats=False)
