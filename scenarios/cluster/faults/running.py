"""Pods that run and do not do their work: limits, flags, rehearsed chaos."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import crash_pods
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest, record_edit
from opsleuth.scenarios.cluster.traffic import cut_calls_to, fail_requests, slow_down
from opsleuth.scenarios.cluster.workloads import replace_pods

Entities = Sequence[EntityRef]


def limit_memory(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A memory limit that the application fits in, or not."""
    limit = "64Mi" if wrong else "2Gi"
    cluster.container(target)["resources"] = {
        "requests": {"cpu": "200m", "memory": limit if wrong else "256Mi"},
        "limits": {"cpu": "1", "memory": limit},
    }
    cluster.edit(
        cluster.workload(target), target, f"{target.name}: memory limit {limit}", f"+    memory: {limit}"
    )
    pods = replace_pods(cluster, target)
    if wrong:
        crash_pods(cluster, target, pods, code=137, reason="OOMKilled")
    return [cluster.workload_ref(target)]


def limit_cpu(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A CPU limit that the load fits in, or not."""
    limit = "60m" if wrong else "1500m"
    cluster.container(target)["resources"] |= {
        "limits": {"cpu": limit, "memory": "1Gi"},
        "requests": {"cpu": min(limit, "200m", key=lambda q: int(q[:-1])), "memory": "256Mi"},
    }
    cluster.edit(cluster.workload(target), target, f"{target.name}: CPU limit {limit}", f"+    cpu: {limit}")
    replace_pods(cluster, target)
    if wrong:
        slow_down(cluster, target, 6.0, cpu=55)
        fail_requests(
            cluster,
            target,
            0.08,
            lambda r: f"request exceeded its deadline after {r.randrange(1900, 2100)} ms",
            "WARN",
        )
    return [cluster.workload_ref(target)]


def turn_flag(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A flag of a new path in the code: on for testers, or for all although the path fails."""
    ref = cluster.ref("ConfigMap", target, "flags")
    flag = f"{target.name.split('-')[0]}-{cluster.choose('new-pricing', 'async-write', 'strict-parse')}"
    variant = "on" if wrong else "testers"
    text = f'{{"flags": {{"{flag}": {{"state": "ENABLED", "variants": {{"on": true, "off": false}}, "defaultVariant": "{variant}"}}}}}}'
    settings = cluster.state.find(ref) or cluster.state.add(
        make_manifest(cluster.random, ref, target.since - 86_400, data={})
    )
    settings["data"]["flags.json"] = text
    record_edit(settings, target.since, "kubectl-edit")
    cluster.record_change(target, f"flag {flag}: off to {variant}", kind="flag")
    if wrong:
        fail_requests(
            cluster,
            target,
            0.5,
            lambda r: f"{flag}: cannot handle request {r.randrange(10**6)}: invalid state in new code path",
        )
    return [ref]


def exhaust_files(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The limit of open files is ample, or used up."""
    limit = 64 if wrong else 65536
    cluster.container(target)["env"].append({"name": "NOFILE_LIMIT", "value": str(limit)})
    cluster.edit(cluster.workload(target), target, f"{target.name}: limit of open files {limit}")
    replace_pods(cluster, target)
    if wrong:
        fail_requests(
            cluster,
            target,
            0.6,
            lambda r: (
                f"accept tcp [::]:{cluster.ports[target.name]}: accept4: too many open files; retrying in {r.choice((5, 10, 40))}ms"
            ),
        )
    return [cluster.workload_ref(target)]


def _add_chaos(cluster: ClusterScene, target: Target, kind: str, spec: Manifest, wrong: bool) -> EntityRef:
    """A rehearsal on the target's pods; one that is right is over or paused."""
    name = f"{target.name}-{cluster.suffix(4)}"
    selector = {"namespaces": [target.namespace], "labelSelectors": {cluster.label: target.name}}
    phase = "Run" if wrong else "Stop"
    conditions = [
        {"type": "Selected", "status": "True"},
        {"type": "AllInjected", "status": str(wrong)},
        {"type": "AllRecovered", "status": str(not wrong)},
    ]
    ref = cluster.ref(kind, target, name)
    body = {
        "spec": {"selector": selector, "mode": "all", **spec},
        "status": {"experiment": {"desiredPhase": phase}, "conditions": conditions},
    }
    made = cluster.state.add(make_manifest(cluster.random, ref, target.since, **body))
    if wrong:
        cluster.event(
            made,
            "Applied",
            f"Successfully apply chaos for {target.namespace}/{target.name}",
            target,
            kind="Normal",
            repeats=False,
        )
    return ref


def delay_network(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A rehearsal delays the target's packets, or did some time ago."""
    ref = _add_chaos(
        cluster,
        target,
        "NetworkChaos",
        {"action": "delay", "delay": {"latency": "800ms", "jitter": "50ms"}},
        wrong,
    )
    if wrong and target.live:
        for call in cluster.base.world.callers(target.name):
            cluster.base.effects.add(
                f"{call.caller}>{call.callee}", "gap_ms", 800, lambda t: float(t >= target.since)
            )
    return [ref]


def lose_packets(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A rehearsal drops the target's packets, or did some time ago."""
    ref = _add_chaos(
        cluster,
        target,
        "NetworkChaos",
        {"action": "loss", "loss": {"loss": "60", "correlation": "25"}},
        wrong,
    )
    if wrong:
        cut_calls_to(cluster, target, "timeout", share=0.5)
    return [ref]


def stress_cpu(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A rehearsal burns the target's CPU, or did some time ago."""
    ref = _add_chaos(
        cluster, target, "StressChaos", {"stressors": {"cpu": {"workers": 4, "load": 100}}}, wrong
    )
    if wrong:
        slow_down(cluster, target, 5.0, cpu=60)
    return [ref]


def kill_pods(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A rehearsal kills the target's pods all the time, or did once."""
    ref = _add_chaos(cluster, target, "PodChaos", {"action": "pod-failure", "duration": "3600s"}, wrong)
    if wrong:
        crash_pods(cluster, target, cluster.pods(target), code=1)
        for pod in cluster.pods(target):
            pod["spec"]["containers"][0]["image"] = "gcr.io/google-containers/pause:latest"
            pod["status"]["containerStatuses"][0]["image"] = "gcr.io/google-containers/pause:latest"
    return [ref, cluster.workload_ref(target)]


_LIMIT = ("config", "deploy", "quota")
FAULTS = (
    ClusterFault("memory_limit", "app", "out_of_memory", limit_memory, "SREGym resource_request_too_small; ITBench insufficient container resources", ("memory", "crash", *_LIMIT)),
    ClusterFault("cpu_limit", "app", "cpu", limit_cpu, "SREGym cpu_throttling", ("latency", *_LIMIT)),
    ClusterFault("feature_flag", "app", "errors", turn_flag, "OpenTelemetry demo flags; ITBench opentelemetry-demo-feature-flag; SREGym feature_flag_latent_bug", ("config", "exception", "deploy")),
    ClusterFault("open_files", "app", "quota", exhaust_files, "SREGym file_descriptor_exhaustion", ("connections", "errors", "config", "deploy")),
    ClusterFault("chaos_delay", "app", "network_delay", delay_network, "chaos-mesh NetworkChaos delay; AIOpsLab network_delay", ("latency", "config", "network_loss")),
    ClusterFault("chaos_loss", "app", "network_loss", lose_packets, "chaos-mesh NetworkChaos loss; AIOpsLab network_loss", ("config", "dependency", "network_delay")),
    ClusterFault("chaos_stress", "app", "cpu", stress_cpu, "chaos-mesh StressChaos", ("latency", "config")),
    ClusterFault("chaos_pod_failure", "app", "crash", kill_pods, "chaos-mesh PodChaos; AIOpsLab pod_failure, pod_kill, container_kill", ("config", "image_pull", "other")),
)  # fmt: skip
