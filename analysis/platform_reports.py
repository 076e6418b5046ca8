"""What the platform itself reports: events, and the states of pods, jobs, nodes, controllers and deliveries.

A finding of size 0 says that a reported trouble is over; one of direction `healthy` that what the alert is about
is as it should be. Other sizes are the weights of `phrases` (12 names the cause, 8 tells what the platform did,
1 shows that something suffers), less where the trouble is not what the alert is about, or older than the incident.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opsleuth.analysis import argocd_delivery, kubectl_output, message_meaning, workloads
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE, SHOWS
from opsleuth.analysis.namespaces import foreign_namespaces
from opsleuth.analysis.object_owners import CONTROLLERS, ObjectOwners, collect_object_owners
from opsleuth.analysis.records import AlertFacts, Finding, PlatformEvent, Recording
from opsleuth.analysis.workload_diagnosis import (
    REASONS,
    STEADY_SECONDS,
    diagnose_workload,
    estimate_trouble_start,
)
from opsleuth.analysis.workloads import Workload
from opsleuth.state.plurals import format_count, format_times

# Normal events that undo the trouble of a kind, or a reason, on the same object.
_UNDOES: Mapping[str, str] = {
    "Scheduled": "scheduling",
    "Pulled": "image_pull",
    "SuccessfulCreate": "FailedCreate",
    "SuccessfulAttachVolume": "FailedAttachVolume",
    "NodeReady": "NodeNotReady",
    "NodeHasSufficientMemory": "memory",
    "NodeHasNoDiskPressure": "storage_full",
}
_NEVER = float("-inf")
# Complaints that a ready replica does not answer.
_PERFORMANCE = re.compile(r"\b(slow\w*|laten\w+|error\w*|time-?outs?|fail\w*|5xx)\b", re.IGNORECASE)
# What objects of a platform can be asked for by their state: that their replicas are ready says nothing of other symptoms.
_STATE = re.compile(
    r"pods?\b|containers?\b|replicas?|deployments?\b|rollouts?\b|workloads?\b|restart|crash|pending|\bready|not ?ready"
    r"|statefulset|daemonset|\bjobs?\b|\bnodes?\b|evict|\boom|image ?pull|\bprobes?\b|health ?check|kube|schedul",
    re.IGNORECASE,
)
# A load that an event states without a reason for it.
_LOADS = frozenset({"cpu", "memory", "latency"})
# Of equals, what the alert is about comes first; its neighbour's trouble from before the window is no news at all.
_NEIGHBOUR = 0.9
_CHRONIC = 0.25
# Probes whose failure ends a container, and the exit codes of one that a signal ended (TERM, then KILL).
_ENDING_PROBE = re.compile(r"\b(?:liveness|startup) probe", re.IGNORECASE)
_ENDED_BY_SIGNAL = frozenset({137, 143})


@dataclass(frozen=True, slots=True)
class PlatformTrouble:
    """One trouble of one object: kind, weight, the words and figures it rests on, when it began and was last seen."""

    service: str
    subject: str
    kind: str
    weight: float
    words: str
    signal: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    onset: float | None = None
    seen: float | None = None
    over: bool = False
    victim: bool = False
    namespace: str | None = None


def find_reported_troubles(recording: Recording) -> list[Finding]:
    """Findings from events and object states, strongest first; size 0 for what is in order (again)."""
    known = collect_object_owners(recording)
    states = [state for state in map(workloads.read_workload, recording.objects or ()) if state is not None]
    troubles = [
        *_troubles_from_states(states, known),
        *_troubles_from_events(recording, known, states),
        *_find_split_rollouts(states, known),
        *_find_failed_deliveries(recording),
    ]
    elsewhere = foreign_namespaces(recording)
    judged = [
        _weigh_by_alert(trouble, recording, elsewhere) for trouble in _excuse_killed_containers(troubles)
    ]
    findings = [
        *_merge_troubles_to_findings(judged),
        *_find_healthy_services(states, known, judged, recording),
    ]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.signal, f.text))


def _excuse_killed_containers(troubles: Sequence[PlatformTrouble]) -> Iterator[PlatformTrouble]:
    """The troubles; a container that the kubelet ended because a probe failed did not crash by itself."""
    probed = {
        t.service for t in troubles if t.kind == "probe" and not t.over and _ENDING_PROBE.search(t.words)
    }
    for trouble in troubles:
        ended = trouble.kind == "crash" and trouble.figures.get("exit_code") in _ENDED_BY_SIGNAL
        yield replace(trouble, victim=True) if ended and trouble.service in probed else trouble


# --- states ------------------------------------------------------------------------------------------------


def _troubles_from_states(states: Iterable[Workload], known: ObjectOwners) -> Iterator[PlatformTrouble]:
    for state in states:
        if (found := diagnose_workload(state)) is None:
            continue
        kind, weight, words = found
        yield PlatformTrouble(
            service=known.of(state.name, state.kind),
            subject=f"{state.kind} {state.name}",
            kind=kind,
            weight=weight,
            words=words,
            signal="objects",
            figures=_workload_figures(state),
            onset=estimate_trouble_start(state),
            # A controller only counts what its pods do.
            victim=kind == "other",
        )


def _workload_figures(state: Workload) -> dict[str, Any]:
    named = {
        "restarts": state.restarts or None,
        "exit_code": state.exit_code,
        "ready": state.ready,
        "desired": state.desired,
    }
    return {name: value for name, value in named.items() if value is not None}


def _find_split_rollouts(states: Iterable[Workload], known: ObjectOwners) -> Iterator[PlatformTrouble]:
    """Services whose newer template fails in every pod while an older template's pods are all up."""
    templates: dict[str, dict[str, list[Workload]]] = defaultdict(lambda: defaultdict(list))
    for state in states:
        if state.kind.lower() == "pod" and state.age_seconds is not None:
            templates[known.of(state.name, state.kind)][state.name.rpartition("-")[0]].append(state)
    for service, by_template in sorted(templates.items()):
        failing = [pods for pods in by_template.values() if all(map(diagnose_workload, pods))]
        steady = [pods for pods in by_template.values() if not any(map(diagnose_workload, pods))]
        for new in failing:
            older = [
                pod
                for pods in steady
                for pod in pods
                if _pod_age_seconds(pod) > max(map(_pod_age_seconds, new))
            ]
            if older:
                yield _build_split_rollout(service, new, older)


