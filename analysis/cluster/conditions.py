"""Conditions of controllers that no other analyzer knows: certificates, synced secrets, custom resources."""

from collections.abc import Iterator

from opsleuth.analysis import message_meaning
from opsleuth.analysis.cluster.deviation import ClusterView, Deviation, format_describe_command
from opsleuth.analysis.cluster.objects import ClusterObject, Document, parse_moment, rows_of
from opsleuth.analysis.fault_phrases import ACTS

# Kinds whose conditions are read elsewhere, or say nothing by themselves.
_KNOWN = frozenset(
    {
        "Pod", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Rollout",
        "HorizontalPodAutoscaler", "PersistentVolumeClaim", "Namespace", "PodDisruptionBudget", "Service", "Endpoints",
        "EndpointSlice", "CustomResourceDefinition", "APIService", "NetworkPolicy", "ResourceQuota", "Event",
    }
)  # fmt: skip
_GOOD = frozenset(
    {
        "Ready",
        "Available",
        "Synced",
        "Healthy",
        "Reconciled",
        "Established",
        "Issued",
        "Accepted",
        "Programmed",
        "ResolvedRefs",
    }
)
_BAD = frozenset({"Degraded", "Failed", "Stalled", "InvalidRequest"})


def find_failing_conditions(view: ClusterView) -> Iterator[Deviation]:
    """Objects whose controller says, in a condition with a reason, that it could not bring them about."""
    for found in view.cluster.by_ref.values():
        if found.ref.kind in _KNOWN:
            continue
        for row in rows_of(found.status, "conditions"):
            if _is_failing(row):
                yield _report_failing_condition(found, row)
                break
    for service in view.cluster.of_kind("APIService"):
        if (row := service.condition("Available")).get("status") == "False":
            yield _report_failing_condition(service, row)


def _is_failing(row: Document) -> bool:
    kind, status = row.get("type"), row.get("status")
    return bool(row.get("reason")) and (
        (kind in _GOOD and status == "False") or (kind in _BAD and status == "True")
    )


def _report_failing_condition(found: ClusterObject, row: Document) -> Deviation:
    message = str(row.get("message", ""))
    meaning = message_meaning.read_message_meaning(message)
    certificate = found.ref.kind in {"Certificate", "Issuer", "ClusterIssuer", "CertificateRequest"}
    return Deviation(
        entity=found.ref,
        kind="certificate" if certificate else meaning.kind if meaning else "config",
        weight=ACTS,
        text=f"{found.ref}: {row.get('type')} is {row.get('status')} ({row.get('reason')}): {message[:300]}",
        since=parse_moment(row.get("lastTransitionTime")),
        latent=True,
        show=format_describe_command(found.ref),
    )
