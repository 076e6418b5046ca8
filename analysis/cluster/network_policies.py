"""Network policies that cut a path on which one workload calls another, or the way to name resolution."""

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Sequence

from opsleuth.analysis.cluster.deviation import ClusterView, Deviation, format_kubectl, show_yaml
from opsleuth.analysis.cluster.model import Cluster, matches_selector
from opsleuth.analysis.cluster.objects import ClusterObject, Document, ObjectRef, get_part, number_of, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

_DNS_PORT = 53


def find_cut_paths(view: ClusterView) -> Iterator[Deviation]:
    """Policies that allow no traffic on a path of the topology, and policies that keep pods from asking for names."""
    policies = list(view.cluster.of_kind("NetworkPolicy"))
    if not policies:
        return
    cut: dict[ObjectRef, list[tuple[str, str, str]]] = {}
    for edge in view.topology:
        for policy, direction in _find_cutting_policies(edge.caller, edge.callee, policies, view.cluster):
            cut.setdefault(policy.ref, []).append((edge.caller, edge.callee, direction))
    for policy in policies:
        if paths := cut.get(policy.ref):
            yield _report_cut_paths(policy, paths)
        elif _keeps_from_names(policy, view.cluster):
            yield from _find_blocked_dns(policy, view.cluster)


def _find_cutting_policies(
    caller: str, callee: str, policies: Sequence[ClusterObject], cluster: Cluster
) -> Iterator[tuple[ClusterObject, str]]:
    """The policies that select an end of the path, where none of those of that end and direction allows it."""
    sources, targets = _pods_named(caller, cluster), _pods_named(callee, cluster)
    if not sources or not targets:
        return
    ports = _list_open_ports(targets[0])
    for pod, peer, direction in ((targets[0], sources[0], "Ingress"), (sources[0], targets[0], "Egress")):
        on = [p for p in policies if _selects_pod(p, pod) and direction in _list_directions(p)]
        if on and not any(_allows_peer(p, direction, peer, ports, cluster) for p in on):
            yield from ((policy, direction) for policy in on)


def _pods_named(name: str, cluster: Cluster) -> list[ClusterObject]:
    """The pods of the workload, or behind the Service, of that name."""
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "Rollout"):
        for workload in cluster.of_kind(kind):
            if workload.ref.name == name and (pods := cluster.pods_of(workload)):
                return pods
    services = (s for s in cluster.of_kind("Service") if s.ref.name == name)
    if found := next((pods for s in services if (pods := cluster.backends(s))), []):
        return found
    return [p for p in cluster.of_kind("Pod") if (w := cluster.workload_of(p)) and w.ref.name == name]


def _selects_pod(policy: ClusterObject, pod: ClusterObject) -> bool:
    return policy.ref.namespace == pod.ref.namespace and matches_selector(
        get_part(policy.spec, "podSelector"), pod.labels
    )


def _list_directions(policy: ClusterObject) -> Sequence[str]:
    types = policy.spec.get("policyTypes")
    if types:
        return list(types)
    return ["Ingress", "Egress"] if "egress" in policy.spec else ["Ingress"]


def _list_open_ports(pod: ClusterObject) -> set[str]:
    """The ports that the pod's containers declare, as numbers and names."""
    declared = [row for c in rows_of(pod.spec, "containers") for row in rows_of(c, "ports")]
    return {str(row[key]) for row in declared for key in ("containerPort", "name") if row.get(key)}


def _allows_port(rule: Document, ports: Collection[str]) -> bool:
    """Whether the rule opens one of the ports; where none is declared, any port may be in use."""
    rows = rows_of(rule, "ports")
    return not rows or not ports or any(_fits_port(row, ports) for row in rows)


def _fits_port(row: Document, ports: Collection[str]) -> bool:
    first, last = number_of(row.get("port")), number_of(row.get("endPort"))
    if first is not None and last is not None:
        return any(port.isdigit() and first <= int(port) <= last for port in ports)
    return row.get("port") is None or str(row["port"]) in ports


def _allows_peer(
    policy: ClusterObject, direction: str, peer: ClusterObject, ports: Collection[str], cluster: Cluster
) -> bool:
    """Whether a rule of the policy lets the peer through to one of the ports."""
    key = "from" if direction == "Ingress" else "to"
    for rule in rows_of(policy.spec, direction.lower()):
        peers = rows_of(rule, key)
        if not _allows_port(rule, ports):
            continue
        if not peers or any(_is_peer(row, policy, peer, cluster) for row in peers):
            return True
    return False


