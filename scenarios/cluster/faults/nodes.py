"""Nodes that fail under their pods."""

from collections.abc import Sequence

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.controllers import workload_of
from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import evict_pods, fail_sandbox, leave_unscheduled, mark_unready
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, ref_of
from opsleuth.scenarios.cluster.traffic import cut_calls_to, fail_requests
from opsleuth.scenarios.cluster.workloads import add_pod, replace_pods

Entities = Sequence[EntityRef]


def _on_node(cluster: ClusterScene, node: str) -> list[Manifest]:
    """The pods of services on a node, without those of every node."""
    pods = [p for p in cluster.state.of_kind("Pod") if p["spec"].get("nodeName") == node]
    return [p for p in pods if not p["spec"].get("hostNetwork")]


def _set_condition(
    cluster: ClusterScene, target: Target, kind: str, status: str, reason: str, message: str
) -> None:
    node = cluster.state.get("Node", target.name)
    for condition in node["status"]["conditions"]:
        if condition["type"] == kind:
            condition |= {
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": format_utc(int(target.since)),
            }


def _services_on(cluster: ClusterScene, node: str) -> list[tuple[Target, float]]:
    """The live services with pods on a node, and the share of their pods there."""
    found = []
    for service in cluster.base.world.services:
        target = Target(service.name, cluster.namespace, cluster.base.timing.onset, live=True)
        if service.pods:
            pods = cluster.pods(target)
            here = sum(p["spec"].get("nodeName") == node for p in pods)
            if here:
                found.append((target, here / len(pods)))
    return found


