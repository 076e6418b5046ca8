"""Symptoms that the state of the service's own pods explains, and their names where that state is known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opsleuth.analysis.cluster.deviation import entity_figure, format_describe_command
from opsleuth.analysis.cluster.model import Cluster, containers_of
from opsleuth.analysis.cluster.objects import ClusterObject, get_part
from opsleuth.analysis.records import Finding, Recording

_NO_ANSWER = frozenset({"silence", "unanswered"})
_OF_PODS = frozenset({"crash", "probe"})
# Less is what a pod shows in passing.
_LEAST_SIZE = 5.0
_READ_ONLY = "read-only file"


def explain_symptoms(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; a service that does not answer because its pods end is named by that, a sealed disk by its rule."""
    reasons = _reasons_of_silence(findings)
    sealed = _sealed_workloads(recording)
    return [_explain_symptom(finding, reasons, sealed) for finding in findings]


def _reasons_of_silence(findings: Sequence[Finding]) -> dict[str, str]:
    ended = [
        f
        for f in findings
        if f.signal in {"objects", "events"}
        and f.kind in _OF_PODS
        and f.direction == "cause"
        and f.size >= _LEAST_SIZE
    ]
    return {f.service: f.kind for f in sorted(ended, key=lambda f: f.size)}


def _sealed_workloads(recording: Recording) -> dict[str, ClusterObject]:
    """The workloads of which a container must not write to its own file system."""
    return {
        workload.ref.name: workload
        for workload, template in Cluster.of(recording).templates()
        if any(
            get_part(c, "securityContext").get("readOnlyRootFilesystem") is True
            for c in containers_of(template)
        )
    }


def _explain_symptom(
    finding: Finding, reasons: Mapping[str, str], sealed: Mapping[str, ClusterObject]
) -> Finding:
    if finding.detector in _NO_ANSWER and finding.kind == "dependency" and finding.service in reasons:
        return replace(finding, kind=reasons[finding.service])
    workload = sealed.get(finding.service)
    if finding.kind == "disk" and workload and _READ_ONLY in str(finding.figures.get("message", "")).lower():
        named = {
            "entity": entity_figure(workload.ref),
            "show": format_describe_command(workload.ref),
        }
        return replace(finding, kind="config", figures={**finding.figures, **named})
    return finding
