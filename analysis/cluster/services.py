"""Services whose traffic does not arrive: selectors, ports and traffic policies that point nowhere."""

import re
from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_edit_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.memory import last_write
from opsleuth.analysis.cluster.model import (
    CONTROLLERS,
    Cluster,
    is_ready,
    labels_of_template,
    quoted_labels,
    service_ports,
)
from opsleuth.analysis.cluster.objects import ClusterObject, Document, get_part, number_of, rows_of
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE

_LOCAL_NAME = ".svc"
# Words by which a second workload behind a Service is meant to be there.
_MEANT_BESIDE = re.compile(r"\b(canary|stable|blue|green|primary|baseline|preview|shadow|v\d+|\d+)\b")


def find_broken_services(view: ClusterView) -> Iterator[Deviation]:
    """Services without backends, with ports that nothing listens on, or with a policy that drops traffic."""
    for service in view.cluster.of_kind("Service"):
        if service.spec.get("type") == "ExternalName":
            yield from _external_name(service, view.cluster)
        elif selector := get_part(service.spec, "selector"):
            backends = view.cluster.backends(service)
            if not backends and view.cluster.pods_in(service.ref.namespace):
                yield from _selects_nothing(service, selector, view.cluster)
            elif backends:
                yield from _empty_endpoints(service, backends, view.cluster)
                yield from _wrong_ports(service, backends)
                yield from _local_traffic(service, backends, view.cluster)
                yield from _foreign_backends(service, backends, view.cluster)
                yield from _sticky_sessions(service, backends)


def _selects_nothing(service: ClusterObject, selector: Document, cluster: Cluster) -> Iterator[Deviation]:
    meant = _meant_pods(service, cluster)
    addresses = cluster.endpoints(service)
    if addresses or (not meant and _lacks_pods(service, cluster)):
        return
    text = f"{service.ref} selects {quoted_labels(selector)}, which no pod has: it has no endpoints"
    undo = format_edit_command(service.ref)
    if meant:
        labels = {key: meant[0].labels[key] for key in selector if key in meant[0].labels}
        if labels:
            text += f"; the pods of {_owner_name(meant[0], cluster)} have {quoted_labels(labels)}"
            undo = format_kubectl(
                "set", service.ref._replace(kind="selector service"), f"'{quoted_labels(labels)}'"
            )
    yield Deviation(
        entity=service.ref,
        kind="config",
        weight=NAMES_CAUSE,
        text=text,
        service=service.ref.name,
        latent=not meant,
        show=format_kubectl("get", service.ref._replace(kind="service,endpoints"), "-o wide"),
        undo=undo,
        figures={"selector": quoted_labels(selector), "endpoints": 0},
    )


def _meant_pods(service: ClusterObject, cluster: Cluster) -> list[ClusterObject]:
    """The pods that the Service was most likely made for: those of the workload that has its name."""
    for kind in CONTROLLERS:
        workload = cluster.get(kind, service.ref.namespace, service.ref.name)
        if workload is not None:
            return cluster.pods_of(workload)
    return [
        p for p in cluster.pods_in(service.ref.namespace) if p.ref.name.startswith(f"{service.ref.name}-")
    ]


def _lacks_pods(service: ClusterObject, cluster: Cluster) -> bool:
    """Whether a workload without pods makes those that are selected, or is meant: that is its own deviation."""
    selector = get_part(service.spec, "selector")
    return any(
        selector.items() <= labels_of_template(workload).items()
        or (workload.spec.get("replicas") == 0 and workload.ref.name == service.ref.name)
        for workload in cluster.of_kind(*CONTROLLERS)
        if workload.ref.namespace == service.ref.namespace and not cluster.pods_of(workload)
    )


def _owner_name(pod: ClusterObject, cluster: Cluster) -> str:
    workload = cluster.workload_of(pod)
    return workload.ref.name if workload else pod.ref.name


def _empty_endpoints(
    service: ClusterObject, backends: list[ClusterObject], cluster: Cluster
) -> Iterator[Deviation]:
    addresses = cluster.endpoints(service)
    ready = [pod for pod in backends if is_ready(pod)]
    if addresses is None or addresses or not ready:
        return
    yield Deviation(
        entity=service.ref,
        kind="config",
        weight=NAMES_CAUSE,
        text=f"{service.ref} has no endpoints although it selects {len(ready)} ready pods",
        service=service.ref.name,
        show=format_kubectl("get", service.ref._replace(kind="endpoints"), "-o yaml"),
        undo=format_edit_command(service.ref),
        figures={"endpoints": 0, "ready_pods": len(ready)},
    )


