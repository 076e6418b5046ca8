"""Names that do not resolve, or resolve to the wrong place."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import crash_pods
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef
from opsleuth.scenarios.cluster.traffic import cut_calls_from
from opsleuth.scenarios.cluster.workloads import drop_pods, replace_pods

Entities = Sequence[EntityRef]


def _lose_names(cluster: ClusterScene, target: Target, way: str, share: float) -> None:
    """Every service that calls others fails to resolve their names."""
    if target.live:
        for service in cluster.base.world.services:
            cut_calls_from(
                cluster, Target(service.name, cluster.namespace, target.since, live=True), way, share
            )


def edit_corefile(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The Corefile gets one more block: it answers NXDOMAIN for the cluster's names, or serves a zone of its own."""
    settings = cluster.state.get("ConfigMap", target.name, target.namespace)
    zone = "svc.cluster.local" if wrong else "corp.example"
    block = f"    template ANY ANY {zone} {{\n       rcode NXDOMAIN\n    }}\n"
    before = settings["data"]["Corefile"]
    settings["data"]["Corefile"] = before.replace("    prometheus", block + "    prometheus")
    cluster.edit(settings, target, f"zone {zone} in the Corefile")
    cluster.log(target, "INFO", lambda _: "[INFO] plugin/reload: Running configuration SHA512 = 9f1c", 0.05)
    if wrong:
        _lose_names(cluster, target, "no_such_host", 0.85)
    return [cluster.ref("ConfigMap", target)]


def stop_dns(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The DNS server has three replicas, or none."""
    workload = cluster.workload(target)
    workload["spec"]["replicas"] = 0 if wrong else 2
    cluster.edit(workload, target, f"{target.name}: {workload['spec']['replicas']} replicas")
    if wrong:
        drop_pods(cluster, target)
        _lose_names(cluster, target, "dns_timeout", 0.9)
    return [cluster.workload_ref(target)]


def break_dns_pods(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The Corefile can be parsed, or not: new pods of the DNS server end at start."""
    settings = cluster.state.get("ConfigMap", target.name, target.namespace)
    word = "forwrad" if wrong else "forward"
    settings["data"]["Corefile"] = settings["data"]["Corefile"].replace(
        "    forward . /etc/resolv.conf", f"    {word} . 10.0.0.2"
    )
    cluster.edit(settings, target, "upstream resolver by address")
    pods = replace_pods(cluster, target)
    if wrong:
        crash_pods(cluster, target, pods, code=1)
        cluster.log(
            target,
            "ERROR",
            lambda _: "/etc/coredns/Corefile:12 - Error during parsing: Unknown directive 'forwrad'",
            1.0,
        )
        _lose_names(cluster, target, "dns_timeout", 0.9)
    return [cluster.ref("ConfigMap", target), cluster.workload_ref(target)]


def set_dns_policy(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Pods resolve by their own list: cluster DNS is on it, or public resolvers only."""
    servers = ["8.8.8.8", "1.1.1.1"] if wrong else ["10.96.0.10"]
    search = [] if wrong else [f"{target.namespace}.svc.cluster.local", "svc.cluster.local", "cluster.local"]
    cluster.pod_spec(target).update(dnsPolicy="None", dnsConfig={"nameservers": servers, "searches": search})
    cluster.edit(cluster.workload(target), target, f"{target.name}: resolvers of its own")
    replace_pods(cluster, target)
    if wrong:
        cut_calls_from(cluster, target, "no_such_host")
    return [cluster.workload_ref(target)]


def alias_hosts(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A fixed address for a host: of one that is called and has moved since, or of a host of no account."""
    callees = [c.callee for c in cluster.base.world.callees(target.name)] if target.live else []
    host = callees[0] if wrong and callees else "printer.example"
    cluster.pod_spec(target)["hostAliases"] = [{"ip": "10.96.250.9", "hostnames": [host]}]
    cluster.edit(cluster.workload(target), target, f"{target.name}: fixed address of {host}")
    replace_pods(cluster, target)
    if wrong:
        cut_calls_from(cluster, target, "timeout", only=host)
    return [cluster.workload_ref(target)]


def set_address(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The address of a dependency in the environment is right, or leads to a port where nobody listens."""
    callees = [c.callee for c in cluster.base.world.callees(target.name)] if target.live else []
    for variable in cluster.container(target)["env"]:
        if callees and variable["name"].endswith("_ADDR") and variable["value"].startswith(f"{callees[0]}:"):
            port = int(variable["value"].rsplit(":", 1)[1])
            host = callees[0] if wrong else f"{callees[0]}.{target.namespace}"
            variable["value"] = f"{host}:{port + 1 if wrong else port}"
    cluster.edit(cluster.workload(target), target, f"{target.name}: addresses from the new template")
    replace_pods(cluster, target)
    if wrong and callees:
        cut_calls_from(cluster, target, "refused", only=callees[0])
    return [cluster.workload_ref(target)]


_DNS = ("config", "network_loss", "dependency")
_NAMES = ("kube-dns", "coredns", "dns")
FAULTS = (
    ClusterFault("corefile_nxdomain", "dns", "dns", edit_corefile, "SREGym stale_coredns_config, service_dns_resolution_failure; chaos-mesh DNSChaos", _DNS, culprits=_NAMES),
    ClusterFault("dns_stopped", "dns", "dns", stop_dns, "Kubernetes documents: debugging DNS", ("scheduling", *_DNS), culprits=_NAMES),
    ClusterFault("corefile_malformed", "dns", "dns", break_dns_pods, "CoreDNS documents: Corefile", ("crash", *_DNS), culprits=_NAMES),
    ClusterFault("dns_policy", "caller", "dns", set_dns_policy, "ITBench failing-name-resolution-kubernetes-workload-dns-policy; SREGym wrong_dns_policy", ("deploy", *_DNS)),
    ClusterFault("host_alias", "caller", "dns", alias_hosts, "SREGym stale_hostaliases_dns_poisoning", ("deploy", *_DNS)),
    ClusterFault("address_wrong", "caller", "config", set_address, "ITBench modified environment variable; SREGym env_variable_shadowing", ("deploy", "dependency", "errors", "network_loss")),
)  # fmt: skip
