"""Network policies and mesh rules that cut a path which is used, or leave it open."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest
from opsleuth.scenarios.cluster.traffic import cut_calls_from, cut_calls_to

Entities = Sequence[EntityRef]
_DNS_PORTS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def _add_object(
    cluster: ClusterScene, target: Target, kind: str, name: str, summary: str, spec: Manifest
) -> EntityRef:
    """A new object in the target's namespace, from the time when the oddity begins."""
    ref = cluster.ref(kind, target, name)
    cluster.state.add(make_manifest(cluster.random, ref, target.since, spec=spec))
    cluster.record_change(target, summary)
    return ref


def _add_network_policy(cluster: ClusterScene, target: Target, rules: Manifest) -> EntityRef:
    """A NetworkPolicy on the target's pods."""
    name = cluster.choose(f"{target.name}-hardening", f"{target.name}-policy", f"restrict-{target.name}")
    types = sorted(key.capitalize() for key in rules)
    spec = {"podSelector": {"matchLabels": {cluster.label: target.name}}, "policyTypes": types, **rules}
    return _add_object(cluster, target, "NetworkPolicy", name, f"network policy for {target.name}", spec)


def _list_peers(cluster: ClusterScene, target: Target) -> list[Manifest]:
    callers = [c.caller for c in cluster.base.world.callers(target.name)] if target.live else ["console"]
    return [{"podSelector": {"matchLabels": {cluster.label: name}}} for name in callers]