def stop_kubelet(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A node whose kubelet reports, or has stopped to."""
    node = cluster.state.get("Node", target.name)
    if not wrong:
        cluster.event(node, "Starting", "Starting kubelet.", target, kind="Normal", repeats=False)
        return [ref_of(node)]
    for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
        _set_condition(
            cluster, target, kind, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."
        )
    node["spec"]["taints"] = [
        {
            "key": "node.kubernetes.io/unreachable",
            "effect": "NoExecute",
            "timeAdded": format_utc(int(target.since)),
        }
    ]
    cluster.event(
        node,
        "NodeNotReady",
        f"Node {target.name} status is now: NodeNotReady",
        target,
        kind="Normal",
        repeats=False,
    )
    services = _services_on(cluster, target.name) if target.live else []
    for pod in _on_node(cluster, target.name):
        mark_unready(pod, target.since)
        cluster.event(pod, "NodeNotReady", "Node is not ready", target, repeats=False)
    for service, share in services:
        cut_calls_to(cluster, service, "timeout", share=share * (0.6 if share < 1 else 1))
    return [ref_of(node)]


def _evict_some(cluster: ClusterScene, target: Target, why: str) -> None:
    """The kubelet evicts what is on the node; controllers make up for it elsewhere, later."""
    services = _services_on(cluster, target.name) if target.live else []
    for pod in _on_node(cluster, target.name):
        if pod["metadata"]["namespace"] != "kube-system":
            owner = workload_of(cluster, pod)
            evict_pods(
                cluster,
                target,
                [pod],
                target.name,
                why.replace("{container}", owner.name if owner else "app"),
            )
            _add_successor(cluster, target, pod)
    for service, share in services:
        fail_requests(cluster, service, 0.1 * share)
        cut_calls_to(cluster, service, "refused", share=0.5 * share)


def _add_successor(cluster: ClusterScene, target: Target, pod: Manifest) -> None:
    """The controller's next pod, which the other nodes have no room for; a StatefulSet waits for its husk to go."""
    owner = pod["metadata"]["ownerReferences"][0]
    if owner["kind"] == "ReplicaSet":
        replica_set = cluster.state.get("ReplicaSet", owner["name"], pod["metadata"]["namespace"])
        fresh = add_pod(
            cluster, replica_set, f"{owner['name']}-{cluster.suffix()}", target.name, target.since
        )
        others = len(cluster.state.of_kind("Node")) - 1
        why = f"1 node(s) had untolerated taint {{{_first_taint(cluster, target)}: }}, {others} Insufficient memory"
        leave_unscheduled(cluster, target, [fresh], why)


def _first_taint(cluster: ClusterScene, target: Target) -> str:
    return str(cluster.state.get("Node", target.name)["spec"]["taints"][0]["key"])


def press_memory(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A node with memory enough, or short of it: pods are evicted."""
    if wrong:
        _set_condition(
            cluster,
            target,
            "MemoryPressure",
            "True",
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        )
        cluster.state.get("Node", target.name)["spec"]["taints"] = [
            {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
        ]
        cluster.event(
            EntityRef("Node", "", target.name), "EvictionThresholdMet", "Attempting to reclaim memory", target
        )
        _evict_some(
            cluster,
            target,
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 71432Ki. Container {container} was using 912340Ki, request is 256Mi, has larger consumption of memory.",
        )
    return [EntityRef("Node", "", target.name)]


def press_disk(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A node with disk enough, or short of it: pods are evicted."""
    if wrong:
        _set_condition(
            cluster, target, "DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure"
        )
        cluster.state.get("Node", target.name)["spec"]["taints"] = [
            {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
        ]
        cluster.event(
            EntityRef("Node", "", target.name),
            "FreeDiskSpaceFailed",
            "Failed to garbage collect required amount of images. Attempted to free 4823449600 bytes, but only found 0 bytes eligible to free.",
            target,
        )
        _evict_some(
            cluster,
            target,
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10680483840, available: 9872Mi. Container {container} was using 210Mi, request is 0, has larger consumption of ephemeral-storage.",
        )
    return [EntityRef("Node", "", target.name)]


def fill_conntrack(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The node's table of connections has room, or is full."""
    full, fine = (
        "nf_conntrack: table full, dropping packet",
        "nf_conntrack version 0.5.0 (65536 buckets, 262144 max)",
    )
    text, level = (full, "warning") if wrong else (fine, "info")
    rate = 6.0 if wrong else 0.1
    cluster.log_of(
        target.name,
        level,
        lambda r: f"kernel: [{r.uniform(9e4, 9e5):.6f}] {text}",
        target.since,
        rate,
        "kube-system",
    )
    if wrong and target.live:
        for service, share in _services_on(cluster, target.name):
            cut_calls_to(cluster, service, "timeout", share=0.35 * share)
    return [EntityRef("Node", "", target.name)]


def break_network_agent(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The network agent of one node is ready, or not: its pods are cut off from the others."""
    pods = [
        p
        for p in cluster.state.of_kind("Pod", "kube-system")
        if p["spec"].get("nodeName") == target.name
        and p["metadata"]["labels"].get("k8s-app") == "calico-node"
    ]
    if wrong:
        for pod in pods:
            pod["status"]["containerStatuses"][0]["ready"] = False
            mark_unready(pod, target.since)
            cluster.event(
                pod,
                "Unhealthy",
                "Readiness probe failed: calico/node is not ready: BIRD is not ready: BGP not established with 10.0.1.11,10.0.1.12",
                target,
            )
        cluster.state.get("DaemonSet", "calico-node", "kube-system")["status"]["numberReady"] -= 1
        for service, share in _services_on(cluster, target.name) if target.live else ():
            cut_calls_to(cluster, service, "timeout", share=0.8 * share)
    return [
        ref_of(pods[0]),
        EntityRef("Node", "", target.name),
        EntityRef("DaemonSet", "kube-system", "calico-node"),
    ]


def skew_clock(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The node's clock is right, or minutes off: tokens and certificates look invalid."""
    off = 872.0 if wrong else 0.004
    cluster.log_of(
        target.name,
        "info",
        lambda r: f"chronyd[812]: System clock wrong by {off * r.uniform(0.98, 1.02):.6f} seconds",
        target.since,
        1.0,
        "kube-system",
    )
    if wrong and target.live:
        for service, share in _services_on(cluster, target.name)[:4]:
            fail_requests(
                cluster,
                service,
                0.5 * share,
                lambda _: "token rejected: jwt: token used before issued (iat 897 s ahead)",
            )
    return [EntityRef("Node", "", target.name)]


def exhaust_addresses(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """New pods get an address, or the node has none left."""
    cluster.edit(cluster.workload(target), target, f"{target.name}: restarted for new certificates")
    pods = replace_pods(cluster, target)
    node = pods[0]["spec"]["nodeName"]
    if wrong:
        for pod in pods:
            pod["spec"]["nodeName"] = node
        fail_sandbox(
            cluster,
            target,
            pods,
            'host-local" failed (add): failed to allocate for range 0: no IP addresses available in range set: 10.244.3.1-10.244.3.14',
        )
        cluster.state.get("Node", node)["spec"]["podCIDR"] = "10.244.3.0/28"
    return [EntityRef("Node", "", node), cluster.workload_ref(target)]


_NODE = ("crash", "network_loss", "other", "scheduling")
FAULTS = (
    ClusterFault("kubelet_stopped", "node", "crash", stop_kubelet, "SREGym kubelet_crash", _NODE, culprits=("node",)),
    ClusterFault("node_memory", "node", "memory", press_memory, "SREGym kubelet_eviction_threshold_misconfig", ("out_of_memory", *_NODE), culprits=("node",)),
    ClusterFault("node_disk", "node", "storage_full", press_disk, "Kubernetes documents: node-pressure eviction", ("disk", *_NODE), culprits=("node",)),
    ClusterFault("conntrack_full", "node", "network_loss", fill_conntrack, "SREGym node_conntrack_exhaustion", ("quota", "connections"), culprits=("node",)),
    ClusterFault("network_agent", "node", "network_loss", break_network_agent, "SREGym calico_route_reflector_label_drift, top_of_rack_router", ("probe", "other", "dependency"), culprits=("node", "calico-node")),
    ClusterFault("clock_skew", "node", "certificate", skew_clock, "SREGym node_clock_drift; chaos-mesh TimeChaos", ("permission", "config", "other", "errors"), culprits=("node",)),
    ClusterFault("addresses_exhausted", "app", "network_loss", exhaust_addresses, "SREGym pod_cidr_exhaustion", ("quota", "scheduling", "config")),
)  # fmt: skip
