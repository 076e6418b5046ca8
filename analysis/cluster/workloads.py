"""Workloads whose desired state or rollout leaves no pod to serve requests."""

import re
from collections.abc import Iterator

from opsleuth.analysis import message_meaning
from opsleuth.analysis.cluster.alert_words import is_service_named
from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.model import (
    Cluster,
    container_states,
    desired_replicas,
    is_ready,
    ready_replicas,
    template_of,
)
from opsleuth.analysis.cluster.objects import (
    ClusterObject,
    Document,
    get_part,
    number_of,
    parse_moment,
    rows_of,
)
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE
from opsleuth.state.plurals import format_count

_SCALED = ("Deployment", "StatefulSet", "Rollout", "ReplicationController")
# Init containers work for seconds to a few minutes.
_LONG_INIT_SECONDS = 300.0
_OVER_QUOTA = re.compile(
    r"exceeded quota|(?:maximum|minimum) \S+ usage per (?:container|pod) is", re.IGNORECASE
)
_FROM_COUNT = re.compile(r"\bfrom (\d+)")
_DOWN_REASONS = frozenset({"SuccessfulDelete", "ScalingReplicaSet", "Killing"})


def find_unmet_workloads(view: ClusterView) -> Iterator[Deviation]:
    """Workloads that are asked to have no pods, cannot make them, or replace them all at once."""
    for workload in view.cluster.of_kind(*_SCALED):
        if desired_replicas(workload) == 0:
            yield from _report_scaled_to_zero(workload, view)
            continue
        yield from _all_at_once(workload, view.cluster)
        yield from _stuck_init(workload, view.cluster)
        yield from _cannot_create(workload)
        yield from _not_observed(workload)
        yield from _port_conflict(workload, view.cluster)
    for workload in view.cluster.derived_workloads():
        yield from _stuck_init(workload, view.cluster)
    for rollout in view.cluster.of_kind("Rollout"):
        yield from _argo_rollout(rollout)