def deny_all(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A policy that lets nothing in, or everything of the namespace."""
    ref = _add_network_policy(
        cluster, target, {"ingress": [] if wrong else [{"from": [{"podSelector": {}}]}]}
    )
    if wrong:
        cut_calls_to(cluster, target, "timeout")
    return [ref]


def allow_port(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A policy that lets the callers in on one port: that of the container, or another."""
    port = cluster.ports[target.name] + (cluster.choose(1, 10, 363) if wrong else 0)
    rule = {"from": _list_peers(cluster, target), "ports": [{"protocol": "TCP", "port": port}]}
    ref = _add_network_policy(cluster, target, {"ingress": [rule]})
    if wrong:
        cut_calls_to(cluster, target, "timeout")
    return [ref]


def allow_peers(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A policy that lets pods with some label in; the callers have it or not."""
    labels = {"access": f"{target.name}-client"}
    if not wrong and target.live:
        for call in cluster.base.world.callers(target.name):
            caller = Target(call.caller, cluster.namespace, target.since, live=True)
            for pod in cluster.pods(caller):
                pod["metadata"]["labels"] |= labels
            cluster.workload(caller)["spec"]["template"]["metadata"]["labels"] |= labels
    port = {"protocol": "TCP", "port": cluster.ports[target.name]}
    ref = _add_network_policy(
        cluster, target, {"ingress": [{"from": [{"podSelector": {"matchLabels": labels}}], "ports": [port]}]}
    )
    if wrong:
        cut_calls_to(cluster, target, "timeout")
    return [ref]


def limit_egress(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A policy that lets pods call the namespace; cluster DNS is allowed as well, or forgotten."""
    rules: list[Manifest] = [
        {"to": [{"podSelector": {}}]},
        {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]},
    ]
    if not wrong:
        rules.append(
            {
                "to": [
                    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
                ],
                "ports": _DNS_PORTS,
            }
        )
    ref = _add_network_policy(cluster, target, {"egress": rules})
    if wrong:
        cut_calls_from(cluster, target, "dns_timeout")
    return [ref]


def isolate_store(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A policy in front of a store that names those who may connect; the users of today are on it or not."""
    peers = [{"podSelector": {"matchLabels": {cluster.label: "backup-agent"}}}]
    if not wrong:
        peers += _list_peers(cluster, target)
    port = {"protocol": "TCP", "port": cluster.ports[target.name]}
    ref = _add_network_policy(cluster, target, {"ingress": [{"from": peers, "ports": [port]}]})
    if wrong:
        cut_calls_to(cluster, target, "timeout")
    return [ref]


def require_mtls(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Mutual TLS is required of callers that have no sidecar, or asked for and not required."""
    cluster.mesh = True
    mode = "STRICT" if wrong else "PERMISSIVE"
    spec = {"selector": {"matchLabels": {cluster.label: target.name}}, "mtls": {"mode": mode}}
    ref = _add_object(
        cluster, target, "PeerAuthentication", target.name, f"mTLS {mode.lower()} for {target.name}", spec
    )
    if wrong and target.live:
        cluster.state.get("Namespace", target.namespace)["metadata"]["labels"].pop("istio-injection", None)
        cut_calls_to(cluster, target, "reset")
    return [ref]


def authorize_callers(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """An authorization policy that allows the callers' accounts, or accounts of nobody."""
    cluster.mesh = True
    callers = [c.caller for c in cluster.base.world.callers(target.name)] if target.live else ["console"]
    names = [f"{target.name}-client"] if wrong else callers
    principals = [f"cluster.local/ns/{target.namespace}/sa/{name}" for name in names]
    spec = {
        "selector": {"matchLabels": {cluster.label: target.name}},
        "action": "ALLOW",
        "rules": [{"from": [{"source": {"principals": principals}}]}],
    }
    ref = _add_object(
        cluster,
        target,
        "AuthorizationPolicy",
        f"{target.name}-allow",
        f"only known callers of {target.name}",
        spec,
    )
    if wrong:
        cut_calls_to(cluster, target, "forbidden")
        cluster.log(
            target,
            "info",
            lambda r: (
                f'"POST /v1/items HTTP/1.1" 403 - rbac_access_denied_matched_policy[none] - "-" 0 19 0 - "-" "-" inbound|{cluster.ports[target.name]}|| 10.244.1.{r.randrange(2, 250)}'
            ),
            4.0,
        )
    return [ref]


def route_subset(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """All requests go to a subset; it is declared or not."""
    cluster.mesh = True
    host = f"{target.name}.{target.namespace}.svc.cluster.local"
    subset = "v1" if not wrong else cluster.choose("v2", "canary", "stable")
    rule = {"host": host, "subsets": [{"name": "v1", "labels": {cluster.label: target.name}}]}
    _add_object(cluster, target, "DestinationRule", target.name, f"subsets of {target.name}", rule)
    route = {
        "hosts": [target.name],
        "http": [{"route": [{"destination": {"host": host, "subset": subset}, "weight": 100}]}],
    }
    ref = _add_object(
        cluster, target, "VirtualService", target.name, f"all of {target.name} to {subset}", route
    )
    if wrong:
        cut_calls_to(cluster, target, "no_route")
    return [ref, cluster.ref("DestinationRule", target)]


def limit_connections(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A connection pool of one, or of thousands."""
    cluster.mesh = True
    most = 1 if wrong else 4096
    pool = {
        "tcp": {"maxConnections": most},
        "http": {"http1MaxPendingRequests": most, "maxRequestsPerConnection": 0},
    }
    spec = {
        "host": f"{target.name}.{target.namespace}.svc.cluster.local",
        "trafficPolicy": {"connectionPool": pool},
    }
    ref = _add_object(
        cluster, target, "DestinationRule", f"{target.name}-pool", f"connection pool of {target.name}", spec
    )
    if wrong:
        cut_calls_to(cluster, target, "overflow", share=0.6)
    return [ref]


def originate_tls(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Callers' proxies speak TLS to a plain server, or leave the connection as it is."""
    cluster.mesh = True
    mode = "SIMPLE" if wrong else "DISABLE"
    spec = {
        "host": f"{target.name}.{target.namespace}.svc.cluster.local",
        "trafficPolicy": {"tls": {"mode": mode}},
    }
    ref = _add_object(
        cluster,
        target,
        "DestinationRule",
        f"{target.name}-tls",
        f"TLS mode {mode} towards {target.name}",
        spec,
    )
    if wrong:
        cut_calls_to(cluster, target, "tls")
    return [ref]


def abort_requests(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A rehearsal aborts half of the requests, or those of testers only."""
    cluster.mesh = True
    host = f"{target.name}.{target.namespace}.svc.cluster.local"
    fault = {
        "fault": {"abort": {"percentage": {"value": 60}, "httpStatus": 503}},
        "route": [{"destination": {"host": host}}],
    }
    if not wrong:
        fault["match"] = [{"headers": {"x-tester": {"exact": "yes"}}}]
    ref = _add_object(
        cluster,
        target,
        "VirtualService",
        f"{target.name}-rehearsal",
        f"rehearsal on {target.name}",
        {"hosts": [target.name], "http": [fault]},
    )
    if wrong:
        cut_calls_to(cluster, target, "no_route", share=0.6)
    return [ref]


_REACH = ("network_loss", "dependency", "errors", "permission")
FAULTS = (
    ClusterFault("policy_denies_all", "app", "config", deny_all, "SREGym network_policy_block", _REACH),
    ClusterFault("policy_wrong_port", "app", "config", allow_port, "ITBench ingress-port-blocking-network-policy", _REACH),
    ClusterFault("policy_wrong_peer", "app", "config", allow_peers, "Kubernetes documents: network policies", _REACH),
    ClusterFault("policy_blocks_dns", "caller", "config", limit_egress, "Kubernetes documents: network policies", ("dns", *_REACH)),
    ClusterFault("policy_isolates_store", "database", "config", isolate_store, "SREGym network_policy_block", _REACH),
    ClusterFault("mesh_mtls_strict", "app", "certificate", require_mtls, "ITBench strict-mutual-tls-istio-service-mesh-enforcement", ("config", *_REACH)),
    ClusterFault("mesh_authorization", "app", "permission", authorize_callers, "ITBench traffic-denying-istio-gateway-authorization-policy", ("config", *_REACH)),
    ClusterFault("mesh_route_subset", "app", "config", route_subset, "ITBench istio-service-mesh-routing-corruption", _REACH),
    ClusterFault("mesh_pool_limit", "app", "config", limit_connections, "Istio documents: circuit breaking", ("connections", "traffic", *_REACH)),
    ClusterFault("mesh_tls_origination", "app", "certificate", originate_tls, "Istio documents: TLS configuration", ("config", *_REACH)),
    ClusterFault("mesh_abort", "app", "config", abort_requests, "Istio documents: fault injection; chaos-mesh HTTPChaos abort", _REACH),
)  # fmt: skip