def _wrong_ports(service: ClusterObject, backends: list[ClusterObject]) -> Iterator[Deviation]:
    """Target ports that no container of the backends declares, where they declare any."""
    declared = [
        port for pod in backends for c in rows_of(pod.spec, "containers") for port in rows_of(c, "ports")
    ]
    names = {str(port["name"]) for port in declared if port.get("name")}
    numbers = {number for port in declared if (number := number_of(port.get("containerPort"))) is not None}
    if not declared:
        return
    for port in service_ports(service):
        target = port.get("targetPort", port.get("port"))
        known = target in numbers if isinstance(target, int) else str(target) in names
        if known or (isinstance(target, str) and target.isdigit() and int(target) in numbers):
            continue
        offered = ", ".join([*map(str, sorted(numbers)), *sorted(names)])
        yield Deviation(
            entity=service.ref,
            kind="config",
            weight=NAMES_CAUSE,
            text=f"{service.ref} sends port {port.get('port')} to target port {target}; its pods listen on {offered}",
            service=service.ref.name,
            # A program may listen on a port that it does not declare; a name must be declared.
            latent=isinstance(target, int),
            show=show_yaml(service.ref),
            undo=format_edit_command(service.ref),
            figures={"target_port": target, "port": port.get("port")},
        )


def _local_traffic(
    service: ClusterObject, backends: list[ClusterObject], cluster: Cluster
) -> Iterator[Deviation]:
    if service.spec.get("internalTrafficPolicy") != "Local":
        return
    nodes = {str(n.ref.name) for n in cluster.of_kind("Node")} or {
        str(pod.spec["nodeName"]) for pod in cluster.of_kind("Pod") if pod.spec.get("nodeName")
    }
    served = {str(pod.spec["nodeName"]) for pod in backends if pod.spec.get("nodeName")}
    bare = nodes - served
    if not bare or _by_daemon_set(backends, cluster):
        return
    yield Deviation(
        entity=service.ref,
        kind="network_loss",
        weight=NAMES_CAUSE,
        since=_written_at(service),
        text=(
            f"{service.ref} has internalTrafficPolicy Local and endpoints on {len(served)} of {len(nodes)} nodes: "
            f"callers on the other {len(bare)} get no answer"
        ),
        service=service.ref.name,
        latent=True,
        show=show_yaml(service.ref),
        undo=format_kubectl("patch", service.ref, """-p '{"spec":{"internalTrafficPolicy":"Cluster"}}'"""),
        figures={"nodes": len(nodes), "served_nodes": len(served)},
    )


def _written_at(service: ClusterObject) -> float | None:
    """When somebody last wrote the Service; None where it is as it was made, or nothing tells."""
    write = last_write(service)
    made = write is None or (service.created is not None and write.time - service.created < 1.0)
    return None if made or write is None else write.time


def _foreign_backends(
    service: ClusterObject, backends: list[ClusterObject], cluster: Cluster
) -> Iterator[Deviation]:
    """Pods of a younger workload behind the Service of another: they carry its labels by mistake."""
    owners = {owner.ref: owner for pod in backends if (owner := cluster.workload_of(pod))}
    own = next((o for o in owners.values() if o.ref.name == service.ref.name), None)
    if own is None or own.created is None:
        return
    for other in owners.values():
        rest = other.ref.name.removeprefix(own.ref.name)
        if other.ref == own.ref or other.created is None or _MEANT_BESIDE.search(rest):
            continue
        if other.created > own.created:
            yield Deviation(
                entity=service.ref,
                kind="config",
                weight=NAMES_CAUSE,
                text=f"{service.ref} also sends requests to the pods of {other.ref}, which carry the labels that it selects",
                service=service.ref.name,
                since=other.created,
                latent=True,
                show=format_kubectl("get", service.ref._replace(kind="endpoints"), "-o wide"),
                undo=format_edit_command(service.ref),
                figures={"selector": quoted_labels(get_part(service.spec, "selector"))},
            )


def _sticky_sessions(service: ClusterObject, backends: list[ClusterObject]) -> Iterator[Deviation]:
    """Session affinity that somebody switched on: callers behind one address all get the same pod."""
    since = _written_at(service)
    if service.spec.get("sessionAffinity") != "ClientIP" or since is None or len(backends) < 2:
        return
    yield Deviation(
        entity=service.ref,
        kind="traffic",
        weight=ACTS,
        text=f"{service.ref} always sends a client address to the same one of its {len(backends)} pods (ClientIP)",
        service=service.ref.name,
        since=since,
        latent=True,
        show=show_yaml(service.ref),
        undo=format_kubectl("patch", service.ref, """-p '{"spec":{"sessionAffinity":"None"}}'"""),
    )


def _by_daemon_set(backends: list[ClusterObject], cluster: Cluster) -> bool:
    owners = [cluster.workload_of(pod) for pod in backends]
    return any(owner is not None and owner.ref.kind == "DaemonSet" for owner in owners)


def _external_name(service: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    target = str(service.spec.get("externalName", "")).rstrip(".")
    host, inside, _ = target.partition(_LOCAL_NAME)
    name, _, namespace = host.partition(".")
    if not inside or not namespace or not cluster.lists("Service", namespace):
        return
    if cluster.get("Service", namespace, name) is None:
        yield Deviation(
            entity=service.ref,
            kind="config",
            weight=NAMES_CAUSE,
            text=f"{service.ref} stands for {target}, and there is no Service {name} in {namespace}",
            service=service.ref.name,
            latent=True,
            show=show_yaml(service.ref),
            undo=format_edit_command(service.ref),
        )
