"""What the platform itself reports: events, and the states of pods, jobs, nodes, controllers and deliveries.

A finding of size 0 says that a reported trouble is over; one of direction `healthy` that what the alert is about
is as it should be. Other sizes are the weights of `phrases` (12 names the cause, 8 tells what the platform did,
1 shows that something suffers), less where the trouble is not what the alert is about, or older than the incident.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opsleuth.analysis import delivery, describe, wording, workloads
from opsleuth.analysis.diagnosis import REASONS, STEADY_SECONDS, began, diagnose
from opsleuth.analysis.owners import CONTROLLERS, Owners, owners
from opsleuth.analysis.phrases import ACTS, NAMES_CAUSE, SHOWS
from opsleuth.analysis.records import Finding, PlatformEvent, Recording
from opsleuth.analysis.workloads import Workload
from opsleuth.state.words import counted, often

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
# A load that an event states without a reason for it.
_LOADS = frozenset({"cpu", "memory", "latency"})
# Of equals, what the alert is about comes first; its neighbour's trouble from before the window is no news at all.
_NEIGHBOUR = 0.9
_CHRONIC = 0.25


@dataclass(frozen=True, slots=True)
class Trouble:
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


def find(recording: Recording) -> list[Finding]:
    """Findings from events and object states, strongest first; size 0 for what is in order (again)."""
    known = owners(recording)
    states = [state for state in map(workloads.read, recording.objects or ()) if state is not None]
    troubles = [
        *_state_troubles(states, known),
        *_event_troubles(recording, known, states),
        *_split_rollouts(states, known),
        *_failed_deliveries(recording),
    ]
    judged = [_in_view_of_alert(trouble, recording) for trouble in troubles]
    findings = [*_strongest(judged), *_in_order(states, known, judged, recording)]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.signal, f.text))


# --- states ------------------------------------------------------------------------------------------------


def _state_troubles(states: Iterable[Workload], known: Owners) -> Iterator[Trouble]:
    for state in states:
        if (found := diagnose(state)) is None:
            continue
        kind, weight, words = found
        yield Trouble(
            service=known.of(state.name, state.kind),
            subject=f"{state.kind} {state.name}",
            kind=kind,
            weight=weight,
            words=words,
            signal="objects",
            figures=_figures(state),
            onset=began(state),
            # A controller only counts what its pods do.
            victim=kind == "other",
        )


def _figures(state: Workload) -> dict[str, Any]:
    named = {
        "restarts": state.restarts or None,
        "exit_code": state.exit_code,
        "ready": state.ready,
        "desired": state.desired,
    }
    return {name: value for name, value in named.items() if value is not None}


def _split_rollouts(states: Iterable[Workload], known: Owners) -> Iterator[Trouble]:
    """Services whose newer template fails in every pod while an older template's pods are all up."""
    templates: dict[str, dict[str, list[Workload]]] = defaultdict(lambda: defaultdict(list))
    for state in states:
        if state.kind.lower() == "pod" and state.age_seconds is not None:
            templates[known.of(state.name, state.kind)][state.name.rpartition("-")[0]].append(state)
    for service, by_template in sorted(templates.items()):
        failing = [pods for pods in by_template.values() if all(map(diagnose, pods))]
        steady = [pods for pods in by_template.values() if not any(map(diagnose, pods))]
        for new in failing:
            older = [pod for pods in steady for pod in pods if _age(pod) > max(map(_age, new))]
            if older:
                yield _split_rollout(service, new, older)


def _age(pod: Workload) -> float:
    return pod.age_seconds or 0.0


def _split_rollout(service: str, new: Sequence[Workload], older: Sequence[Workload]) -> Trouble:
    read_at = new[0].read_at
    return Trouble(
        service=service,
        subject=f"Rollout of {service}",
        kind="deploy",
        weight=NAMES_CAUSE,
        words=f"all {len(new)} pods of the newer revision fail, all {len(older)} of the older one are up",
        signal="objects",
        figures={"failing": len(new), "up": len(older)},
        onset=None if read_at is None else read_at - max(map(_age, new)),
    )


def _failed_deliveries(recording: Recording) -> Iterator[Trouble]:
    for state in recording.objects or ():
        found = delivery.read(state)
        if found is None or not found.failed:
            continue
        meaning = wording.read(found.message)
        yield Trouble(
            service=found.name,
            subject=f"Delivery of {found.name}",
            kind=meaning.kind if meaning else "deploy",
            weight=NAMES_CAUSE if found.message else ACTS,
            words=found.summary,
            signal="objects",
            onset=None,
        )


# --- events ------------------------------------------------------------------------------------------------


def _events(recording: Recording) -> Iterator[PlatformEvent]:
    """The recorded events, and those that only the description of an object lists."""
    told = {event.object.rpartition("/")[2] for event in recording.events or ()}
    yield from recording.events or ()
    for state in recording.objects or ():
        if isinstance(state.status, str) and state.time is not None and state.name not in told:
            yield from describe.events(state.status, f"{state.kind}/{state.name}", state.time)


