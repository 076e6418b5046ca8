"""Unhealthy nodes, by their conditions and by the problems that node daemons report."""

import re
from collections.abc import Iterator
from dataclasses import replace

from opsleuth.analysis import message_meaning
from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_kubectl,
)
from opsleuth.analysis.cluster.model import is_ready
from opsleuth.analysis.cluster.objects import ClusterObject, Document, parse_moment
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE
from opsleuth.analysis.records import LogLine, Recording

# Conditions that the kubelet and the cloud set; True is bad, but for Ready. Others come from problem detectors,
# which by their convention also mean a problem when True.
_KINDS = {
    "MemoryPressure": "memory",
    "DiskPressure": "storage_full",
    "PIDPressure": "quota",
    "NetworkUnavailable": "network_loss",
    "ReadonlyFilesystem": "disk",
    "CorruptDockerOverlay2": "disk",
    "KernelDeadlock": "crash",
    "NTPProblem": "certificate",
}
_PROBLEM_REASONS = frozenset(
    {"NTPProblem", "ClockSkew", "KubeletDown", "ContainerRuntimeUnhealthy", "ConntrackFull"}
)
# What the kubelet says when a node has no address left for another pod.
_NO_ADDRESS = "no ip addresses available"
_KERNEL = "table full, dropping packet"
# As chronyd, ntpd and systemd-timesyncd word it.
_CLOCK = re.compile(
    r"(?:system clock wrong by|time (?:stepped|reset|slew) (?:by )?|clock is off by) *([+-]?\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
# Tokens and tickets allow for a few seconds.
_WRONG_SECONDS = 30.0


def find_unwell_nodes(view: ClusterView) -> Iterator[Deviation]:
    """Nodes whose own conditions, daemons or pods say that they are not well."""
    for node in view.cluster.of_kind("Node"):
        for row in node.status.get("conditions") or ():
            if isinstance(row, dict) and (found := _check_node_condition(node, row)):
                yield _with_pods(found, node, view)
        yield from _find_reported_problems(node, view)
    yield from _out_of_addresses(view)


def _check_node_condition(node: ClusterObject, row: Document) -> Deviation | None:
    kind, status = str(row.get("type", "")), str(row.get("status", ""))
    message = str(row.get("message", ""))
    if kind == "Ready":
        if status not in {"False", "Unknown"}:
            return None
        return Deviation(
            entity=node.ref,
            kind="crash",
            weight=NAMES_CAUSE,
            text=f"{node.ref} is not ready ({row.get('reason', status)}): {message[:200]}",
            since=parse_moment(row.get("lastTransitionTime")),
            show=format_describe_command(node.ref),
            undo=format_kubectl("drain", node.ref, "--ignore-daemonsets").replace("drain node ", "drain "),
        )
    if status != "True":
        return None
    meaning = message_meaning.read_message_meaning(message)
    return Deviation(
        entity=node.ref,
        kind=_KINDS.get(kind) or (meaning.kind if meaning else "other"),
        weight=NAMES_CAUSE if kind in _KINDS else ACTS,
        text=f"{node.ref} reports {kind} ({row.get('reason', 'no reason')}): {message[:200]}",
        since=parse_moment(row.get("lastTransitionTime")),
        show=format_describe_command(node.ref),
    )


def _with_pods(found: Deviation, node: ClusterObject, view: ClusterView) -> Deviation:
    return replace(found, victims=workloads_on(node, view))


def workloads_on(node: ClusterObject, view: ClusterView) -> tuple[str, ...]:
    """The names of the workloads with a pod on the node."""
    owners = (view.cluster.workload_of(pod) or pod for pod in view.cluster.pods_on(node.ref.name))
    return tuple(dict.fromkeys(owner.ref.name for owner in owners))


def _find_reported_problems(node: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    """Events about the node itself that name a problem and are not about one of its containers."""
    for event in view.events_of(node.ref):
        meaning = message_meaning.read_message_meaning(event.message)
        if event.type == "Normal" or event.time < view.window.start:
            continue
        if event.reason in _PROBLEM_REASONS or (
            meaning and meaning.kind in {"certificate", "network_loss", "disk"}
        ):
            yield Deviation(
                entity=node.ref,
                kind=_KINDS.get(event.reason) or (meaning.kind if meaning else "other"),
                weight=NAMES_CAUSE,
                text=f"{node.ref} reports {event.reason}: {event.message[:200]}",
                since=event.began,
                victims=workloads_on(node, view),
                show=format_describe_command(node.ref),
            )


def _out_of_addresses(view: ClusterView) -> Iterator[Deviation]:
    for event in view.events:
        if _NO_ADDRESS not in event.message.lower():
            continue
        name = event.object.rpartition("/")[2]
        pod = next((p for p in view.cluster.of_kind("Pod") if p.ref.name == name), None)
        host = str(pod.spec.get("nodeName", "")) if pod else ""
        node = view.cluster.get("Node", None, host)
        workload = view.cluster.workload_of(pod) if pod else None
        if node is None or pod is None:
            continue
        yield Deviation(
            entity=node.ref,
            kind="network_loss",
            weight=NAMES_CAUSE,
            text=f"{node.ref} has no pod address left for {pod.ref}: {_quote_message(event.message)}",
            service=workload.ref.name if workload else None,
            since=event.first_time,
            show=format_describe_command(node.ref),
            undo=f"kubectl cordon {node.ref.name}",
        )


def _quote_message(message: str) -> str:
    meaning = message_meaning.read_message_meaning(message)
    return meaning.quote if meaning else message[:160]


def find_kernel_trouble(recording: Recording, view: ClusterView) -> Iterator[Deviation]:
    """Nodes whose kernel says that it drops what all pods on it send or receive."""
    by_host: dict[str, list[LogLine]] = {}
    for line in recording.logs or ():
        if line.host and _KERNEL in line.message:
            by_host.setdefault(line.host, []).append(line)
    for host, lines in sorted(by_host.items()):
        node = view.cluster.get("Node", None, host)
        if node is not None:
            times = [line.time for line in lines if line.time is not None]
            yield Deviation(
                entity=node.ref,
                kind="network_loss",
                weight=NAMES_CAUSE,
                text=f"{node.ref} drops packets: its connection tracking table is full ({len(lines)} kernel lines)",
                since=min(times, default=None),
                victims=workloads_on(node, view),
                show=f"kubectl debug node/{host} -it --image=busybox -- sysctl net.netfilter.nf_conntrack_count",
                figures={"lines": len(lines)},
            )


def find_wrong_clocks(recording: Recording, view: ClusterView) -> Iterator[Deviation]:
    """Nodes whose time daemon says that their clock is off by more than tokens and certificates forgive."""
    seen: set[str] = set()
    for line in recording.logs or ():
        off = _CLOCK.search(line.message)
        host = line.host or line.service
        node = view.cluster.get("Node", None, host) if off and host not in seen else None
        if off is None or node is None or abs(float(off[1])) < _WRONG_SECONDS:
            continue
        seen.add(host)
        yield Deviation(
            entity=node.ref,
            kind="certificate",
            weight=NAMES_CAUSE,
            text=f"the clock of {node.ref} is off by {abs(float(off[1])):.0f} s",
            since=line.time,
            victims=workloads_on(node, view),
            show=f"kubectl debug node/{host} -it --image=busybox -- date",
            figures={"seconds": float(off[1])},
        )


# Agents that connect the pods of their node with the rest.
_NETWORK_AGENT = re.compile(
    r"^(calico-node|canal|cilium(?!-operator)|kube-flannel|flannel|weave-net|kube-router|antrea-agent|aws-node"
    r"|azure-cni|ovnkube-node|kube-proxy|multus|netd|anetd)\b"
)


def find_failing_network_agents(view: ClusterView) -> Iterator[Deviation]:
    """Nodes whose network agent is not ready: what runs there loses the way to the pods of other nodes."""
    for pod in view.cluster.of_kind("Pod"):
        name = pod.spec.get("nodeName")
        node = view.cluster.get("Node", None, str(name)) if _NETWORK_AGENT.match(pod.ref.name) else None
        if node is None or is_ready(pod):
            continue
        ready = pod.condition("Ready")
        yield Deviation(
            entity=node.ref,
            kind="network_loss",
            weight=NAMES_CAUSE,
            text=f"the network agent {pod.ref} of {node.ref} is not ready: {ready.get('message') or 'no message'}",
            since=parse_moment(ready.get("lastTransitionTime")),
            latent=True,
            victims=workloads_on(node, view),
            show=format_describe_command(pod.ref),
            undo=format_kubectl("delete", pod.ref),
        )
