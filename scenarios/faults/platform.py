"""Faults that the platform reports itself: pods that die, do not start, or are not ready."""

from collections.abc import Sequence
from random import Random

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind
from opsleuth.scenarios.faults.services import format_stack_trace
from opsleuth.scenarios.invented_names import draw_letters, invent_versions
from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import SyntheticService


def _lose_pods(scene: Scene, service: SyntheticService, fail: float) -> str:
    """Take one pod away: less capacity, refused calls; returns the pod."""
    scene.effects.add(service.name, "capacity_lost", 0.04 * scene.size, scene.lasting)
    scene.ready[service.name] = len(service.pods) - 1
    if fail:
        scene.push(service.name, "fail", fail)
        for call in scene.world.callers(service.name):
            scene.say(
                call.caller,
                "WARN",
                lambda r: _format_refused_connection(r, service.name),
                per_minute=scene.size / 4,
            )
    return scene.random.choice(service.pods)


def _format_refused_connection(random: Random, callee: str) -> str:
    address = f"10.42.{random.randrange(8)}.{random.randrange(2, 250)}:8080"
    return f"call to {callee} failed: dial tcp {address}: connect: connection refused"


def _terminated_state(scene: Scene, reason: str, code: int) -> dict[str, object]:
    return {
        "terminated": True,
        "reason": reason,
        "exit_code": code,
        "finished_at": format_utc(scene.timing.end - 90),
    }


def _make_crash_loop(scene: Scene, service: SyntheticService, pod: str, reason: str, code: int) -> str:
    """The pod is started again and again; returns the alert that goes with it."""
    restarts = max(2, round(scene.size))
    message = f"back-off 2m40s restarting failed container={service.name} pod={pod}_{scene.world.namespace}"
    scene.pod_state(
        pod,
        ready=False,
        restarts=restarts,
        state={"waiting": True, "reason": "CrashLoopBackOff", "message": message},
        last_state=_terminated_state(scene, reason, code),
    )
    scene.event("BackOff", f"Pod/{pod}", message.capitalize(), count=restarts)
    return f"KubePodCrashLooping: pod {scene.world.namespace}/{pod} has restarted {restarts} times."


def apply_crash(scene: Scene) -> FaultAnswer:
    """A process ends by itself soon after each start."""
    service = scene.app()
    pod = _lose_pods(scene, service, 0.8)
    number, code = scene.random.randrange(20, 90), scene.random.choice((1, 2, 139))
    scene.say(
        service.name,
        "FATAL",
        lambda r: f"unhandled failure in start-up, exiting\n{format_stack_trace(r, service, number)}",
        per_minute=0.6,
        pod=pod,
    )
    scene.say(service.name, "INFO", lambda _: f"starting {service.name}", per_minute=0.6, pod=pod)
    return FaultAnswer(
        service.name, also_kinds=["exception"], alert=_make_crash_loop(scene, service, pod, "Error", code)
    )


def apply_out_of_memory(scene: Scene) -> FaultAnswer:
    """A container grows to its limit, is killed, starts again."""
    service, timing = scene.app(), scene.timing

    def saw(moment: float) -> float:
        return ((moment - timing.onset) % 300) / 300 if moment >= timing.onset else 0.0

    scene.push(service.name, "memory", 2.0, saw)
    pod = _lose_pods(scene, service, 0.7)
    node = scene.random.choice(scene.world.nodes)
    process = {"jvm": "java", "go": service.name, "python": "python3", "node": "node"}[service.runtime]
    scene.pod_state(pod, node=node)
    scene.event(
        "OOMKilling",
        f"Node/{node}",
        f"Memory cgroup out of memory: Killed process {scene.random.randrange(10**5)} ({process}) "
        f"total-vm:2417340kB, anon-rss:1046120kB",
    )
    alert = _make_crash_loop(scene, service, pod, "OOMKilled", 137)
    return FaultAnswer(service.name, also_kinds=["memory"], alert=alert)


def _invent_pod_name(scene: Scene, service: SyntheticService) -> str:
    return f"{service.name}-{draw_letters(scene.random, 10)}-{draw_letters(scene.random, 5)}"


