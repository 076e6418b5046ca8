"""What the labels of an alert name: the workload that it is about, or the exporter that measured it.

Prometheus adds labels of the scraped target to every series: behind an exporter, `service`, `job` and often `pod` and
`container` are the exporter's. What the series is about then appears in `exported_…` labels, or in those of the
workload (`deployment`, `pod`, …).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Labels = Mapping[str, Any]

SERVICE_LABELS = (
    "service", "service_name", "app", "app_kubernetes_io_name", "application", "deployment", "statefulset", "component",
)  # fmt: skip
"""Labels that name a service, the first of them that is there."""
_WORKLOAD_LABELS = (
    "deployment", "statefulset", "daemonset", "cronjob", "workload", "workload_name", "rollout", "horizontalpodautoscaler",
    "label_app_kubernetes_io_name", "label_app", "owner_name", "created_by_name", "replicaset", "job_name", "container",
    "container_name", "pod", "pod_name",
)  # fmt: skip
_EXPORTER = re.compile(
    r"(?:^|[-_./])(?:kube-?state-?metrics|cadvisor|kubelet|black-?box|push-?gateway|node-problem-detector|metrics-server|"
    r"telegraf|collectd|netdata|vmagent|grafana-agent|alloy|otel-?collector|opentelemetry-collector)(?=$|[-_./:])"
    r"|[a-z0-9][-_]exporter(?=$|[-_./:])",
    re.IGNORECASE,
)
_SAY_NOTHING = frozenset(
    {"pod", "istio-proxy", "linkerd-proxy", "envoy", "envoy-sidecar", "cloud-sql-proxy", "vault-agent"}
)
# The letters and digits of which Kubernetes makes names; no vowels, so that no word comes about.
_GENERATED = "bcdfghjklmnpqrstvwxz2456789"
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@]*@)?([A-Za-z][\w.-]*)", re.IGNORECASE)
_POD_SUFFIX = re.compile(rf"(?:-[{_GENERATED}0-9a-f]{{6,10}})?-[{_GENERATED}]{{5}}$|-\d{{1,3}}$")
_HASH_SUFFIX = re.compile(rf"-[{_GENERATED}0-9a-f]{{6,10}}$|-\d{{6,}}$")


def is_exporter(name: str) -> bool:
    """Whether this is the name of a program that measures others: `x-exporter`, kube-state-metrics, a collector."""
    return bool(_EXPORTER.search(name))


def service_in(labels: Labels) -> str | None:
    """The service that the labels name: the workload in place of an exporter, and the exporter where nothing else is."""
    named = next((word for name in SERVICE_LABELS if (word := _read_label(labels, name))), None)
    if named is None or not is_exporter(named):
        return _read_label(labels, "exported_service") or named
    return next(workloads_in(labels), named)


def behind_exporter(service: str | None, labels: Labels) -> str | None:
    """The service that an alert came with, or the workload of its labels where that names an exporter."""
    return service_in({**labels, "service": service}) if service and is_exporter(service) else service


def workloads_in(labels: Labels) -> Iterator[str]:
    """Names of the workload, the surest first; none of an exporter or a sidecar."""
    candidates = [_read_label(labels, f"exported_{name}") for name in (*SERVICE_LABELS, *_WORKLOAD_LABELS)]
    candidates += [_read_label(labels, name) for name in SERVICE_LABELS]
    for name in _WORKLOAD_LABELS:
        candidates.append(_base_name(name, _read_label(labels, name)))
        candidates.append(_base_name(name, _read_label(labels, f"exported_{name}")))
    for candidate in dict.fromkeys(candidates):
        if candidate and not is_exporter(candidate) and candidate.casefold() not in _SAY_NOTHING:
            yield candidate


def targets_in(labels: Labels) -> Iterator[str]:
    """Hosts that an exporter looked at, as `orders-db:3306` or a URL names them, whole and without their domain."""
    for name in ("target", "exported_instance", "instance", "host", "hostname"):
        if host := _HOST.match(_read_label(labels, name) or ""):
            yield host[1]
            yield host[1].partition(".")[0]


def _base_name(label: str, value: str | None) -> str | None:
    """The name of the controller: a pod, a replica set and a job carry generated endings."""
    if value is None:
        return None
    if label.startswith("pod"):
        return pod_owner(value)
    return (
        _HASH_SUFFIX.sub("", value)
        if label in ("replicaset", "job_name", "created_by_name", "owner_name")
        else value
    )


def pod_owner(pod: str) -> str:
    """The name of what made a pod, by the endings that controllers give."""
    return _POD_SUFFIX.sub("", pod)


def _read_label(labels: Labels, name: str) -> str | None:
    value = labels.get(name)
    return value[:300] if isinstance(value, str) and value else None
