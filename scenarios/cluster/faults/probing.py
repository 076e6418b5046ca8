"""Pods that start and are not ready: probes, init containers, sidecars, roll-outs of all at once."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import crash_pods, fail_readiness, hold_init, mark_unready
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest
from opsleuth.scenarios.cluster.workloads import replace_pods, roll_out

Entities = Sequence[EntityRef]


def probe_readiness(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A readiness probe of a path that the application serves, or does not."""
    path = cluster.choose("/ready", "/health/ready", "/readyz") if wrong else "/healthz"
    probe = {
        "httpGet": {"path": path, "port": "main", "scheme": "HTTP"},
        "periodSeconds": 10,
        "timeoutSeconds": 2,
    }
    cluster.container(target)["readinessProbe"] = probe
    pods = roll_out(cluster, target, "readiness probe in line with the guideline")
    if wrong:
        fail_readiness(cluster, target, pods, "HTTP probe failed with statuscode: 404")
    return [cluster.workload_ref(target)]


def probe_liveness(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A liveness probe of a port that is open, or not."""
    port = 9999 if wrong else "main"
    cluster.container(target)["livenessProbe"] = {
        "tcpSocket": {"port": port},
        "periodSeconds": 10,
        "failureThreshold": 2,
    }
    pods = roll_out(cluster, target, "liveness probe by TCP")
    if wrong:
        crash_pods(cluster, target, pods, code=143, reason="Completed")
        for pod in pods:
            cluster.event(
                pod,
                "Unhealthy",
                f"Liveness probe failed: dial tcp {pod['status']['podIP']}:9999: connect: connection refused",
                target,
            )
            cluster.event(
                pod,
                "Killing",
                f"Container {target.name} failed liveness probe, will be restarted",
                target,
                kind="Normal",
            )
    return [cluster.workload_ref(target)]


def hurry_liveness(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A liveness probe that gives the application a moment at start, or none."""
    delay, failures = (0, 1) if wrong else (15, 3)
    probe = {
        "httpGet": {"path": "/healthz", "port": "main"},
        "initialDelaySeconds": delay,
        "periodSeconds": 2,
        "timeoutSeconds": 1,
        "failureThreshold": failures,
    }
    cluster.container(target)["livenessProbe"] = probe
    pods = roll_out(cluster, target, "liveness probe reacts sooner")
    if wrong:
        crash_pods(cluster, target, pods, code=137, reason="Error")
        for pod in pods:
            cluster.event(
                pod,
                "Unhealthy",
                f'Liveness probe failed: Get "http://{pod["status"]["podIP"]}:{cluster.ports[target.name]}/healthz": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
                target,
            )
        cluster.log(target, "INFO", lambda _: "received SIGTERM during start-up, shutting down", 0.8)
    return [cluster.workload_ref(target)]


def _add_init(cluster: ClusterScene, target: Target, name: str, command: list[str]) -> list[Manifest]:
    container = {"name": name, "image": "docker.io/library/busybox:1.36", "command": command}
    cluster.pod_spec(target).setdefault("initContainers", []).append(container)
    return roll_out(cluster, target, f"init container {name}")


def wait_in_init(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """An init container waits for a host that resolves, or for one that does not."""
    host = f"{target.name}-migrations" if wrong else target.name
    pods = _add_init(cluster, target, "wait-for", ["sh", "-c", f"until nslookup {host}; do sleep 2; done"])
    if wrong:
        hold_init(cluster, target, pods, code=None)
        cluster.log(
            target,
            "",
            lambda _: f"** server can't find {host}.{target.namespace}.svc.cluster.local: NXDOMAIN",
            3.0,
        )
    return [cluster.workload_ref(target)]


def fail_in_init(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """An init container whose step succeeds, or fails."""
    pods = _add_init(
        cluster, target, "prepare", ["sh", "-c", "exec /scripts/prepare.sh" if wrong else "true"]
    )
    if wrong:
        hold_init(cluster, target, pods, code=127)
        cluster.log(target, "", lambda _: "sh: exec: line 0: /scripts/prepare.sh: not found", 0.8)
    return [cluster.workload_ref(target)]


def share_port(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A sidecar on a port of its own, or on the application's."""
    port = cluster.ports[target.name] if wrong else 9464
    sidecar = {
        "name": "metrics-proxy",
        "image": "registry.example/metrics-proxy:0.9.4",
        "ports": [{"name": "metrics", "containerPort": port}],
        "args": [f"--listen=:{port}"],
    }
    cluster.pod_spec(target)["containers"].append(sidecar)
    pods = roll_out(cluster, target, "metrics sidecar")
    if wrong:
        crash_pods(cluster, target, pods, container=0)
        cluster.log(target, "FATAL", lambda _: f"listen tcp :{port}: bind: address already in use", 1.0)
    return [cluster.workload_ref(target)]


def roll_all_at_once(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A roll-out one by one, or of all pods together, to a version that needs minutes to start."""
    workload = cluster.workload(target)
    name = cluster.container(target)["image"].rsplit(":", 1)[0]
    cluster.container(target)["image"] = f"{name}:{cluster.random.randrange(3, 9)}.4.0"
    cluster.edit(workload, target, f"{target.name}: new version")
    pods = replace_pods(cluster, target)
    most = "100%" if wrong else "25%"
    workload["spec"]["strategy"] = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": most, "maxSurge": "0%" if wrong else "25%"},
    }
    if wrong:
        fail_readiness(cluster, target, pods, "HTTP probe failed with statuscode: 503")
        cluster.log(target, "INFO", lambda r: f"warming up: {r.randrange(3, 40)} % of the index loaded", 3.0)
    return [cluster.workload_ref(target)]


def kill_sidecar(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A log sidecar with memory enough, or not; without it the pod is not ready."""
    limit = "16Mi" if wrong else "128Mi"
    sidecar = {
        "name": "log-shipper",
        "image": "registry.example/log-shipper:2.2.0",
        "resources": {"limits": {"memory": limit}, "requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    cluster.pod_spec(target)["containers"].append(sidecar)
    pods = roll_out(cluster, target, "log sidecar")
    if wrong:
        crash_pods(cluster, target, pods, code=137, reason="OOMKilled", container=1)
        for pod in pods:
            mark_unready(pod, target.since)
    return [cluster.workload_ref(target)]


_RELEASE = ("deploy", "config", "crash")
FAULTS = (
    ClusterFault("probe_readiness", "app", "probe", probe_readiness, "ITBench misconfigured readiness probe; SREGym readiness_probe_misconfiguration", ("config", "deploy")),
    ClusterFault("probe_liveness", "app", "probe", probe_liveness, "SREGym liveness_probe_misconfiguration", _RELEASE),
    ClusterFault("probe_hasty", "app", "probe", hurry_liveness, "SREGym liveness_probe_too_aggressive", _RELEASE),
    ClusterFault("init_waits", "app", "config", wait_in_init, "ITBench hanging init container; SREGym init_container_dependency_hang", ("deploy", "dependency", "dns", "crash")),
    ClusterFault("init_fails", "app", "crash", fail_in_init, "ITBench crashing-kubernetes-workload-init-container", _RELEASE),
    ClusterFault("sidecar_port", "app", "config", share_port, "SREGym sidecar_port_conflict", _RELEASE),
    ClusterFault("rollout_at_once", "app", "deploy", roll_all_at_once, "SREGym rolling_update_misconfigured", ("config", "probe")),
    ClusterFault("sidecar_memory", "app", "out_of_memory", kill_sidecar, "Kubernetes documents: sidecar containers", ("memory", "config", "deploy", "crash")),
)  # fmt: skip
