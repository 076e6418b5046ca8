"""Turn the deviations of a cluster into findings, weighed with everything else known about the affected services."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from opsleuth.analysis.changes import drop_rolled_back_changes
from opsleuth.analysis.cluster import (
    admission,
    autoscaling,
    capacity,
    conditions,
    deletion,
    jobs,
    memory,
    mesh,
    mesh_access,
    named_objects,
    naming,
    network_policies,
    nodes,
    rbac,
    references,
    services,
    storage,
    workloads,
)
from opsleuth.analysis.cluster.alert_words import is_job_spoken_of, is_object_named
from opsleuth.analysis.cluster.deviation import Analyzer, ClusterView, Deviation, entity_figure, show_yaml
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.objects import ObjectRef
from opsleuth.analysis.cluster.observed_calls import find_calls
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.object_owners import ObjectOwners, collect_object_owners
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, Recording, ServiceChange

DETECTOR = "cluster"

ANALYZERS: tuple[Analyzer, ...] = (
    services.find_broken_services,
    workloads.find_unmet_workloads,
    workloads.find_failed_pods,
    workloads.find_sidecar_trouble,
    autoscaling.find_stuck_autoscalers,
    jobs.find_job_troubles,
    deletion.find_undeleted_objects,
    storage.find_unbound_storage,
    network_policies.find_cut_paths,
    references.find_dangling_references,
    admission.find_admission_trouble,
    capacity.find_exhausted_capacity,
    nodes.find_unwell_nodes,
    nodes.find_failing_network_agents,
    naming.find_broken_naming,
    mesh.find_mesh_faults,
    mesh_access.find_refused_callers,
    mesh_access.find_harmful_destinations,
    conditions.find_failing_conditions,
)

# What a change of an object of this kind does where it breaks something.
_CHANGED: Mapping[str, str] = {
    "NetworkPolicy": "network_loss",
    "PeerAuthentication": "certificate",
    "AuthorizationPolicy": "permission",
    "Role": "permission",
    "RoleBinding": "permission",
    "ClusterRole": "permission",
    "ClusterRoleBinding": "permission",
    "Secret": "permission",
    "ResourceQuota": "quota",
    "LimitRange": "quota",
}
# Changes that break something mostly do so within the hour; a sample of the monitor later is still before.
_BEFORE_SECONDS, _AFTER_SECONDS = 3600.0, 60.0
# Older than the window by as much, a deviation that nobody complained of until now is background.
_STANDING_SECONDS = 3600.0
_NEIGHBOUR = 0.9
# A name or an address in a message, without a port.
_WORD = re.compile(r"[A-Za-z0-9-]+(?:\.\d+){3}|[A-Za-z0-9-]+")
# A flag works within the time in which its readers poll it.
_FLAG_SECONDS = 300.0
# What a change of an object weighs beside a deviation that shows in the object itself.
_CHANGE_WEIGHT = 0.75


def find_cluster_deviations(recording: Recording) -> list[Finding]:
    """One finding for each deviation, strongest first; latent ones say so among their figures."""
    view = ClusterView.of(recording)
    known = collect_object_owners(recording)
    found = [deviation for analyze in ANALYZERS if view.cluster for deviation in analyze(view)]
    if view.cluster:
        found += [*nodes.find_kernel_trouble(recording, view), *nodes.find_wrong_clocks(recording, view)]
    found += named_objects.find_named_objects(view, known)
    found += rbac.find_forbidden_requests(recording, view.cluster)
    found += _object_changes(recording, view, known)
    findings = [_convert_to_finding(deviation, known, recording) for deviation in _keep_weightiest(found)]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.text))


def _keep_weightiest(deviations: Sequence[Deviation]) -> Iterator[Deviation]:
    """Each entity with one deviation of a kind: the weightiest."""
    best: dict[tuple[ObjectRef, str, str | None], Deviation] = {}
    for found in deviations:
        key = found.entity, found.kind, found.service
        if key not in best or (not found.latent, found.weight) > (not best[key].latent, best[key].weight):
            best[key] = found
    yield from best.values()


def _object_changes(recording: Recording, view: ClusterView, known: ObjectOwners) -> Iterator[Deviation]:
    """Changes of objects other than a workload's template shortly before the onset, for each service they touch."""
    onset = assumed_onset_of(recording)
    changes = sorted(recording.changes or (), key=lambda c: (c.time, c.summary))
    for change in drop_rolled_back_changes(changes):
        ref = memory.object_of_change(change) or memory.find_flag_map(change, view.cluster)
        if ref is None or ref.kind in {"Deployment", "StatefulSet", "DaemonSet", "Rollout", "Pod"}:
            continue
        latest = _latest_time_of(change)
        if not (onset - _BEFORE_SECONDS <= latest and change.time <= onset + _AFTER_SECONDS):
            continue
        for service in memory.services_touched(change, view.cluster, known.names):
            yield _object_change(change, ref, service, onset)


