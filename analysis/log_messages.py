"""What log messages state outright, and how much more often than before.

A phrase that a service also logs in the baseline, or before the onset, is its usual talk and counts only for
what exceeds that. Where the message names another service as the one that failed, that service is the cause
and the speaker its victim.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from opsleuth.analysis import message_meaning, slow_database_calls
from opsleuth.analysis.called_endpoints import find_called_endpoint, name_endpoints
from opsleuth.analysis.error_fields import text_with_error
from opsleuth.analysis.fault_kinds import SYMPTOMS
from opsleuth.analysis.fault_phrases import SHOWS
from opsleuth.analysis.full_volumes import describe_full_volumes, find_full_volume
from opsleuth.analysis.logdiff import RISEN
from opsleuth.analysis.meaning_by_form import MeaningByForm
from opsleuth.analysis.memory_kills import (
    MemoryKill,
    choose_memory_kill,
    describe_memory_kill,
    find_killed_unit,
    read_memory_kill,
)
from opsleuth.analysis.message_meaning import MessageMeaning
from opsleuth.analysis.missing_steps import StepTally, measure_rate_rise
from opsleuth.analysis.object_owners import ObjectOwners, collect_object_owners
from opsleuth.analysis.past_questions import asks_about_past
from opsleuth.analysis.records import Finding, LogLine, Recording, TimeRange
from opsleuth.analysis.workload_diagnosis import STEADY_SECONDS
from opsleuth.state.plurals import format_count

# Kinds whose message is about the far side, not about who logs it.
_ABOUT_TARGET = frozenset({"dependency", "connections", "latency", "network_loss", "certificate"})
# Kinds for which a host that nobody recorded anything of is worth naming.
_ABOUT_HOST = _ABOUT_TARGET | {"dns", "network_delay"}
# Of these, the kinds for which its port says which server it is.
_ABOUT_ENDPOINT = _ABOUT_HOST - {"dns"}
# Kinds that a platform service (kubelet, scheduler, a controller) reports about a workload that it names.
_ABOUT_WORKLOAD = frozenset(
    {"crash", "image_pull", "scheduling", "out_of_memory", "probe", "quota", "config"}
)
# Blows: what they broke is broken though they are over.
_BLOWS = frozenset({"failover", "deploy"})
# Pauses of this many times the mean one do not happen by chance (e^-5 where events come at random).
_PAUSES = 5.0
# Seconds: a statement that takes less is not slow, whoever logs it.
_SHORT_CALL = 0.1
# So many lines are read form by form.
_MANY_LINES = 20_000
# Kinds whose message may name what is full.
_STORAGE = frozenset({"disk", "storage_full"})
# What writes about pods as `pod="namespace/name"`, which is not a service that fails by itself.
_PLATFORM_SERVICES = frozenset({"kubelet", "kube-scheduler", "kube-controller-manager"})
_NAMED_POD = re.compile(r"\bpod=\"?(?:[\w.-]+/)?(?P<pod>[\w.-]+)")
# What systemd's lines about a unit begin with; an instance is of the unit before the @.
_UNIT = re.compile(r"(?<![\w.:-])(?P<name>[A-Za-z][\w.:-]{0,200}?)(?:@[\w.:\\-]{0,200})?\.service: ")
# Volumes of one service that are distinguished.
_MOST_VOLUMES = 200
# Endpoints of one service that are distinguished.
_MOST_ENDPOINTS = 200
# Lines that show that a service still talks.
_WENT_ON = 3


@dataclass(slots=True)
class MessageGroup:
    """All lines of one service that say one kind of thing: how many, when, in which words."""

    count: int = 0
    times: list[float] = field(default_factory=list)
    meanings: Counter[MessageMeaning] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    volumes: Counter[str] = field(default_factory=Counter)
    endpoints: Counter[str] = field(default_factory=Counter)
    kills: Counter[MemoryKill] = field(default_factory=Counter)

    @property
    def first(self) -> float | None:
        return min(self.times, default=None)

    @property
    def last(self) -> float | None:
        return max(self.times, default=None)

    def before(self, moment: float) -> int:
        """How many of the lines were written before the moment."""
        return sum(time < moment for time in self.times)

    def add(self, line: LogLine, meaning: MessageMeaning, target: str | None) -> None:
        self.count += 1
        if line.time is not None:
            self.times.append(line.time)
        self.meanings[meaning] += 1
        if target:
            self.targets[target] += 1
        if meaning.kind in _STORAGE and len(self.volumes) < _MOST_VOLUMES:
            self.volumes.update(filter(None, [find_full_volume(line.message)]))
        if meaning.kind in _ABOUT_ENDPOINT and not target and len(self.endpoints) < _MOST_ENDPOINTS:
            self.endpoints.update(filter(None, [find_called_endpoint(line.message)]))
        if meaning.kind == "out_of_memory" and (kill := read_memory_kill(line.message)):
            self.kills[kill] += 1

    def weightiest_meaning(self) -> MessageMeaning:
        """The weightiest meaning, of these the most frequent, of these the first by its words."""
        return min(self.meanings, key=lambda m: (-m.weight, -self.meanings[m], m.quote))


def find_fault_messages(recording: Recording) -> list[Finding]:
    """Findings from what log lines say in words, strongest first.

    `size` is the weight of the phrase (see `phrases`) times 1 + log10 of the lines beyond the usual number, and
    0 where the service stopped logging it long ago.
    """
    lines, at_rest = recording.logs or (), recording.logs_baseline or ()
    known = collect_object_owners(recording)
    talks = group_lines_by_meaning(lines, known)
    usual = {key: talk.count for key, talk in group_lines_by_meaning(at_rest, known).items()}
    written = Counter(line.service for line in at_rest)
    findings = slow_database_calls.find_slow_database_calls(lines, at_rest)
    times = _line_times_by_service(lines, {service for service, _ in talks})
    first = min((line.time for line in lines if line.time is not None), default=math.inf)
    quiet = _quiet_time_before_onset(recording, max(first, recording.window.start))
    for (service, kind), talk in talks.items():
        rest = StepTally(usual.get((service, kind), 0), written[service])
        excess = talk.count - _expected_line_count(talk, rest, len(times[service]), recording)
        everyday = kind in SYMPTOMS and _may_be_usual_lines(
            talk, rest, times[service], quiet, recording.alert.onset
        )
        # Counts of independent events scatter by their square root; two of them is beyond chance.
        if excess > 2.0 * math.sqrt(talk.count - excess) and not everyday:
            ceased = kind not in _BLOWS and _has_message_ceased(talk, times[service], recording.window.end)
            ended = ceased and asks_about_past(recording.alert, service)
            said = _build_message_findings(service, kind, talk, 0.0 if ceased and not ended else excess)
            findings += [_add_end(f, talk, times[service]) for f in said] if ended else said
    findings = _subordinate_to_deadlocks(findings)
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.direction, f.text))


def _subordinate_to_deadlocks(findings: Sequence[Finding]) -> list[Finding]:
    """Statements that waited in a deadlock are slow by it, however many of them there are."""
    dead = {f.service for f in findings if f.kind == "locks" and "deadlock" in f.text.lower() and f.size > 0}
    return [
        replace(f, direction="victim") if f.service in dead and f.kind in ("slow_query", "latency") else f
        for f in findings
    ]


def group_lines_by_meaning(
    lines: Sequence[LogLine], known: ObjectOwners
) -> dict[tuple[str, str], MessageGroup]:
    """What the lines say, by (service that it is about, kind); what a line itself calls over is left out."""
    talks: dict[tuple[str, str], MessageGroup] = defaultdict(MessageGroup)
    read = MeaningByForm(_read_ongoing_meaning) if len(lines) > _MANY_LINES else _read_ongoing_meaning
    for line in lines:
        meaning = read(text_with_error(line))
        if meaning is not None:
            subject = _find_subject_service(line, meaning, known)
            target = _find_target_service(line, meaning, known, subject)
            talks[subject, meaning.kind].add(line, meaning, target)
    return dict(talks)


@lru_cache(maxsize=4096)
def _read_ongoing_meaning(message: str) -> MessageMeaning | None:
    meaning = message_meaning.read_message_meaning(message)
    if meaning is None or message_meaning.reports_end(message):
        return None
    return None if meaning.kind == "slow_query" and _states_short_call(message) else meaning


def _states_short_call(message: str) -> bool:
    """Whether the statement of the line took no time that matters: servers can be told to log every statement."""
    seconds = slow_database_calls.parse_call_seconds(message)
    return seconds is not None and seconds < _SHORT_CALL


def _find_subject_service(line: LogLine, meaning: MessageMeaning, known: ObjectOwners) -> str:
    """The service a line is about: its writer, the unit that systemd reports on, or the workload that a platform service does."""
    if line.service == "systemd" and (unit := _UNIT.match(line.message)):
        return unit["name"]
    if line.service == "systemd-oomd" and (killed := find_killed_unit(line.message)):
        return killed
    if meaning.kind not in _ABOUT_WORKLOAD:
        return line.service
    about = known.of(line.pod, "Pod") if line.pod else known.mentioned_service(line.message)
    if about and about in known.names:
        return about
    named = _NAMED_POD.search(line.message) if line.service in _PLATFORM_SERVICES else None
    return known.of(named["pod"], "Pod") if named else line.service


def _find_target_service(
    line: LogLine, meaning: MessageMeaning, known: ObjectOwners, subject: str
) -> str | None:
    """The other known service that the message is about: by host name (or its first label), or by being named."""
    if meaning.kind not in _ABOUT_TARGET:
        return None
    host = meaning.target or ""
    names = (host, host.partition(".")[0], known.mentioned_service(line.message, besides=subject))
    named = next((name for name in names if name in known.names and name != subject), None)
    if named is None and meaning.kind == "dependency":
        # Nobody recorded anything of it, but it is the one that was called and did not answer.
        called = message_meaning.find_called_host(line.message)
        return called if called != subject else None
    return named


def _quiet_time_before_onset(recording: Recording, start: float) -> TimeRange | None:
    """The first half of the time from `start` to the claimed onset: claims are late, but hardly by that much."""
    onset = recording.alert.onset
    if onset is None or not start < onset < recording.window.end:
        return None
    return TimeRange(start, (start + onset) / 2.0)


def _expected_line_count(talk: MessageGroup, rest: StepTally, spoken: int, recording: Recording) -> float:
    """How many such lines the usual talk of the service would bring, by the baseline and by the quiet time."""
    by_baseline = rest.step / rest.anchor * spoken if rest.anchor else 0.0
    window = recording.window
    quiet = _quiet_time_before_onset(recording, window.start)
    if quiet is None:
        return by_baseline
    by_history = talk.before(quiet.end) / (quiet.end - quiet.start) * (window.end - window.start)
    return max(by_baseline, by_history)


def _may_be_usual_lines(
    talk: MessageGroup,
    rest: StepTally,
    times: Sequence[float],
    quiet: TimeRange | None,
    onset: float | None,
) -> bool:
    """Whether so few lines, of a kind that every system writes occasionally, may be the usual ones.

    That the few lines written at rest hold none of them is not proof that there never were any. Rest is the baseline with
    the early part of the log, or with all before the alert's onset. Where nothing was written at rest, there is nothing to
    hold them against.
    """
    splits = [] if quiet is None else [quiet.end] if onset is None else [quiet.end, onset]
    rises = [_measure_rise_after(talk, rest, times, split) for split in splits or [-math.inf]]
    known = [rise for rise in rises if rise is not None]
    return bool(known) and max(known) < RISEN


def _measure_rise_after(
    talk: MessageGroup, rest: StepTally, times: Sequence[float], split: float
) -> float | None:
    """How surely the share of such lines is higher after `split` than before it and at rest; None without lines before."""
    early, begun = bisect_left(times, split), talk.before(split)
    before = StepTally(rest.step + begun, rest.anchor + early)
    if not before.anchor:
        return None
    return measure_rate_rise(before, StepTally(talk.count - begun, len(times) - early))


def _line_times_by_service(lines: Iterable[LogLine], services: Collection[str]) -> dict[str, list[float]]:
    """The times of all lines of each of the services, in order."""
    times: dict[str, list[float]] = {service: [] for service in services}
    for line in lines:
        if line.time is not None and line.service in times:
            times[line.service].append(line.time)
    return {service: sorted(found) for service, found in times.items()}


def _has_message_ceased(talk: MessageGroup, times: Sequence[float], end: float) -> bool:
    """Whether the service went on talking, and not in this way, for longer than the talk ever paused."""
    if talk.first is None or talk.last is None:
        return False
    pause = (talk.last - talk.first) / max(talk.count - 1, 1)
    went_on = len(times) - bisect_right(times, talk.last)
    return end - talk.last > max(STEADY_SECONDS, _PAUSES * pause) and went_on >= max(_WENT_ON, talk.count)


def _add_end(finding: Finding, talk: MessageGroup, times: Sequence[float]) -> Finding:
    """The finding of what has ended, with when that was and since when the service writes again."""
    last = talk.last or 0.0
    again = times[bisect_right(times, last)]
    end = f"until {_format_time(last)}; it runs again since {_format_time(again)}"
    return replace(finding, text=f"{finding.text.rstrip('.')}, {end}.")


def _format_time(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _name_called_host(talk: MessageGroup, meaning: MessageMeaning) -> str:
    """What the lines call in vain: the endpoints that they name, failing that the host; empty where it is not worth naming."""
    if named := name_endpoints(talk.endpoints):
        return named
    host = meaning.target or ""
    return host if meaning.kind in _ABOUT_HOST and "." in host else ""


def _build_message_findings(service: str, kind: str, talk: MessageGroup, excess: float) -> list[Finding]:
    meaning = talk.weightiest_meaning()
    size = meaning.weight * (1.0 + math.log10(max(excess, 1.0))) if excess else 0.0
    figures: dict[str, Any] = {"lines": talk.count, "excess": round(excess, 1), "message": meaning.quote}
    text = format_count(talk.count, f"log line of {service} says", f"log lines of {service} say")
    text += f' "{meaning.quote}"' + (" or similar" if talk.count > 1 else "")
    if volumes := describe_full_volumes(talk.volumes):
        text += f", {volumes}"
    if kill := choose_memory_kill(talk.kills.elements()):
        figures |= {"memory_scope": kill.scope} | ({"process": kill.process} if kill.process else {})
        text += f", {words}" if (words := describe_memory_kill(kill)) else ""
    target = min(talk.targets, key=lambda name: (-talk.targets[name], name), default=None)
    if target is None and (host := _name_called_host(talk, meaning)):
        figures["host"] = host
        text += "" if host in text else f", calling {host}"
    suffers = target is not None or meaning.weight <= SHOWS or not excess
    said = Finding(
        detector="messages",
        signal="logs",
        service=service,
        kind=kind,
        size=size,
        text=f"{text}." if excess else f"{text}, but no longer.",
        figures=figures,
        onset=talk.first,
        direction="victim" if suffers else "cause",
    )
    if target is None or not excess:
        return [said]
    blamed = Finding(
        detector="messages",
        signal="logs",
        service=target,
        kind="errors" if kind == "dependency" else kind,
        size=size,
        text=f"{text}, naming {target}.",
        figures={**figures, "target": target},
        onset=talk.first,
    )
    return [said, blamed]
