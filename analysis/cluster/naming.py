"""Name resolution: the cluster's own resolver and its configuration, and pods that ask another one."""

import re
from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_edit_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.model import is_ready
from opsleuth.analysis.cluster.objects import ClusterObject, Document, get_part
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

_SYSTEM = "kube-system"
_RESOLVERS = frozenset({"kube-dns", "coredns", "rke2-coredns-rke2-coredns", "dns-default"})
# Where NodeLocal DNSCache listens by default, on every node.
_NODE_CACHE = "169.254.20.10"
# Plugins that answer in the place of the cluster's records.
_ANSWERS = re.compile(
    r"^[^\S\n]*(template\s.*|rcode\s+(?:NXDOMAIN|SERVFAIL|REFUSED).*|erratic.*|rewrite\s+name\s.*cluster\.local.*)$",
    re.MULTILINE,
)
_PLUGIN = re.compile(r"^[^\S\n]*kubernetes\s", re.MULTILINE)


def find_broken_naming(view: ClusterView) -> Iterator[Deviation]:
    """A resolver without pods or with a configuration that answers wrongly, and pods that do not ask it."""
    for service in view.cluster.of_kind("Service"):
        if service.ref.namespace == _SYSTEM and service.ref.name in _RESOLVERS:
            pods = view.cluster.backends(service)
            if pods and not any(map(is_ready, pods)):
                yield Deviation(
                    entity=service.ref,
                    kind="dns",
                    weight=NAMES_CAUSE,
                    text=f"{service.ref} has no ready pod: no name in the cluster resolves",
                    show=format_kubectl("get", service.ref._replace(kind="pods", name="-l k8s-app=kube-dns")),
                )
    for config in view.cluster.of_kind("ConfigMap"):
        if config.ref.name in _RESOLVERS and "Corefile" in get_part(config.body, "data"):
            yield from _check_corefile(config, str(get_part(config.body, "data")["Corefile"]))
    own = _find_own_addresses(view)
    for workload, template in view.cluster.templates():
        yield from _other_resolver(workload, template, own)


def _check_corefile(config: ClusterObject, text: str) -> Iterator[Deviation]:
    answers = _ANSWERS.findall(text)
    missing = "." in text and not _PLUGIN.search(text)
    if not answers and not missing:
        return
    what = f"answers by `{answers[0].strip()}`" if answers else "does not ask the cluster for names"
    yield Deviation(
        entity=config.ref,
        kind="dns",
        weight=NAMES_CAUSE,
        text=f"{config.ref}: the resolver {what}",
        service=config.ref.name,
        latent=bool(answers),
        show=show_yaml(config.ref),
        undo=format_edit_command(config.ref),
    )


def _find_own_addresses(view: ClusterView) -> frozenset[str]:
    """Where the cluster's own resolver answers: its Services, and the address of a cache on each node."""
    return frozenset(
        {_NODE_CACHE} | {ip for ip, name in view.cluster.names_of_ips().items() if name in _RESOLVERS}
    )


def _other_resolver(workload: ClusterObject, template: Document, own: frozenset[str]) -> Iterator[Deviation]:
    policy = template.get("dnsPolicy", "ClusterFirst")
    servers = get_part(template, "dnsConfig").get("nameservers") or ()
    outside = policy == "None" or (policy == "Default" and not template.get("hostNetwork"))
    asks_own = policy == "None" and bool(servers) and set(map(str, servers)) <= own
    if not outside or asks_own or workload.ref.namespace == _SYSTEM:
        return
    asks = ", ".join(map(str, servers)) or "the resolver of its node"
    yield Deviation(
        entity=workload.ref,
        kind="dns",
        weight=NAMES_CAUSE,
        text=f"pods of {workload.ref} have dnsPolicy {policy} and ask {asks}, which does not know the cluster's Services",
        service=workload.ref.name,
        latent=True,
        show=show_yaml(workload.ref),
        undo=format_kubectl("rollout undo", workload.ref),
    )
