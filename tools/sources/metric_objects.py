"""What a metric's labels are about where one program reports on many objects: a workload, a pod of it, a node, a claim."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opsleuth.alerts.labels import is_exporter, pod_owner

Labels = Mapping[str, str]

OBJECT_METRICS = "kube_.+|container_.+"
"""Names, as a pattern, of the metrics that may be about objects of a cluster."""
# Workloads before the pods they make; a pod or a claim is named where no workload is.
_WORKLOADS = (
    "deployment",
    "statefulset",
    "daemonset",
    "cronjob",
    "horizontalpodautoscaler",
    "poddisruptionbudget",
)
_OTHERS = ("persistentvolumeclaim", "node")
OBJECT_LABELS = (*_WORKLOADS, "job_name", "replicaset", "pod", *_OTHERS)
EXPORTED_LABELS = tuple(f"exported_{name}" for name in OBJECT_LABELS)
# What a series counts of its object: each value is a metric of its own.
STATE_LABELS = ("phase", "condition", "reason", "status", "resource")
_MADE_BY_JOB = re.compile(r"-\d{6,}$")
_MADE_BY_DEPLOYMENT = re.compile(r"-[0-9a-f]{6,10}$|-[bcdfghjklmnpqrstvwxz2456789]{6,10}$")


class MetricObject(NamedTuple):
    """What a series is about: the workload (or what else its labels name), and the pod of it where one is named."""

    service: str
    pod: str | None


def name_object(labels: Labels) -> MetricObject | None:
    """What the labels are about; None for what is neither a workload, a node nor a claim."""
    pod = _read_name(labels, "pod")
    for name in _WORKLOADS:
        if found := _read_name(labels, name):
            return MetricObject(found, pod)
    if job := _read_name(labels, "job_name"):
        return MetricObject(_MADE_BY_JOB.sub("", job), pod)
    if replica_set := _read_name(labels, "replicaset"):
        return MetricObject(_MADE_BY_DEPLOYMENT.sub("", replica_set), pod)
    if pod:
        return MetricObject(pod_owner(pod), pod)
    other = next((found for name in _OTHERS if (found := _read_name(labels, name))), None)
    return MetricObject(other, None) if other else None


def _read_name(labels: Labels, name: str) -> str | None:
    """The exported label, which is the object's own, else the plain one where it does not name the exporter."""
    plain = labels.get(name) or None
    return labels.get(f"exported_{name}") or (None if plain and is_exporter(plain) else plain)


def name_state(metric: str, labels: Labels) -> str:
    """The metric with the state that the series counts, such as `kube_pod_status_phase{phase=Failed}`."""
    states = ",".join(f"{name}={labels[name]}" for name in STATE_LABELS if labels.get(name))
    return f"{metric}{{{states}}}" if states else metric


def never_happened(metric: str, values: Sequence[float]) -> bool:
    """Whether the series counts a state that its object was never in: of those there are many for each object."""
    return metric.endswith("}") and not any(values)
