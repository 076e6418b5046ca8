"""What log messages say plainly, and how much more often they say it than before.

A phrase that a service also logs in the baseline, or before the onset, is its usual talk and counts only for
what exceeds that. Where the message names another service as the one that failed, that service is the cause
and the speaker its victim.
"""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from opsleuth.analysis import slow_calls, wording
from opsleuth.analysis.diagnosis import STEADY_SECONDS
from opsleuth.analysis.owners import Owners, owners
from opsleuth.analysis.phrases import SHOWS
from opsleuth.analysis.records import Finding, LogLine, Recording
from opsleuth.analysis.wording import Meaning

# Kinds whose message is about the far side, not about who logs it.
_ABOUT_TARGET = frozenset({"dependency", "connections", "latency", "network_loss", "certificate"})
# Kinds that a platform service (kubelet, scheduler, a controller) reports about a workload that it names.
_ABOUT_WORKLOAD = frozenset(
    {"crash", "image_pull", "scheduling", "out_of_memory", "probe", "quota", "config"}
)
# Blows: what they broke is broken though they are over.
_BLOWS = frozenset({"failover", "deploy"})
# Pauses of this many times the mean one do not happen by chance (e^-5 where events come at random).
_PAUSES = 5.0
# Lines that show that a service still talks.
_WENT_ON = 3


@dataclass(slots=True)
class Talk:
    """All lines of one service that say one kind of thing: how many, since when, in which words."""

    count: int = 0
    first: float | None = None
    last: float | None = None
    early: int = 0
    meanings: Counter[Meaning] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)

    def add(self, line: LogLine, meaning: Meaning, quiet_until: float | None, target: str | None) -> None:
        self.count += 1
        if line.time is not None:
            self.first = line.time if self.first is None else min(self.first, line.time)
            self.last = line.time if self.last is None else max(self.last, line.time)
            self.early += quiet_until is not None and line.time < quiet_until
        self.meanings[meaning] += 1
        if target:
            self.targets[target] += 1

    def plainest(self) -> Meaning:
        """The weightiest meaning, of these the most frequent, of these the first by its words."""
        return min(self.meanings, key=lambda m: (-m.weight, -self.meanings[m], m.quote))


def find(recording: Recording) -> list[Finding]:
    """Findings from what log lines say in words, strongest first.

    `size` is the weight of the phrase (see `phrases`) times 1 + log10 of the lines beyond the usual number, and
    0 where the service has long stopped saying so.
    """
    lines = recording.logs or ()
    known = owners(recording)
    talks = read(lines, known, _quiet_until(recording))
    usual = {key: talk.count for key, talk in read(recording.logs_baseline or (), known, None).items()}
    spoken = Counter(line.service for line in lines)
    before = Counter(line.service for line in recording.logs_baseline or ())
    findings = slow_calls.find(lines, recording.logs_baseline or ())
    times = _times(lines, {service for service, _ in talks})
    for (service, kind), talk in talks.items():
        expected = _expected(talk, usual.get((service, kind), 0), spoken[service], before[service], recording)
        excess = talk.count - expected
        # Counts of independent events scatter by their square root; two of them is beyond chance.
        if excess > 2.0 * math.sqrt(expected):
            over = kind not in _BLOWS and _ceased(talk, times[service], recording.window.end)
            findings += _findings(service, kind, talk, 0.0 if over else excess)
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.direction, f.text))


def read(lines: Iterable[LogLine], known: Owners, quiet_until: float | None) -> dict[tuple[str, str], Talk]:
    """What the lines say, by (service that it is about, kind); what a line itself calls over is left out."""
    talks: dict[tuple[str, str], Talk] = defaultdict(Talk)
    for line in lines:
        meaning = _read(line.message)
        if meaning is not None:
            subject = _subject(line, meaning, known)
            target = _target(line, meaning, known, subject)
            talks[subject, meaning.kind].add(line, meaning, quiet_until, target)
    return dict(talks)


@lru_cache(maxsize=4096)
def _read(message: str) -> Meaning | None:
    meaning = wording.read(message)
    return None if meaning is None or wording.over(message) else meaning


def _subject(line: LogLine, meaning: Meaning, known: Owners) -> str:
    """The service a line is about: its writer, or the workload that a platform service reports on."""
    if meaning.kind not in _ABOUT_WORKLOAD:
        return line.service
    about = known.of(line.pod, "Pod") if line.pod else known.mentioned(line.message)
    return about if about and about in known.names else line.service


def _target(line: LogLine, meaning: Meaning, known: Owners, subject: str) -> str | None:
    """The other known service that the message is about: by host name (or its first label), or by being named."""
    if meaning.kind not in _ABOUT_TARGET:
        return None
    host = meaning.target or ""
    names = (host, host.partition(".")[0], known.mentioned(line.message, besides=subject))
    return next((name for name in names if name in known.names and name != subject), None)


def _quiet_until(recording: Recording) -> float | None:
    """Half the way from the window's start to the claimed onset: claims are late, but hardly by that much."""
    onset, window = recording.alert.onset, recording.window
    if onset is None or not window.start < onset < window.end:
        return None
    return (window.start + onset) / 2.0


def _expected(talk: Talk, usual: int, spoken: int, before: int, recording: Recording) -> float:
    """How many such lines the usual talk of the service would bring, by the baseline and by the quiet time."""
    by_baseline = usual / before * spoken if before else 0.0
    quiet_until, window = _quiet_until(recording), recording.window
    if quiet_until is None or talk.first is None:
        return by_baseline
    by_history = talk.early / (quiet_until - window.start) * (window.end - window.start)
    return max(by_baseline, by_history)


def _times(lines: Iterable[LogLine], services: Collection[str]) -> dict[str, list[float]]:
    """The times of all lines of each of the services, in order."""
    times: dict[str, list[float]] = {service: [] for service in services}
    for line in lines:
        if line.time is not None and line.service in times:
            times[line.service].append(line.time)
    return {service: sorted(found) for service, found in times.items()}


def _ceased(talk: Talk, times: Sequence[float], end: float) -> bool:
    """Whether the service went on talking, and not in this way, for longer than the talk ever paused."""
    if talk.first is None or talk.last is None:
        return False
    pause = (talk.last - talk.first) / max(talk.count - 1, 1)
    went_on = len(times) - bisect_right(times, talk.last)
    return end - talk.last > max(STEADY_SECONDS, _PAUSES * pause) and went_on >= max(_WENT_ON, talk.count)


def _findings(service: str, kind: str, talk: Talk, excess: float) -> list[Finding]:
    meaning = talk.plainest()
    size = meaning.weight * (1.0 + math.log10(max(excess, 1.0))) if excess else 0.0
    figures = {"lines": talk.count, "excess": round(excess, 1), "message": meaning.quote}
    text = f'{talk.count} log lines of {service} say this or the like: "{meaning.quote}"'
    target = min(talk.targets, key=lambda name: (-talk.targets[name], name), default=None)
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
