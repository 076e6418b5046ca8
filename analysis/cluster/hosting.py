"""What runs below the services: an unhealthy node explains the trouble of its pods."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from opsleuth.analysis.cluster.detector import DETECTOR
from opsleuth.analysis.cluster.model import CONTROLLERS
from opsleuth.analysis.fault_kinds import SYMPTOMS, explains_symptom
from opsleuth.analysis.records import Finding, LogLine, Recording, ServiceDependency


def blame_nodes(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those of a node's workloads that the node's own trouble explains become a victim's."""
    under: dict[str, list[Finding]] = {}
    for finding in _of_nodes(findings):
        for name in finding.figures.get("victims", ()):
            under.setdefault(name, []).append(finding)
    return [
        replace(f, direction="victim")
        if f.direction == "cause" and any(_is_explained_by_node(f, node) for node in under.get(f.service, ()))
        else f
        for f in findings
    ]


def _of_nodes(findings: Sequence[Finding]) -> list[Finding]:
    return [
        f
        for f in findings
        if f.detector == DETECTOR
        and f.direction == "cause"
        and f.figures["entity"]["kind"] == "Node"
        and f.service == f.figures["entity"]["name"]
    ]


def _is_explained_by_node(finding: Finding, node: Finding) -> bool:
    alike = finding.kind == node.kind or finding.kind in SYMPTOMS or explains_symptom(node.kind, finding.kind)
    return alike and finding.signal != "changes"


def with_node_lines(recording: Recording) -> Recording:
    """The recording with what a node's kernel and daemons write said to be the node's.

    A writer that is a service, or makes pods, keeps its lines.
    """
    nodes = {state.name for state in recording.objects or () if state.kind == "Node"}
    if not nodes or not any(line.host in nodes for line in recording.logs or ()):
        return recording
    services = {name for edge in recording.topology or () for name in (edge.caller, edge.callee)}
    services |= {series.service for series in recording.metrics or ()}
    services |= {state.name for state in recording.objects or () if state.kind in CONTROLLERS}
    lines = [
        replace(line, service=str(line.host)) if _is_of_node(line, nodes, services) else line
        for line in recording.logs or ()
    ]
    return replace(recording, logs=lines)


def _is_of_node(line: LogLine, nodes: Collection[str], services: Collection[str]) -> bool:
    return line.host in nodes and not line.pod and line.service not in services


def with_nodes(recording: Recording, findings: Sequence[Finding]) -> Recording:
    """The recording with a path from each workload to the unwell node that it runs on, for who explains whom."""
    edges = [
        ServiceDependency(name, finding.service)
        for finding in _of_nodes(findings)
        for name in finding.figures.get("victims", ())
    ]
    if not edges or recording.topology is None:
        return recording
    return replace(recording, topology=[*recording.topology, *edges])
