"""Pods that find no node."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import leave_unscheduled
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest, ref_of
from opsleuth.scenarios.cluster.workloads import replace_pods, roll_out

Entities = Sequence[EntityRef]


def _node_count(cluster: ClusterScene) -> int:
    return len(cluster.state.of_kind("Node"))


def select_node(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A node selector that nodes match, or none."""
    pool = cluster.choose("gpu", "highmem", "fast-disk") if wrong else "general" if target.live else "spare"
    cluster.pod_spec(target)["nodeSelector"] = {"pool": pool}
    pods = roll_out(cluster, target, f"moved to the {pool} pool")
    if wrong:
        leave_unscheduled(
            cluster, target, pods, f"{_node_count(cluster)} node(s) didn't match Pod's node affinity/selector"
        )
    return [cluster.workload_ref(target)]


def _pool_of(cluster: ClusterScene, target: Target) -> list[Manifest]:
    """All nodes for what requests pass through; an idle workload is bound to the spare one."""
    if target.live:
        return cluster.state.of_kind("Node")
    cluster.pod_spec(target)["nodeSelector"] = {"pool": "spare"}
    return [cluster.state.get("Node", cluster.spare_node)]


def _count_others(cluster: ClusterScene, nodes: list[Manifest], why: str) -> str:
    """The scheduler's reasons for these nodes and for the rest."""
    others = _node_count(cluster) - len(nodes)
    return f"{why}, {others} node(s) didn't match Pod's node affinity/selector" if others else why