def _report_scaled_to_zero(workload: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    down = [
        event
        for event in view.events
        if event.reason in _DOWN_REASONS
        and (event.object.endswith(f"/{workload.ref.name}") and " to 0" in event.message)
    ]
    times = [event.time for event in down] + list(_list_scale_times(workload))
    missed = any(edge.callee == workload.ref.name for edge in view.topology) or is_service_named(
        workload.ref.name, view.alert
    )
    before = next((found[1] for event in down if (found := _FROM_COUNT.search(event.message))), "1")
    yield Deviation(
        entity=workload.ref,
        kind="scheduling",
        weight=NAMES_CAUSE,
        text=f"{workload.ref} is scaled to 0 replicas: no pod of it runs",
        service=workload.ref.name,
        since=max(times, default=None),
        latent=not (times and missed),
        show=format_kubectl("get", workload.ref, "-o wide"),
        undo=format_kubectl("scale", workload.ref, f"--replicas={before}"),
        figures={"replicas": 0, "chosen": True},
    )


def _list_scale_times(workload: ClusterObject) -> Iterator[float]:
    """When the number of pods was last set besides the object itself, by its managers."""
    for row in rows_of(workload.metadata, "managedFields"):
        if row.get("subresource") == "scale" and (time := parse_moment(row.get("time"))) is not None:
            yield time


def _all_at_once(workload: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    """A rollout that may take all pods down, and did."""
    strategy = get_part(workload.spec, "strategy")
    rolling = get_part(strategy, "rollingUpdate")
    most = str(rolling.get("maxUnavailable", ""))
    desired, ready = desired_replicas(workload), ready_replicas(workload)
    whole = most == "100%" or (most.isdigit() and desired and int(most) >= desired)
    if not whole or ready != 0 or not desired:
        return
    since = [pod.created for pod in cluster.pods_of(workload) if pod.created is not None]
    yield Deviation(
        entity=workload.ref,
        kind="deploy",
        weight=NAMES_CAUSE,
        text=(
            f"{workload.ref} may replace all its pods at once (maxUnavailable {most}), and 0 of {desired} are ready "
            f"in the newest revision"
        ),
        service=workload.ref.name,
        since=min(since, default=None),
        show=format_kubectl("rollout status", workload.ref),
        undo=format_kubectl("rollout undo", workload.ref),
        figures={"ready": 0, "desired": desired},
    )


def _stuck_init(workload: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    """Init containers that neither end nor fail hold every pod back."""
    pods = cluster.pods_of(workload)
    stuck = [(pod, name) for pod in pods if (name := _long_init(pod))]
    if not stuck or any(is_ready(pod) for pod in pods):
        return
    pod, name = stuck[0]
    yield Deviation(
        entity=workload.ref,
        kind="deploy",
        weight=NAMES_CAUSE,
        text=f"init container {name} of {workload.ref} does not end: {format_count(len(stuck), 'pod')} never became ready",
        service=workload.ref.name,
        since=pod.created,
        show=format_kubectl("logs", pod.ref, f"-c {name}").replace("logs pod ", "logs "),
        undo=format_kubectl("rollout undo", workload.ref),
        figures={"pods": len(stuck)},
    )


def _long_init(pod: ClusterObject) -> str | None:
    for row in rows_of(pod.status, "initContainerStatuses"):
        started = parse_moment(get_part(row, "state", "running").get("startedAt"))
        sidecar = any(
            c.get("name") == row.get("name") and c.get("restartPolicy") == "Always"
            for c in rows_of(pod.spec, "initContainers")
        )
        if started is not None and pod.read_at is not None and not sidecar:
            return str(row.get("name")) if pod.read_at - started > _LONG_INIT_SECONDS else None
    return None


def _cannot_create(workload: ClusterObject) -> Iterator[Deviation]:
    failure = workload.condition("ReplicaFailure")
    if failure.get("status") != "True":
        return
    message = str(failure.get("message", ""))
    meaning = message_meaning.read_message_meaning(message)
    quota = _OVER_QUOTA.search(message) is not None
    yield Deviation(
        entity=workload.ref,
        kind="quota" if quota else meaning.kind if meaning else "config",
        weight=NAMES_CAUSE,
        text=f"{workload.ref} cannot create pods ({failure.get('reason', 'ReplicaFailure')}): {message[:300]}",
        service=workload.ref.name,
        since=parse_moment(failure.get("lastTransitionTime")),
        show=format_describe_command(workload.ref),
    )


def _not_observed(workload: ClusterObject) -> Iterator[Deviation]:
    """The controller has not looked at the newest spec: it does not run, or it is stuck."""
    wanted = number_of(workload.metadata.get("generation"))
    seen = number_of(workload.status.get("observedGeneration"))
    if wanted is None or seen is None or seen >= wanted:
        return
    yield Deviation(
        entity=workload.ref,
        kind="other",
        weight=ACTS,
        text=f"the controller of {workload.ref} acted on generation {seen}, the newest is {wanted}",
        service=workload.ref.name,
        latent=True,
        show=show_yaml(workload.ref),
        figures={"observed": seen, "generation": wanted},
    )


def _port_conflict(workload: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    """Two containers of a pod share its network: only one of them gets a port that both listen on."""
    taken: dict[int, str] = {}
    template: Document = template_of(workload) or next((p.spec for p in cluster.pods_of(workload)), {})
    for container in rows_of(template, "containers"):
        for row in rows_of(container, "ports"):
            port, name = number_of(row.get("containerPort")), str(container.get("name"))
            if port is None or row.get("protocol", "TCP") != "TCP":
                continue
            other = taken.setdefault(port, name)
            if other != name and not all(is_ready(pod) for pod in cluster.pods_of(workload)):
                yield Deviation(
                    entity=workload.ref,
                    kind="config",
                    weight=NAMES_CAUSE,
                    text=f"containers {other} and {name} of {workload.ref} both listen on port {port} of one pod",
                    service=workload.ref.name,
                    show=show_yaml(workload.ref),
                    undo=format_kubectl("rollout undo", workload.ref),
                    figures={"port": port},
                )


def _argo_rollout(rollout: ClusterObject) -> Iterator[Deviation]:
    phase, message = str(rollout.status.get("phase", "")), str(rollout.status.get("message", ""))
    if phase not in {"Degraded", "Paused"} or (phase == "Paused" and not rollout.status.get("abort")):
        return
    meaning = message_meaning.read_message_meaning(message)
    yield Deviation(
        entity=rollout.ref,
        kind=meaning.kind if meaning else "deploy",
        weight=NAMES_CAUSE,
        text=f"{rollout.ref} is {phase}: {message[:300] or 'no message'}",
        service=rollout.ref.name,
        show=format_describe_command(rollout.ref),
        undo=f"kubectl argo rollouts -n {rollout.ref.namespace} undo {rollout.ref.name}",
    )


def find_failed_pods(view: ClusterView) -> Iterator[Deviation]:
    """Pods that the platform ended (evicted, preempted, out of what the node has), with its own reason and message."""
    for pod in view.cluster.of_kind("Pod"):
        reason, message = str(pod.status.get("reason", "")), str(pod.status.get("message", ""))
        if reason not in _ENDED:
            continue
        workload = view.cluster.workload_of(pod)
        meaning = message_meaning.read_message_meaning(message)
        standing = workload is not None and (ready_replicas(workload) or 0) >= (
            desired_replicas(workload) or 1
        )
        yield Deviation(
            entity=workload.ref if workload else pod.ref,
            kind=meaning.kind if meaning else _ENDED[reason],
            weight=NAMES_CAUSE,
            text=f"{pod.ref} was ended by the platform ({reason}): {message[:300] or 'no message'}",
            service=workload.ref.name if workload else None,
            since=pod.created if reason in {"OutOfcpu", "OutOfmemory", "OutOfpods"} else None,
            latent=standing,
            show=format_describe_command(pod.ref),
        )


_ENDED = {
    "Evicted": "memory",
    "Preempting": "scheduling",
    "Preempted": "scheduling",
    "NodeLost": "crash",
    "NodeAffinity": "scheduling",
    "OutOfcpu": "scheduling",
    "OutOfmemory": "scheduling",
    "OutOfpods": "scheduling",
    "UnexpectedAdmissionError": "quota",
    "Shutdown": "crash",
    "NodeShutdown": "crash",
    "Terminated": "crash",
}


def find_sidecar_trouble(view: ClusterView) -> Iterator[Deviation]:
    """Containers beside the main one that are killed for lack of memory: the advice concerns them, not the program."""
    for pod in view.cluster.of_kind("Pod"):
        states = list(container_states(pod))
        if len(states) < 2:
            continue
        workload = view.cluster.workload_of(pod)
        name = workload.ref.name if workload else pod.ref.name
        for container, row in states:
            ended = get_part(row, "lastState", "terminated") or get_part(row, "state", "terminated")
            if ended.get("reason") == "OOMKilled" and container != name and any(c == name for c, _ in states):
                yield Deviation(
                    entity=workload.ref if workload else pod.ref,
                    kind="out_of_memory",
                    weight=NAMES_CAUSE,
                    text=f"container {container} beside {name} in {pod.ref} was killed at its own memory limit",
                    service=name,
                    figures={"container": container},
                    since=parse_moment(ended.get("finishedAt")),
                    show=format_describe_command(pod.ref),
                    undo=format_kubectl(
                        "set resources",
                        workload.ref if workload else pod.ref,
                        f"-c {container} --limits=memory=…",
                    ),
                )
