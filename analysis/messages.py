"""What log messages say plainly, and how much more often they say it than before.

A phrase that a service also logs in the baseline, or before the onset, is its usual talk and counts only for
what exceeds that. Where the message names another service as the one that failed, that service is the cause
and the speaker its victim.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from opsleuth.analysis import slow_calls, wording
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


@dataclass(slots=True)
class Talk:
    """All lines of one service that say one kind of thing: how many, since when, in which words."""

    count: int = 0
    first: float | None = None
    early: int = 0
    meanings: Counter[Meaning] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)

    def add(self, line: LogLine, meaning: Meaning, onset: float | None, target: str | None) -> None:
        self.count += 1
        if line.time is not None:
            self.first = line.time if self.first is None else min(self.first, line.time)
            self.early += onset is not None and line.time < onset
        self.meanings[meaning] += 1
        if target:
            self.targets[target] += 1

    def plainest(self) -> Meaning:
        """The weightiest meaning, of these the most frequent, of these the first by its words."""
        return min(self.meanings, key=lambda m: (-m.weight, -self.meanings[m], m.quote))


def find(recording: Recording) -> list[Finding]:
    """Findings from what log lines say in words, strongest first.

    `size` is the weight of the phrase (see `phrases`) times 1 + log10 of the lines beyond
    the usual number.
    """
    lines = recording.logs or ()
    known = owners(recording)
    talks = read(lines, known, recording.alert.onset)
    usual = {key: talk.count for key, talk in read(recording.logs_baseline or (), known, None).items()}
    spoken = Counter(line.service for line in lines)
    before = Counter(line.service for line in recording.logs_baseline or ())
    findings = slow_calls.find(lines, recording.logs_baseline or ())
    for (service, kind), talk in talks.items():
        expected = _expected(talk, usual.get((service, kind), 0), spoken[service], before[service], recording)
        excess = talk.count - expected
        # Counts of independent events scatter by their square root; two of them is beyond chance.
        if excess > 2.0 * math.sqrt(expected):
            findings += _findings(service, kind, talk, excess)
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.direction, f.text))


def read(lines: Iterable[LogLine], known: Owners, onset: float | None) -> dict[tuple[str, str], Talk]:
    """What the lines say, by (service that it is about, kind); what a line itself calls over is left out."""
    talks: dict[tuple[str, str], Talk] = defaultdict(Talk)
    for line in lines:
        meaning = _read(line.message)
        if meaning is not None:
            subject = _subject(line, meaning, known)
            talks[subject, meaning.kind].add(line, meaning, onset, _target(line, meaning, known, subject))
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
    names = (host, host.partition(".")[0], known.mentioned(line.message.replace(subject, "")))
    return next((name for name in names if name in known.names and name != subject), None)


def _expected(talk: Talk, usual: int, spoken: int, before: int, recording: Recording) -> float:
    """How many such lines the usual talk of the service would bring, from the baseline and from before the onset."""
    by_baseline = usual / before * spoken if before else 0.0
    onset, window = recording.alert.onset, recording.window
    if onset is None or talk.first is None or not window.start < onset < window.end:
        return by_baseline
    by_history = talk.early / (onset - window.start) * (window.end - window.start)
    return max(by_baseline, by_history)


def _findings(service: str, kind: str, talk: Talk, excess: float) -> list[Finding]:
    meaning = talk.plainest()
    size = meaning.weight * (1.0 + math.log10(max(excess, 1.0)))
    figures = {"lines": talk.count, "excess": round(excess, 1), "message": meaning.quote}
    text = f'{talk.count} log lines of {service} say this or the like: "{meaning.quote}"'
    target = min(talk.targets, key=lambda name: (-talk.targets[name], name), default=None)
    suffers = target is not None or meaning.weight <= SHOWS
    said = Finding(
        detector="messages",
        signal="logs",
        service=service,
        kind=kind,
        size=size,
        text=f"{text}.",
        figures=figures,
        onset=talk.first,
        direction="victim" if suffers else "cause",
    )
    if target is None:
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