def _pod_age_seconds(pod: Workload) -> float:
    return pod.age_seconds or 0.0


def _build_split_rollout(service: str, new: Sequence[Workload], older: Sequence[Workload]) -> PlatformTrouble:
    read_at = new[0].read_at
    return PlatformTrouble(
        service=service,
        subject=f"Rollout of {service}",
        kind="deploy",
        weight=NAMES_CAUSE,
        words=f"all {len(new)} pods of the newer revision fail, all {len(older)} of the older one are up",
        signal="objects",
        figures={"failing": len(new), "up": len(older)},
        onset=None if read_at is None else read_at - max(map(_pod_age_seconds, new)),
    )


def _find_failed_deliveries(recording: Recording) -> Iterator[PlatformTrouble]:
    for state in recording.objects or ():
        found = argocd_delivery.read_delivery_state(state)
        if found is None or not found.failed:
            continue
        meaning = message_meaning.read_message_meaning(found.message)
        yield PlatformTrouble(
            service=found.name,
            subject=f"Delivery of {found.name}",
            kind=meaning.kind if meaning else "deploy",
            weight=NAMES_CAUSE if found.message else ACTS,
            words=found.summary,
            signal="objects",
            onset=None,
        )


# --- events ------------------------------------------------------------------------------------------------


def _collect_platform_events(recording: Recording) -> Iterator[PlatformEvent]:
    """The recorded events, and those that only the description of an object lists."""
    told = {event.object.rpartition("/")[2] for event in recording.events or ()}
    yield from recording.events or ()
    for state in recording.objects or ():
        if isinstance(state.status, str) and state.time is not None and state.name not in told:
            yield from kubectl_output.read_events_table(
                state.status, f"{state.kind}/{state.name}", state.time
            )


def _troubles_from_events(
    recording: Recording, known: ObjectOwners, states: Sequence[Workload]
) -> Iterator[PlatformTrouble]:
    events = sorted(_collect_platform_events(recording), key=lambda e: (e.object, e.time))
    closed = {event.object: event.time for event in events if message_meaning.reports_end(event.message)}
    undone = {(event.object, kind): event.time for event in events if (kind := _UNDOES.get(event.reason))}
    bad = {state.name for state in states if diagnose_workload(state)}
    good = {state.name for state in states} - bad
    standing = {known.of(s.name, s.kind) for s in states} - {
        known.of(s.name, s.kind) for s in states if s.name in bad
    }
    for event in events:
        if (found := _trouble_from_event(event)) is None:
            continue
        name, service = event.object.rpartition("/")[2], known.of(event.object)
        mended = (
            event.time <= closed.get(event.object, _NEVER)
            or event.time <= undone.get((event.object, found.kind), _NEVER)
            or event.time <= undone.get((event.object, event.reason), _NEVER)
            or name in good
            or (name not in bad and service in standing)
        )
        ended = _is_long_before_onset(event, recording) if _has_lasting_effect(event, found) else mended
        namespace = (event.extra or {}).get("namespace")
        yield replace(
            found, service=service, namespace=namespace, over=ended or event.time < recording.window.start
        )


def _has_lasting_effect(event: PlatformEvent, trouble: PlatformTrouble) -> bool:
    """Whether the event is itself the blow (a failover, an upgrade): what it broke stays broken when it has ended."""
    return trouble.kind == "failover" or (trouble.kind == "deploy" and event.reason not in REASONS)


def _is_long_before_onset(event: PlatformEvent, recording: Recording) -> bool:
    onset = recording.alert.onset
    return onset is not None and event.time < onset - STEADY_SECONDS


