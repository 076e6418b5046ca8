"""Rules of a service mesh about who may call whom and how a call is sent, compared with who calls whom."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_edit_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.mesh_scope import ROOT_NAMESPACE, list_guarded_workloads
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.objects import ClusterObject, Document, get_part, number_of, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

# A pool this small is used up by a few requests at once.
_FEW_CONNECTIONS = 2
_ORIGINATES = frozenset({"SIMPLE", "MUTUAL"})


def find_refused_callers(view: ClusterView) -> Iterator[Deviation]:
    """ALLOW policies of which no rule lets a known caller in."""
    for policy in view.cluster.of_kind("AuthorizationPolicy"):
        rules = rows_of(policy.spec, "rules")
        if policy.spec.get("action", "ALLOW") != "ALLOW" or not rules:
            continue
        guarded = list_guarded_workloads(policy, view.cluster)
        refused = [
            edge
            for edge in view.topology
            if edge.callee in guarded and not any(_may_call(edge.caller, r, view.cluster) for r in rules)
        ]
        if refused:
            callers = list(dict.fromkeys(edge.caller for edge in refused))
            yield Deviation(
                entity=policy.ref,
                kind="permission",
                weight=NAMES_CAUSE,
                text=f"no rule of {policy.ref} lets {', '.join(callers[:3])} call {refused[0].callee}",
                service=refused[0].callee,
                since=policy.created,
                latent=True,
                victims=tuple(callers),
                show=show_yaml(policy.ref),
                undo=format_edit_command(policy.ref),
            )


def _may_call(caller: str, rule: Document, cluster: Cluster) -> bool:
    """Whether the rule names the caller's identity or namespace; any other condition is taken as met."""
    sources = [get_part(row, "source") for row in rows_of(rule, "from")]
    if not sources:
        return True
    pod = next(
        (p for p in cluster.of_kind("Pod") if (w := cluster.workload_of(p)) and w.ref.name == caller), None
    )
    if pod is None:
        return True
    account = pod.spec.get("serviceAccountName") or "default"
    identity = f"cluster.local/ns/{pod.ref.namespace}/sa/{account}"
    return any(_fits_source(source, identity, str(pod.ref.namespace)) for source in sources)


def _fits_source(source: Document, identity: str, namespace: str) -> bool:
    for field, value in (("principals", identity), ("namespaces", namespace)):
        wanted = source.get(field)
        if wanted and not any(fnmatchcase(value, str(pattern)) for pattern in wanted):
            return False
    return True


def find_harmful_destinations(view: ClusterView) -> Iterator[Deviation]:
    """Destination rules that speak TLS to plain pods, plain text where mutual TLS is demanded, or starve a pool."""
    for rule in view.cluster.of_kind("DestinationRule"):
        policy = get_part(rule.spec, "trafficPolicy")
        host = str(rule.spec.get("host", "")).partition(".")[0]
        mode = str(get_part(policy, "tls").get("mode", ""))
        if mode in _ORIGINATES:
            yield _of_rule(
                rule, host, "certificate", f"makes callers of {host} speak TLS themselves ({mode})"
            )
        elif mode == "DISABLE" and _demands_mutual_tls(rule, view.cluster):
            yield _of_rule(rule, host, "certificate", f"sends plain text to {host}, which demands mutual TLS")
        if least := _find_small_pool(get_part(policy, "connectionPool")):
            yield _of_rule(rule, host, "config", f"lets callers of {host} use {least}")


def _demands_mutual_tls(rule: ClusterObject, cluster: Cluster) -> bool:
    return any(
        get_part(policy.spec, "mtls").get("mode") == "STRICT"
        for policy in cluster.of_kind("PeerAuthentication")
        if policy.ref.namespace in {rule.ref.namespace, ROOT_NAMESPACE}
    )


def _find_small_pool(pool: Document) -> str:
    limits = {**get_part(pool, "tcp"), **get_part(pool, "http")}
    small = [
        f"{name} {limit}"
        for name in ("maxConnections", "http1MaxPendingRequests", "http2MaxRequests")
        if (limit := number_of(limits.get(name))) is not None and limit <= _FEW_CONNECTIONS
    ]
    return ", ".join(small)


def _of_rule(rule: ClusterObject, host: str, kind: str, what: str) -> Deviation:
    return Deviation(
        entity=rule.ref,
        kind=kind,
        weight=NAMES_CAUSE,
        text=f"{rule.ref} {what}",
        service=host,
        since=rule.created,
        latent=True,
        show=show_yaml(rule.ref),
        undo=format_kubectl("delete", rule.ref),
    )