def _is_peer(row: Document, policy: ClusterObject, pod: ClusterObject, cluster: Cluster) -> bool:
    if block := get_part(row, "ipBlock"):
        return _in_block(str(pod.status.get("podIP", "")), block)
    if "namespaceSelector" in row:
        namespace = cluster.get("Namespace", None, pod.ref.namespace or "")
        labels = {"kubernetes.io/metadata.name": pod.ref.namespace, **(namespace.labels if namespace else {})}
        # A namespace whose labels were not recorded may fit: the policy is not blamed for what is not known.
        fits = namespace is None or matches_selector(get_part(row, "namespaceSelector"), labels)
    else:
        fits = pod.ref.namespace == policy.ref.namespace
    return fits and ("podSelector" not in row or matches_selector(get_part(row, "podSelector"), pod.labels))


def _in_block(ip: str, block: Document) -> bool:
    try:
        address = ipaddress.ip_address(ip)
        inside = address in ipaddress.ip_network(str(block.get("cidr")), strict=False)
        return inside and not any(
            address in ipaddress.ip_network(str(cidr), strict=False) for cidr in block.get("except") or ()
        )
    except ValueError:
        return True


def _report_cut_paths(policy: ClusterObject, paths: Sequence[tuple[str, str, str]]) -> Deviation:
    callers, callees = _drop_repeats(p[0] for p in paths), _drop_repeats(p[1] for p in paths)
    outgoing = all(p[2] == "Egress" for p in paths)
    service = callers[0] if outgoing and len(callers) == 1 else callees[0]
    shown = ", ".join(f"{caller} to {callee}" for caller, callee, _ in paths[:4])
    return Deviation(
        entity=policy.ref,
        kind="network_loss",
        weight=NAMES_CAUSE,
        text=f"{policy.ref} allows no traffic from {shown}",
        service=service,
        since=policy.created,
        latent=policy.created is None,
        victims=tuple(name for name in (*callers, *callees) if name != service),
        show=show_yaml(policy.ref),
        undo=format_kubectl("delete", policy.ref),
        figures={"paths": len(paths)},
    )


def _drop_repeats(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _keeps_from_names(policy: ClusterObject, cluster: Cluster) -> bool:
    """Whether the policy restricts what pods send, and no rule of it allows port 53 or every port and peer."""
    if "Egress" not in _list_directions(policy):
        return False
    for rule in rows_of(policy.spec, "egress"):
        ports = [row.get("port") for row in rows_of(rule, "ports")]
        peers = rows_of(rule, "to")
        elsewhere = not peers or any(_may_hold_resolver(row, cluster) for row in peers)
        if (not ports or _DNS_PORT in ports or "dns" in ports) and elsewhere:
            return False
    return True


def _may_hold_resolver(row: Document, cluster: Cluster) -> bool:
    """Whether the peer may be the cluster's resolver: another namespace, or a block that holds its pods' addresses."""
    if block := get_part(row, "ipBlock"):
        return any(_in_block(address, block) for address in _list_resolver_addresses(cluster))
    return "namespaceSelector" in row


def _list_resolver_addresses(cluster: Cluster) -> list[str]:
    """The resolver's pod addresses; failing that those of any pod, which share the range; else an unknown one."""
    pods = [pod for pod in cluster.of_kind("Pod") if pod.status.get("podIP")]
    resolver = [pod for pod in pods if pod.ref.name.startswith(("coredns", "kube-dns", "rke2-coredns"))]
    return [str(pod.status["podIP"]) for pod in resolver or pods] or [""]


def _find_blocked_dns(policy: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    pods = [pod for pod in cluster.pods_in(policy.ref.namespace) if _selects_pod(policy, pod)]
    owners = _drop_repeats(owner.ref.name for pod in pods if (owner := cluster.workload_of(pod)))
    if owners:
        yield Deviation(
            entity=policy.ref,
            kind="dns",
            weight=NAMES_CAUSE,
            text=f"{policy.ref} keeps {', '.join(owners[:4])} from resolving names: it allows no traffic to port 53",
            service=owners[0],
            since=policy.created,
            latent=True,
            victims=tuple(owners[1:]),
            show=show_yaml(policy.ref),
            undo=format_kubectl("delete", policy.ref),
        )
