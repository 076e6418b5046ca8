"""Autoscalers that cannot scale, or have reached their maximum."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_edit_command,
)
from opsleuth.analysis.cluster.objects import ClusterObject, Document, get_part, number_of, parse_moment
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

_KINDS = ("HorizontalPodAutoscaler",)
# At its maximum an autoscaler shows that there is load, and seldom why.
_HINT = 2.0
# Scaling is off on purpose while a workload has no replicas.
_ON_PURPOSE = frozenset({"ScalingDisabled"})


def find_stuck_autoscalers(view: ClusterView) -> Iterator[Deviation]:
    """Autoscalers that do not act, by the conditions that their controller sets."""
    for scaler in view.cluster.of_kind(*_KINDS):
        target = get_part(scaler.spec, "scaleTargetRef")
        name = str(target.get("name", scaler.ref.name))
        failing = [
            c
            for c in (scaler.condition("ScalingActive"), scaler.condition("AbleToScale"))
            if c.get("status") == "False" and c.get("reason") not in _ON_PURPOSE
        ]
        if failing:
            yield _report_inactive_scaler(scaler, name, failing[0])
        elif _at_maximum(scaler):
            yield _report_exhausted_scaler(scaler, name)


def _report_inactive_scaler(scaler: ClusterObject, name: str, row: Document) -> Deviation:
    return Deviation(
        entity=scaler.ref,
        kind="config",
        weight=NAMES_CAUSE,
        text=f"{scaler.ref} does not scale {name} ({row.get('reason')}): {str(row.get('message', ''))[:300]}",
        service=name,
        since=parse_moment(row.get("lastTransitionTime")),
        latent=True,
        show=format_describe_command(scaler.ref),
        undo=format_edit_command(scaler.ref),
    )


def _at_maximum(scaler: ClusterObject) -> bool:
    condition = scaler.condition("ScalingLimited")
    most, now = number_of(scaler.spec.get("maxReplicas")), number_of(scaler.status.get("currentReplicas"))
    return condition.get("status") == "True" and condition.get("reason") == "TooManyReplicas" and now == most


def _report_exhausted_scaler(scaler: ClusterObject, name: str) -> Deviation:
    most = scaler.spec.get("maxReplicas")
    return Deviation(
        entity=scaler.ref,
        kind="quota",
        weight=_HINT,
        text=f"{scaler.ref} wants more than the {most} replicas that it may give {name}",
        service=name,
        since=parse_moment(scaler.condition("ScalingLimited").get("lastTransitionTime")),
        latent=True,
        show=format_describe_command(scaler.ref),
        undo=format_edit_command(scaler.ref),
        figures={"max_replicas": most},
    )
