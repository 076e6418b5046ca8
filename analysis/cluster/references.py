"""References between objects that point nowhere.

That an object is absent is said only where others of its kind were recorded in the same namespace.
"""

from collections.abc import Iterator
from dataclasses import replace

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_edit_command,
    format_kubectl,
    show_yaml,
)
from opsleuth.analysis.cluster.model import Cluster, ConfigUse, config_uses, is_ready, service_ports
from opsleuth.analysis.cluster.objects import ClusterObject, Document, ObjectRef, get_part, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

_DEFAULT_ACCOUNT = "default"
_CLASS_NOTE = "kubernetes.io/ingress.class"


def find_dangling_references(view: ClusterView) -> Iterator[Deviation]:
    """Templates, claims, ingresses, autoscalers and bindings that name what does not exist."""
    cluster = view.cluster
    for workload, template in cluster.templates():
        for use in config_uses(workload, template):
            yield from _check_config(workload, use, cluster)
        yield from _check_account(workload, template, cluster)
        yield from _check_claims(workload, template, cluster)
        yield from _check_priority(workload, template, cluster)
    for ingress in cluster.of_kind("Ingress"):
        named = _serves_host_in(ingress, view.alert.text)
        yield from (replace(d, latent=d.latent and not named) for d in _check_ingress(ingress, cluster))
    for scaler in cluster.of_kind("HorizontalPodAutoscaler"):
        yield from _check_scale_target(scaler, cluster)
    for binding in cluster.of_kind("RoleBinding", "ClusterRoleBinding"):
        yield from _check_role(binding, cluster)


def _report_missing(
    workload: ClusterObject,
    wanted: ObjectRef,
    cluster: Cluster,
    what: str,
    undo: str = "",
) -> Deviation:
    """A deviation of what is absent; latent while the pods that were made before run on."""
    pods = cluster.pods_of(workload) if workload.ref.kind != "Pod" else [workload]
    return Deviation(
        entity=wanted,
        kind="config",
        weight=NAMES_CAUSE,
        text=f"{workload.ref} needs {what}, which does not exist",
        service=workload.ref.name,
        latent=any(is_ready(pod) for pod in pods),
        show=format_describe_command(workload.ref),
        undo=undo or (format_edit_command(workload.ref) if workload.ref.kind != "Pod" else ""),
    )


def _check_config(workload: ClusterObject, use: ConfigUse, cluster: Cluster) -> Iterator[Deviation]:
    if use.optional or not cluster.lists(use.ref.kind, use.ref.namespace):
        return
    found = cluster.by_ref.get(use.ref)
    if found is None:
        yield _report_missing(workload, use.ref, cluster, str(use.ref))
        return
    keys = {*get_part(found.body, "data"), *get_part(found.body, "binaryData")}
    if use.key and keys and use.key not in keys:
        yield _report_missing(
            workload, use.ref, cluster, f"key {use.key} of {use.ref}", undo=format_edit_command(use.ref)
        )


def _check_account(workload: ClusterObject, template: Document, cluster: Cluster) -> Iterator[Deviation]:
    name = template.get("serviceAccountName") or template.get("serviceAccount")
    namespace = workload.ref.namespace
    if not name or name == _DEFAULT_ACCOUNT or not cluster.lists("ServiceAccount", namespace):
        return
    wanted = ObjectRef("ServiceAccount", namespace, str(name))
    if wanted not in cluster.by_ref:
        undo = f"kubectl -n {namespace} create serviceaccount {name}"
        yield _report_missing(workload, wanted, cluster, str(wanted), undo=undo)


def _check_claims(workload: ClusterObject, template: Document, cluster: Cluster) -> Iterator[Deviation]:
    for volume in rows_of(template, "volumes"):
        name = get_part(volume, "persistentVolumeClaim").get("claimName")
        wanted = ObjectRef("PersistentVolumeClaim", workload.ref.namespace, str(name))
        if name and cluster.lists(wanted.kind, wanted.namespace) and wanted not in cluster.by_ref:
            yield _report_missing(workload, wanted, cluster, str(wanted))


def _check_priority(workload: ClusterObject, template: Document, cluster: Cluster) -> Iterator[Deviation]:
    name = template.get("priorityClassName")
    wanted = ObjectRef("PriorityClass", None, str(name))
    # The system's own classes exist everywhere, listed or not.
    named = name and not str(name).startswith("system-")
    if named and cluster.lists("PriorityClass", None) and wanted not in cluster.by_ref:
        yield _report_missing(workload, wanted, cluster, str(wanted))