def apply_image_pull_failure(scene: Scene) -> FaultAnswer:
    """A release whose image cannot be pulled: the new pod waits, the roll-out stands still, an old pod is gone."""
    service = scene.app()
    _lose_pods(scene, service, 0)
    scene.push(service.name, "self_ms", 0.6)
    before, after = invent_versions(scene.random)
    image = f"registry.example/{scene.world.namespace}/{service.name}:{after}"
    scene.change(
        scene.timing.onset, service.name, "deploy", f"{service.name} {after} (from {before})", version=after
    )
    pod, reason = (
        _invent_pod_name(scene, service),
        scene.random.choice(("not found", "unauthorized: authentication required")),
    )
    waiting = {"waiting": True, "reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
    scene.pod_state(
        pod, owner=service.name, ready=False, phase="Pending", started=scene.timing.onset, state=waiting
    )
    scene.event("Failed", f"Pod/{pod}", f'Failed to pull image "{image}": {reason}')
    scene.event("BackOff", f"Pod/{pod}", f'Back-off pulling image "{image}"')
    alert = (
        f"KubeDeploymentRolloutStuck: roll-out of {scene.world.namespace}/{service.name} makes no progress."
    )
    return FaultAnswer(service.name, also_kinds=["deploy", "config"], alert=alert)


def apply_scheduling_failure(scene: Scene) -> FaultAnswer:
    """A pod finds no node to run on."""
    service = scene.app()
    _lose_pods(scene, service, 0)
    scene.push(service.name, "self_ms", 0.6)
    pod, count = _invent_pod_name(scene, service), len(scene.world.nodes)
    why = scene.random.choice(
        (
            f"{count} Insufficient cpu",
            f"{count} Insufficient memory",
            f"{count} node(s) had untolerated taint {{dedicated: batch}}",
        )
    )
    message = f"0/{count} nodes are available: {why}. preemption: 0/{count} nodes are available."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    scene.pod_state(
        pod,
        owner=service.name,
        ready=False,
        phase="Pending",
        node=None,
        started=scene.timing.onset,
        state={"waiting": True, "reason": "", "message": ""},
        condition=condition,
    )
    scene.event("FailedScheduling", f"Pod/{pod}", message)
    alert = f"KubePodNotReady: pod {scene.world.namespace}/{pod} has not been ready for 5 minutes."
    return FaultAnswer(service.name, alert=alert)


def apply_failing_probe(scene: Scene) -> FaultAnswer:
    """A probe that a working container does not pass: it is restarted though it does nothing wrong."""
    service = scene.app()
    pod = _lose_pods(scene, service, 0.6)
    scene.pod_state(
        pod,
        ready=False,
        restarts=max(1, round(scene.size / 2)),
        last_state=_terminated_state(scene, "Completed", 143),
    )
    url = f"http://10.42.3.{scene.random.randrange(2, 250)}:8080/healthz"
    scene.event("Unhealthy", f"Pod/{pod}", f'Liveness probe failed: Get "{url}": context deadline exceeded')
    scene.event(
        "Killing",
        f"Pod/{pod}",
        f"Container {service.name} failed liveness probe, will be restarted",
        type="Normal",
    )
    scene.say(
        service.name, "INFO", lambda _: "received SIGTERM, shutting down", per_minute=scene.size / 10, pod=pod
    )
    if scene.chance(0.5):
        diff = "   livenessProbe:\n-    timeoutSeconds: 5\n+    timeoutSeconds: 1\n"
        scene.change(
            scene.timing.onset - 90,
            service.name,
            "config",
            f"{service.name}: probe settings unified",
            diff=diff,
        )
    alert = f"KubePodNotReady: pod {scene.world.namespace}/{pod} fails its liveness probe."
    return FaultAnswer(service.name, also_kinds=["config"], alert=alert)


def apply_exceeded_quota(scene: Scene) -> FaultAnswer:
    """A quota of the namespace keeps replacement pods from being made."""
    service = scene.app()
    _lose_pods(scene, service, 0)
    scene.push(service.name, "self_ms", 0.7)
    replica_set = f"{service.name}-{draw_letters(scene.random, 10)}"
    what = scene.random.choice(
        (
            "cpu=500m, used: requests.cpu=7800m, limited: requests.cpu=8",
            "memory=1Gi, used: requests.memory=31Gi, limited: requests.memory=32Gi",
        )
    )
    pod = f"{replica_set}-{draw_letters(scene.random, 5)}"
    message = (
        f'Error creating: pods "{pod}" is forbidden: exceeded quota: compute, requested: requests.{what}'
    )
    scene.event("FailedCreate", f"ReplicaSet/{replica_set}", message)
    status = {"hard": what.split("limited: ")[1], "used": what.split("used: ")[1].split(",")[0]}
    scene.object("ResourceQuota", "compute", status, namespace=scene.world.namespace)
    alert = f"KubeDeploymentReplicasMismatch: {scene.world.namespace}/{service.name} lacks replicas."
    return FaultAnswer(service.name, also_kinds=["scheduling"], alert=alert)


FAULTS: Sequence[FaultKind] = (
    FaultKind("crash", apply_crash, shows=["platform"]),
    FaultKind("out_of_memory", apply_out_of_memory, shows=["platform"]),
    FaultKind("image_pull", apply_image_pull_failure, shows=["platform"]),
    FaultKind("scheduling", apply_scheduling_failure, shows=["platform"]),
    FaultKind("probe", apply_failing_probe, shows=["platform"]),
    FaultKind("quota", apply_exceeded_quota, shows=["platform"]),
)
