"""Rules of a service mesh that fail, delay or refuse requests, and faults that chaos tools inject."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_edit_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.mesh_scope import list_guarded_workloads
from opsleuth.analysis.cluster.objects import ClusterObject, ObjectRef, get_part, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

_PROXY = "istio-proxy"
_CHAOS = {
    "NetworkChaos": "network_loss",
    "PodChaos": "crash",
    "StressChaos": "cpu",
    "DNSChaos": "dns",
    "HTTPChaos": "errors",
    "IOChaos": "disk",
    "TimeChaos": "certificate",
    "KernelChaos": "crash",
    "JVMChaos": "exception",
    "BlockChaos": "disk",
}


def find_mesh_faults(view: ClusterView) -> Iterator[Deviation]:
    """Policies and routes of Istio that keep requests from being answered, and active experiments."""
    for policy in view.cluster.of_kind("PeerAuthentication"):
        yield from _find_strict_policy(policy, view)
    for policy in view.cluster.of_kind("AuthorizationPolicy"):
        yield from _find_denying_policy(policy, view)
    for route in view.cluster.of_kind("VirtualService"):
        yield from _find_injected_faults(route)
        yield from _lost_subset(route, view)
    for kind, fault in _CHAOS.items():
        for experiment in view.cluster.of_kind(kind):
            yield from _find_running_experiment(experiment, fault)


def _find_strict_policy(policy: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    """Mutual TLS demanded of callers that have no proxy to speak it for them."""
    if get_part(policy.spec, "mtls").get("mode") != "STRICT":
        return
    bare = {
        owner.ref.name
        for pod in view.cluster.of_kind("Pod")
        if not any(
            c.get("name") == _PROXY
            for c in (*rows_of(pod.spec, "containers"), *rows_of(pod.spec, "initContainers"))
        )
        and (owner := view.cluster.workload_of(pod))
    }
    guarded = list_guarded_workloads(policy, view.cluster)
    cut = [
        edge
        for edge in view.topology
        if edge.callee in guarded and edge.callee not in bare and edge.caller in bare
    ]
    if cut:
        yield Deviation(
            entity=policy.ref,
            kind="certificate",
            weight=NAMES_CAUSE,
            text=f"{policy.ref} demands mutual TLS, and {cut[0].caller}, which calls {cut[0].callee}, has no proxy",
            service=cut[0].callee,
            since=policy.created,
            latent=True,
            show=show_yaml(policy.ref),
            undo=format_kubectl(
                "patch", policy.ref, """--type merge -p '{"spec":{"mtls":{"mode":"PERMISSIVE"}}}'"""
            ),
        )


def _find_denying_policy(policy: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    """Policies that refuse everybody: DENY without a condition, or ALLOW without a rule."""
    action, rules = policy.spec.get("action", "ALLOW"), rows_of(policy.spec, "rules")
    everything = (action == "DENY" and any(not rule for rule in policy.spec.get("rules") or ())) or (
        action == "ALLOW" and not rules and not policy.spec.get("rules")
    )
    if not everything:
        return
    guarded = list_guarded_workloads(policy, view.cluster)
    called = [name for name in guarded if any(edge.callee == name for edge in view.topology)]
    if called:
        yield Deviation(
            entity=policy.ref,
            kind="permission",
            weight=NAMES_CAUSE,
            text=f"{policy.ref} refuses every request to {', '.join(called[:3])}",
            service=called[0],
            since=policy.created,
            latent=True,
            victims=tuple(called[1:]),
            show=show_yaml(policy.ref),
            undo=format_kubectl("delete", policy.ref),
        )


def _find_injected_faults(route: ClusterObject) -> Iterator[Deviation]:
    for row in rows_of(route.spec, "http"):
        for name, kind in (("abort", "errors"), ("delay", "latency")):
            if fault := get_part(row, "fault", name):
                share = get_part(fault, "percentage").get("value", 100)
                host = str((route.spec.get("hosts") or [route.ref.name])[0]).partition(".")[0]
                yield Deviation(
                    entity=route.ref,
                    kind=kind,
                    weight=NAMES_CAUSE,
                    text=f"{route.ref} injects an {name} into {share} % of the requests to {host}",
                    service=host,
                    latent=True,
                    show=show_yaml(route.ref),
                    undo=format_edit_command(route.ref),
                )


def _lost_subset(route: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    for row in rows_of(route.spec, "http"):
        for target in rows_of(row, "route"):
            destination = get_part(target, "destination")
            host, subset = str(destination.get("host", "")), destination.get("subset")
            rule = next(
                (r for r in view.cluster.of_kind("DestinationRule") if r.spec.get("host") == host), None
            )
            if subset and rule and subset not in {s.get("name") for s in rows_of(rule.spec, "subsets")}:
                yield Deviation(
                    entity=route.ref,
                    kind="config",
                    weight=NAMES_CAUSE,
                    text=f"{route.ref} routes to subset {subset} of {host}, which {rule.ref} does not define",
                    service=host.partition(".")[0],
                    latent=True,
                    show=show_yaml(route.ref),
                    undo=format_edit_command(route.ref),
                )


def _find_running_experiment(experiment: ClusterObject, fault: str) -> Iterator[Deviation]:
    injected = experiment.condition("AllInjected").get("status") == "True"
    recovered = experiment.condition("AllRecovered").get("status") == "True"
    if recovered or not injected:
        return
    selector = get_part(experiment.spec, "selector", "labelSelectors")
    action = str(experiment.spec.get("action", ""))
    service = str(next(iter(selector.values()), experiment.ref.name))
    kind = {"delay": "network_delay", "memory": "memory"}.get(action, fault)
    yield Deviation(
        entity=ObjectRef(*experiment.ref),
        kind=kind,
        weight=NAMES_CAUSE,
        text=f"{experiment.ref} injects a fault ({action or experiment.ref.kind}) into {service}",
        service=service,
        since=experiment.created,
        show=show_yaml(experiment.ref),
        undo=format_kubectl("delete", experiment.ref),
    )