def _event_troubles(recording: Recording, known: Owners, states: Sequence[Workload]) -> Iterator[Trouble]:
    events = sorted(_events(recording), key=lambda e: (e.object, e.time))
    closed = {event.object: event.time for event in events if wording.over(event.message)}
    undone = {(event.object, kind): event.time for event in events if (kind := _UNDOES.get(event.reason))}
    bad = {state.name for state in states if diagnose(state)}
    good = {state.name for state in states} - bad
    standing = {known.of(s.name, s.kind) for s in states} - {
        known.of(s.name, s.kind) for s in states if s.name in bad
    }
    for event in events:
        if (found := _read_event(event)) is None:
            continue
        name, service = event.object.rpartition("/")[2], known.of(event.object)
        mended = (
            event.time <= closed.get(event.object, _NEVER)
            or event.time <= undone.get((event.object, found.kind), _NEVER)
            or event.time <= undone.get((event.object, event.reason), _NEVER)
            or name in good
            or (name not in bad and service in standing)
        )
        ended = _is_past(event, recording) if _is_blow(event, found) else mended
        yield replace(found, service=service, over=ended or event.time < recording.window.start)


def _is_blow(event: PlatformEvent, trouble: Trouble) -> bool:
    """Whether the event is itself the blow (a failover, an upgrade): what it broke stays broken when it has ended."""
    return trouble.kind == "failover" or (trouble.kind == "deploy" and event.reason not in REASONS)


def _is_past(event: PlatformEvent, recording: Recording) -> bool:
    onset = recording.alert.onset
    return onset is not None and event.time < onset - STEADY_SECONDS


def _read_event(event: PlatformEvent) -> Trouble | None:
    """What one event tells, from its reason words or its message, whichever is plainer."""
    named = [] if event.type == "Normal" else [REASONS[r] for r in event.reason.split(", ") if r in REASONS]
    kind, weight = max(named, key=lambda n: n[1], default=("", 0.0))
    meaning = wording.read(event.message)
    if meaning and meaning.weight >= weight:
        kind, weight = meaning.kind, meaning.weight
    if not kind:
        return None
    count = event.count or 1
    return Trouble(
        service="",
        subject=event.object.replace("/", " "),
        kind=kind,
        weight=weight,
        words=f"{event.reason}: {meaning.quote if meaning else event.message[:160]}",
        signal="events",
        figures={"occurrences": count} if count > 1 else {},
        onset=event.time if event.first_time is None else event.first_time,
        seen=event.time,
        victim=kind in _LOADS and weight == SHOWS,
    )


# --- from troubles to findings -----------------------------------------------------------------------------


def _in_view_of_alert(trouble: Trouble, recording: Recording) -> Trouble:
    """Trouble that is older than the window and not what the alert is about is background."""
    alert = recording.alert
    about = alert.service is None or trouble.service == alert.service or trouble.service in alert.text
    old = trouble.onset is not None and trouble.onset < recording.window.start
    if about:
        return trouble
    return replace(
        trouble, weight=trouble.weight * (_CHRONIC if old else _NEIGHBOUR), victim=trouble.victim or old
    )


def _strongest(troubles: Iterable[Trouble]) -> Iterator[Finding]:
    """One finding for each service, kind and signal: the plainest trouble, and how many objects share it."""
    groups: dict[tuple[str, str, str, bool], list[Trouble]] = defaultdict(list)
    for trouble in troubles:
        groups[trouble.service, trouble.kind, trouble.signal, trouble.over].append(trouble)
    for (service, kind, _, over), group in groups.items():
        if over and any((service, kind, other, False) in groups for other in ("events", "objects")):
            continue
        plainest = max(group, key=lambda t: (t.weight, t.seen or 0.0, t.subject))
        onset = min((t.onset for t in group if t.onset is not None), default=None)
        yield _finding(replace(plainest, onset=onset), len({t.subject for t in group}))


def _finding(trouble: Trouble, objects: int) -> Finding:
    figures = {**trouble.figures, "object": trouble.subject, "message": trouble.words}
    text = f"{trouble.subject}: {trouble.words.rstrip('.')}"
    text += f"; exit code {figures['exit_code']}" if "exit_code" in figures else ""
    text += f"; {counted(int(figures['restarts']), 'restart')}" if "restarts" in figures else ""
    text += f"; {often(int(figures['occurrences']))}" if "occurrences" in figures else ""
    if objects > 1:
        figures["objects"] = objects
        text += f"; {counted(objects, 'object')} in this state"
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


def _in_order(
    states: Sequence[Workload], known: Owners, troubles: Iterable[Trouble], recording: Recording
) -> Iterator[Finding]:
    """For each service the alert may be about: that all its pods and controllers are as they should be."""
    alert = recording.alert
    complains_of_state = alert.metric is None and not _PERFORMANCE.search(alert.text)
    troubled = {trouble.service for trouble in troubles if not trouble.over}
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
        yield Finding(
            detector="platform",
            signal="objects",
            service=service,
            kind="other",
            size=1.0 if complains_of_state else 0.0,
            text=f"{service} is in order: {counted(len(group), 'object')} read, {ready} of {desired} replicas and containers ready.",
            figures={"objects": len(group), "ready": ready, "desired": desired},
            direction="healthy" if complains_of_state else "victim",
        )