def _trouble_from_event(event: PlatformEvent) -> PlatformTrouble | None:
    """What one event tells, from its reason words or its message, whichever is plainer."""
    named = [] if event.type == "Normal" else [REASONS[r] for r in event.reason.split(", ") if r in REASONS]
    kind, weight = max(named, key=lambda n: n[1], default=("", 0.0))
    meaning = message_meaning.read_message_meaning(event.message)
    if meaning and meaning.weight >= weight:
        kind, weight = meaning.kind, meaning.weight
    if not kind:
        return None
    count = event.count or 1
    return PlatformTrouble(
        service="",
        subject=event.object.replace("/", " "),
        kind=kind,
        weight=weight,
        words=f"{event.reason}: {meaning.quote if meaning else event.message[:160]}",
        signal="events",
        figures={"occurrences": count} if count > 1 else {},
        onset=event.began,
        seen=event.time,
        victim=kind in _LOADS and weight == SHOWS,
    )


# --- from troubles to findings -----------------------------------------------------------------------------


def _weigh_by_alert(
    trouble: PlatformTrouble, recording: Recording, elsewhere: Collection[str]
) -> PlatformTrouble:
    """Trouble that is older than the window and not what the alert is about is background."""
    alert = recording.alert
    about = alert.service in (None, trouble.service) or names_service(alert.text, trouble.service)
    old = trouble.onset is not None and trouble.onset < recording.window.start
    if about:
        return trouble
    if trouble.namespace in elsewhere:
        return replace(trouble, weight=trouble.weight * _CHRONIC, victim=True)
    return replace(
        trouble, weight=trouble.weight * (_CHRONIC if old else _NEIGHBOUR), victim=trouble.victim or old
    )


def names_service(text: str, service: str) -> bool:
    """Whether the text names the service as a word of its own (`api` does not appear in `rapid`, nor in `api-gateway`)."""
    return bool(service) and re.search(rf"(?<![\w-]){re.escape(service)}(?![\w-])", text) is not None


def _merge_troubles_to_findings(troubles: Iterable[PlatformTrouble]) -> Iterator[Finding]:
    """One finding for each service, kind and signal: the plainest trouble, and how many objects share it."""
    groups: dict[tuple[str, str, str, bool], list[PlatformTrouble]] = defaultdict(list)
    for trouble in troubles:
        groups[trouble.service, trouble.kind, trouble.signal, trouble.over].append(trouble)
    for (service, kind, _, over), group in groups.items():
        if over and any((service, kind, other, False) in groups for other in ("events", "objects")):
            continue
        plainest = max(group, key=lambda t: (t.weight, t.seen or 0.0, t.subject))
        onset = min((t.onset for t in group if t.onset is not None), default=None)
        yield _build_trouble_finding(replace(plainest, onset=onset), len({t.subject for t in group}))


def _build_trouble_finding(trouble: PlatformTrouble, objects: int) -> Finding:
    figures = {**trouble.figures, "object": trouble.subject, "message": trouble.words}
    text = f"{trouble.subject}: {trouble.words.rstrip('.')}"
    text += f"; exit code {figures['exit_code']}" if "exit_code" in figures else ""
    text += f"; {format_count(int(figures['restarts']), 'restart')}" if "restarts" in figures else ""
    text += f"; {format_times(int(figures['occurrences']))}" if "occurrences" in figures else ""
    if objects > 1:
        figures["objects"] = objects
        text += f"; {format_count(objects, 'object')} in this state"
    return Finding(
        detector="platform",
        signal=trouble.signal,
        service=trouble.service,
        kind=trouble.kind,
        size=0.0 if trouble.over else trouble.weight,
        text=f"{text}; over by the end of the window." if trouble.over else f"{text}.",
        figures=figures,
        onset=trouble.onset,
        direction="victim" if trouble.victim or trouble.over else "cause",
    )


def _complains_of_state(alert: AlertFacts) -> bool:
    text = alert.text
    return alert.metric is None and not _PERFORMANCE.search(text) and _STATE.search(text) is not None


def _find_healthy_services(
    states: Sequence[Workload], known: ObjectOwners, troubles: Iterable[PlatformTrouble], recording: Recording
) -> Iterator[Finding]:
    """For each service the alert may be about: that all its pods and controllers are as they should be.

    That is rest only where the alert complains of the state of such an object; without a service, only if all are so.
    """
    alert = recording.alert
    troubled = {trouble.service for trouble in troubles if not trouble.over}
    complains_of_state = _complains_of_state(alert) and (alert.service is not None or not troubled)
    up: dict[str, list[Workload]] = defaultdict(list)
    for state in states:
        if state.kind.lower() in CONTROLLERS | {"pod"}:
            up[known.of(state.name, state.kind)].append(state)
    for service, group in sorted(up.items()):
        if service in troubled or alert.service not in {None, service}:
            continue
        ready, desired = (
            sum(n or 0 for n in column) for column in zip(*((s.ready, s.desired) for s in group), strict=True)
        )
        if not desired or ready < desired:
            continue
        yield Finding(
            detector="platform",
            signal="objects",
            service=service,
            kind="other",
            size=1.0 if complains_of_state else 0.0,
            text=f"{service} is in order: {format_count(len(group), 'object')} read, {ready} of {desired} replicas and containers ready.",
            figures={"objects": len(group), "ready": ready, "desired": desired},
            direction="healthy" if complains_of_state else "victim",
        )