def _latest_time_of(change: ServiceChange) -> float:
    """When the change was made at the latest: of one that only two readings tell, the later reading."""
    until = (change.extra or {}).get("until")
    return float(until) if isinstance(until, int | float) else change.time


def _object_change(change: ServiceChange, ref: ObjectRef, service: str, onset: float) -> Deviation:
    latest = _latest_time_of(change)
    ahead = max(onset - latest, 0.0)
    named = "coredns" in ref.name or "kube-dns" in ref.name
    when = f"{ahead:.0f} s before" if ahead < 100.0 else f"{ahead / 60.0:.0f} min before"
    if latest != change.time:
        when = "at a time that two readings enclose, before or after"
    return Deviation(
        entity=ref,
        kind="dns" if named else _CHANGED.get(ref.kind, "config"),
        weight=_CHANGE_WEIGHT * NAMES_CAUSE / (1.0 + ahead / _BEFORE_SECONDS),
        text=f"{ref} was changed {when} the onset: {change.summary}",
        service=service,
        since=change.time,
        latent=True,
        show=show_yaml(ref),
        figures={
            "change": change.kind,
            "summary": change.summary,
            **({"author": change.author} if change.author else {}),
        },
    )


def _convert_to_finding(deviation: Deviation, known: ObjectOwners, recording: Recording) -> Finding:
    service = deviation.service or known.serving(deviation.entity.name, deviation.entity.kind)
    alert = recording.alert
    about = alert.service in {None, service} or _is_named(deviation.entity.name, service, text=alert.text)
    old = (
        deviation.since is not None
        and deviation.since < recording.window.start - _STANDING_SECONDS
        and not _is_named(deviation.entity.name, text=alert.text)
        and not is_job_spoken_of(deviation.entity, alert.text, known.names)
    )
    figures = {
        **deviation.figures,
        "entity": entity_figure(deviation.entity),
        "show": deviation.show,
        "undo": deviation.undo,
    }
    if deviation.victims:
        figures["victims"] = list(deviation.victims)
    if deviation.latent or old or _is_outside(service, deviation, recording):
        figures["latent"] = True
    if old:
        figures["standing"] = True
    return Finding(
        detector=DETECTOR,
        signal="objects",
        service=service,
        kind=deviation.kind,
        size=deviation.weight * (1.0 if about else _NEIGHBOUR),
        text=deviation.text if deviation.text.endswith(".") else f"{deviation.text}.",
        figures={name: value for name, value in figures.items() if value not in ("", None)},
        onset=deviation.since,
    )


def _is_named(*names: str | None, text: str) -> bool:
    """Whether one of the names appears in the text; an unknown name appears nowhere."""
    return any(name and name in text for name in names)


def _is_outside(service: str, deviation: Deviation, recording: Recording) -> bool:
    """Whether the topology tells what belongs to the incident, and nothing that the deviation touches does.

    What lies beneath every service (nodes, names) belongs to each.
    """
    inside = {name for edge in recording.topology or () for name in (edge.caller, edge.callee)}
    alert = recording.alert
    if alert.service not in inside or deviation.entity.kind == "Node" or deviation.kind == "dns":
        return False
    named = _is_named(service, deviation.entity.name, text=alert.text)
    return not named and not inside & {service, *deviation.victims}