def taint_nodes(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """All nodes are tainted; the pods tolerate it or do not."""
    taint = {"key": "dedicated", "value": cluster.choose("analytics", "batch"), "effect": "NoSchedule"}
    nodes = _pool_of(cluster, target)
    for node in nodes:
        node["spec"]["taints"] = [taint]
        cluster.edit(node, target, f"node {node['metadata']['name']} dedicated to {taint['value']}")
    if wrong:
        pods = roll_out(cluster, target, "restarted for the new settings")
        why = f"{len(nodes)} node(s) had untolerated taint {{{taint['key']}: {taint['value']}}}"
        leave_unscheduled(cluster, target, pods, _count_others(cluster, nodes, why))
    else:
        cluster.pod_spec(target)["tolerations"] = [
            {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
        ]
        roll_out(cluster, target, "tolerates dedicated nodes")
    return [cluster.workload_ref(target), *(ref_of(n) for n in nodes)]


def repel_pods(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Pods keep away from each other's nodes, or from every node of the cluster."""
    label = {cluster.label: target.name}
    rule: Manifest
    term = {"labelSelector": {"matchLabels": label}, "topologyKey": "kubernetes.io/hostname"}
    if wrong:
        term["labelSelector"] = {
            "matchExpressions": [{"key": "kubernetes.io/os", "operator": "DoesNotExist"}]
        }
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    else:
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
    cluster.pod_spec(target)["affinity"] = {"podAntiAffinity": rule}
    pods = roll_out(cluster, target, "spread over the nodes")
    if wrong:
        leave_unscheduled(
            cluster,
            target,
            pods,
            f"{_node_count(cluster)} node(s) didn't match pod anti-affinity rules",
            f"preemption: 0/{_node_count(cluster)} nodes are available: {_node_count(cluster)} No preemption victims found for incoming pod.",
        )
    return [cluster.workload_ref(target)]


def ask_too_much(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A request that a node can hold, or none can."""
    resource, amount = cluster.choose(("cpu", "32"), ("memory", "200Gi"))
    usual = {"cpu": "400m", "memory": "512Mi"}[resource]
    cluster.container(target)["resources"]["requests"][resource] = amount if wrong else usual
    cluster.container(target)["resources"]["limits"][resource] = (
        amount if wrong else {"cpu": "2", "memory": "2Gi"}[resource]
    )
    pods = roll_out(cluster, target, "requests measured anew")
    if wrong:
        leave_unscheduled(
            cluster,
            target,
            pods,
            f"{_node_count(cluster)} Insufficient {resource}",
            f"preemption: 0/{_node_count(cluster)} nodes are available: {_node_count(cluster)} No preemption victims found for incoming pod.",
        )
    return [cluster.workload_ref(target)]


def preempt_pods(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Pods of a higher class take the nodes; the target has the same class, or a lower one."""
    name = f"{cluster.suffix(4)}-bulk-import"
    cluster.pod_spec(target)["priorityClassName"] = "bulk" if wrong else "business"
    ref = EntityRef("Deployment", cluster.spare_namespace, name)
    container = {
        "name": name,
        "image": "registry.example/import:5.1",
        "resources": {"requests": {"cpu": "6", "memory": "20Gi"}},
    }
    template = {
        "metadata": {"labels": {"job": name}},
        "spec": {"priorityClassName": "business", "containers": [container]},
    }
    spec = {
        "replicas": 0 if not wrong else 4,
        "selector": {"matchLabels": {"job": name}},
        "template": template,
    }
    cluster.state.add(make_manifest(cluster.random, ref, target.since, spec=spec, status={}))
    cluster.record_change(target, f"{name} deployed in {cluster.spare_namespace}", kind="deploy", about=name)
    if not wrong:
        replace_pods(cluster, target)
    else:
        for pod in cluster.pods(target):
            cluster.event(
                pod,
                "Preempted",
                f"Preempted by pod {cluster.suffix(8)} on node {pod['spec']['nodeName']}",
                target,
                repeats=False,
            )
        pods = replace_pods(cluster, target)
        leave_unscheduled(
            cluster,
            target,
            pods,
            f"{_node_count(cluster)} Insufficient cpu",
            f"preemption: 0/{_node_count(cluster)} nodes are available: {_node_count(cluster)} No preemption victims found for incoming pod.",
        )
    return [ref, cluster.workload_ref(target), EntityRef("PriorityClass", "", "bulk")]


def cordon_nodes(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Nodes are closed for maintenance: one of them, or all."""
    closed = _pool_of(cluster, target) if wrong else cluster.state.of_kind("Node")[-1:]
    for node in closed:
        node["spec"] |= {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        }
        cluster.event(
            node,
            "NodeNotSchedulable",
            f"Node {node['metadata']['name']} status is now: NodeNotSchedulable",
            target,
            kind="Normal",
            repeats=False,
        )
    cluster.edit(closed[0], target, "nodes closed for the kernel update")
    if wrong:
        pods = roll_out(cluster, target, "restarted")
        why = _count_others(cluster, closed, f"{len(closed)} node(s) were unschedulable")
        leave_unscheduled(cluster, target, pods, why)
    return [*(ref_of(n) for n in closed), cluster.workload_ref(target)]


def spread_zones(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Pods spread over zones where that can be done, or over a label that no node has."""
    key = "failure-domain.example/rack" if wrong else "topology.kubernetes.io/zone"
    rule: Manifest = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if wrong else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {cluster.label: target.name}},
    }
    cluster.pod_spec(target)["topologySpreadConstraints"] = [rule]
    pods = roll_out(cluster, target, "even spread")
    if wrong:
        leave_unscheduled(
            cluster,
            target,
            pods,
            f"{_node_count(cluster)} node(s) didn't match pod topology spread constraints (missing required label)",
        )
    return [cluster.workload_ref(target)]


_PLACE = ("config", "deploy", "quota", "crash")
FAULTS = (
    ClusterFault("node_selector", "app", "scheduling", select_node, "ITBench nonexistent-kubernetes-workload-node; SREGym, AIOpsLab assign_to_non_existent_node", _PLACE),
    ClusterFault("taint_untolerated", "app", "scheduling", taint_nodes, "SREGym taint_no_toleration", _PLACE),
    ClusterFault("anti_affinity", "app", "scheduling", repel_pods, "ITBench unschedulable pod anti-affinity; SREGym pod_anti_affinity_deadlock", _PLACE),
    ClusterFault("request_too_large", "app", "scheduling", ask_too_much, "SREGym resource_request_too_large", _PLACE),
    ClusterFault("preemption", "app", "scheduling", preempt_pods, "ITBench priority preemption; SREGym priority_preemption_cascade", ("quota", "config", "deploy")),
    ClusterFault("cordoned", "app", "scheduling", cordon_nodes, "ITBench cordoned-kubernetes-worker-node", ("config", "deploy")),
    ClusterFault("topology_spread", "app", "scheduling", spread_zones, "Kubernetes documents: topology spread", _PLACE),
)  # fmt: skip