def _check_ingress(ingress: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    namespace = ingress.ref.namespace
    chosen = ingress.spec.get("ingressClassName") or ingress.annotations.get(_CLASS_NOTE)
    if (
        chosen
        and cluster.lists("IngressClass", None)
        and cluster.get("IngressClass", None, str(chosen)) is None
    ):
        yield _of_ingress(ingress, f"names the class {chosen}, which does not exist", latent=True)
    yield from _check_certificates(ingress, cluster)
    for backend in _list_backends(ingress):
        name, port = _backend_service(backend)
        if not name or not cluster.lists("Service", namespace):
            continue
        service = cluster.get("Service", namespace, name)
        if service is None:
            yield _of_ingress(ingress, f"sends traffic to Service {name}, which does not exist", latent=True)
        elif port and port not in {
            v for row in service_ports(service) for v in (row.get("port"), row.get("name"))
        }:
            yield _of_ingress(
                ingress, f"sends traffic to port {port} of Service {name}, which has no such port"
            )


def _check_certificates(ingress: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    """Hosts whose certificate is in no Secret: the controller shows one of its own, which nobody trusts."""
    for row in rows_of(ingress.spec, "tls"):
        name, namespace = row.get("secretName"), ingress.ref.namespace
        if not name or not cluster.lists("Secret", namespace) or cluster.get("Secret", namespace, str(name)):
            continue
        hosts = ", ".join(map(str, row.get("hosts") or ())) or "its hosts"
        missing = f"takes the certificate of {hosts} from Secret {name}, which does not exist"
        yield replace(_of_ingress(ingress, missing), kind="certificate")


def _serves_host_in(ingress: ClusterObject, text: str) -> bool:
    rules, secured = rows_of(ingress.spec, "rules"), rows_of(ingress.spec, "tls")
    hosts = [str(rule.get("host", "")) for rule in rules]
    hosts += [str(host) for row in secured for host in row.get("hosts") or ()]
    return any(host and host in text for host in hosts)


def _of_ingress(ingress: ClusterObject, what: str, *, latent: bool = True) -> Deviation:
    return Deviation(
        entity=ingress.ref,
        kind="config",
        weight=NAMES_CAUSE,
        text=f"{ingress.ref} {what}",
        service=ingress.ref.name,
        latent=latent,
        show=show_yaml(ingress.ref),
        undo=format_edit_command(ingress.ref),
    )


def _list_backends(ingress: ClusterObject) -> Iterator[Document]:
    for name in ("defaultBackend", "backend"):
        if backend := get_part(ingress.spec, name):
            yield backend
    for rule in rows_of(ingress.spec, "rules"):
        for path in rows_of(get_part(rule, "http"), "paths"):
            yield get_part(path, "backend")


def _backend_service(backend: Document) -> tuple[str, int | str | None]:
    """Name and port of a backend in the form of networking.k8s.io/v1, or of v1beta1."""
    service = get_part(backend, "service")
    if service:
        port = get_part(service, "port")
        return str(service.get("name", "")), port.get("number") or port.get("name")
    return str(backend.get("serviceName", "")), backend.get("servicePort")


def _check_scale_target(scaler: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    target = get_part(scaler.spec, "scaleTargetRef")
    kind, name = str(target.get("kind", "")), str(target.get("name", ""))
    if (
        name
        and cluster.lists(kind, scaler.ref.namespace)
        and cluster.get(kind, scaler.ref.namespace, name) is None
    ):
        yield Deviation(
            entity=scaler.ref,
            kind="config",
            weight=NAMES_CAUSE,
            text=f"{scaler.ref} scales {kind} {name}, which does not exist",
            service=scaler.ref.name,
            latent=True,
            show=format_describe_command(scaler.ref),
            undo=format_edit_command(scaler.ref),
        )


def _check_role(binding: ClusterObject, cluster: Cluster) -> Iterator[Deviation]:
    role = get_part(binding.body, "roleRef")
    kind, name = str(role.get("kind", "")), str(role.get("name", ""))
    namespace = binding.ref.namespace if kind == "Role" else None
    if not name or not cluster.lists(kind, namespace) or cluster.get(kind, namespace, name) is not None:
        return
    subjects = [
        str(s.get("name")) for s in rows_of(binding.body, "subjects") if s.get("kind") == "ServiceAccount"
    ]
    yield Deviation(
        entity=ObjectRef(kind, namespace, name),
        kind="permission",
        weight=NAMES_CAUSE,
        text=f"{binding.ref} gives {', '.join(subjects) or 'its subjects'} the {kind} {name}, which does not exist",
        service=subjects[0] if subjects else binding.ref.name,
        latent=True,
        show=format_kubectl("get", binding.ref, "-o yaml"),
        undo=format_edit_command(binding.ref),
    )