def weigh_latent(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; latent deviations become background unless what they touch is in trouble by other evidence."""
    if _is_all_there_is(recording, findings):
        # Somebody scaled it to 0 or suspended it: that is a wish, unless something suffers from it.
        return [replace(f, direction="victim") if f.figures.get("chosen") else f for f in findings]
    findings = _blame_flags(recording, findings)
    troubled = {f.service for f in findings if _is_trouble(f)}
    callers = _callers_by_callee(recording)
    onset = assumed_onset_of(recording)
    troubled |= _find_services_complained_of(recording, findings, callers)
    text = recording.alert.text
    return [
        f
        if f.detector != DETECTOR
        or not f.figures.get("latent")
        or (not f.figures.get("standing") and troubled & _list_touched(f, callers, onset))
        or (
            f.figures["entity"]["name"] and is_object_named(ObjectRef(**f.figures["entity"]), f.service, text)
        )
        else replace(f, direction="victim")
        for f in findings
    ]


def _is_all_there_is(recording: Recording, findings: Sequence[Finding]) -> bool:
    """Whether nothing but the state of a cluster was handed in, with no alert and nothing that harms by itself.

    Then what is not as it should be is what was asked for, however long it has been so.
    """
    alert = recording.alert
    measured = recording.metrics or recording.logs or recording.spans
    alerted = alert.fired is not None or alert.onset is not None or alert.service is not None
    return not (
        measured or alerted or any(f.detector == DETECTOR and not f.figures.get("latent") for f in findings)
    )


def _callers_by_callee(recording: Recording) -> Mapping[str, set[str]]:
    callers: dict[str, set[str]] = {}
    for edge in find_calls(recording, Cluster.of(recording)):
        callers.setdefault(edge.callee, set()).add(edge.caller)
    return callers


def _find_services_complained_of(
    recording: Recording, findings: Sequence[Finding], callers: Mapping[str, set[str]]
) -> set[str]:
    """Services with a deviation that the complaints of their callers name, by name or by address."""
    deviating = {f.service for f in findings if f.detector == DETECTOR and f.figures.get("latent")}
    words: dict[str, set[str]] = {}
    for f in findings:
        if f.signal == "logs" and _is_trouble(f):
            words.setdefault(f.service, set()).update(_WORD.findall(str(f.figures.get("message", ""))))
    addresses: dict[str, set[str]] = {}
    for address, name in Cluster.of(recording).names_of_ips().items() if deviating and words else ():
        addresses.setdefault(name, {name}).add(address)
    return {
        name
        for name in deviating
        if any(
            said & addresses.get(name, {name}) for who, said in words.items() if who in callers.get(name, ())
        )
    }


def _list_touched(finding: Finding, callers: Mapping[str, set[str]], onset: float) -> set[str]:
    """Whose trouble makes a latent deviation count: what it breaks, and, where it is new, who calls that.

    That an object was changed says nothing of what its callers see; only a state that is wrong does.
    """
    broken = {finding.service, *finding.figures.get("victims", ())}
    if finding.figures.get("change") or finding.onset is None or finding.onset < onset - _BEFORE_SECONDS:
        return broken
    return broken.union(*(callers.get(name, set()) for name in broken))


def _blame_flags(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; what a service writes since a flag of it was turned, and what its callers pass on, is a victim's."""
    flagged = _find_flagged_services(recording, findings)
    kinds = {f.kind for f in findings if f.service in flagged and f.signal == "logs"}
    callers = {edge.caller for edge in recording.topology or () if edge.callee in flagged}
    return [
        replace(f, direction="victim")
        if f.signal == "logs" and (f.service in flagged or (f.service in callers and f.kind in kinds))
        else f
        for f in findings
    ]


def _find_flagged_services(recording: Recording, findings: Sequence[Finding]) -> set[str]:
    """Services for which a flag was turned at the onset: what they write since then is the flag's doing."""
    onset = assumed_onset_of(recording)
    return {
        f.service
        for f in findings
        if f.detector == DETECTOR
        and f.figures.get("change") == "flag"
        and f.onset is not None
        and onset - _FLAG_SECONDS <= f.onset
        and any(_is_trouble(other) and other.service == f.service for other in findings)
    }


def _is_trouble(finding: Finding) -> bool:
    return (
        finding.detector not in {DETECTOR, "changes"} and finding.direction != "healthy" and finding.size > 0
    )
