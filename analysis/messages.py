"""What log messages say plainly, and how much more often they say it than before.

A phrase that a service also logs in the baseline, or before the onset, is its usual talk and counts only for
what exceeds that. Where the message names another service as the one that failed, that service is the cause
and the speaker its victim.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from opsleuth.analysis import slow_calls, wording
from opsleuth.analysis.diagnosis import STEADY_SECONDS
from opsleuth.analysis.kinds import SYMPTOMS
from opsleuth.analysis.logdiff import RISEN
from opsleuth.analysis.owners import Owners, owners
from opsleuth.analysis.phrases import SHOWS
from opsleuth.analysis.records import Finding, LogLine, Recording, Span
from opsleuth.analysis.steps import Tally, rise
from opsleuth.analysis.wording import Meaning
from opsleuth.state.words import counted

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
    """All lines of one service that say one kind of thing: how many, when, in which words."""

    count: int = 0
    times: list[float] = field(default_factory=list)
    meanings: Counter[Meaning] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)

    @property
    def first(self) -> float | None:
        return min(self.times, default=None)

    @property
    def last(self) -> float | None:
        return max(self.times, default=None)

    def before(self, moment: float) -> int:
        """How many of the lines were written before the moment."""
        return sum(time < moment for time in self.times)

    def add(self, line: LogLine, meaning: Meaning, target: str | None) -> None:
        self.count += 1
        if line.time is not None:
            self.times.append(line.time)
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
    lines, at_rest = recording.logs or (), recording.logs_baseline or ()
    known = owners(recording)
    talks = read(lines, known)
    usual = {key: talk.count for key, talk in read(at_rest, known).items()}
    written = Counter(line.service for line in at_rest)
    findings = slow_calls.find(lines, at_rest)
    times = _times(lines, {service for service, _ in talks})
    first = min((line.time for line in lines if line.time is not None), default=math.inf)
    quiet = _quiet(recording, max(first, recording.window.start))
    for (service, kind), talk in talks.items():
        rest = Tally(usual.get((service, kind), 0), written[service])
        excess = talk.count - _expected(talk, rest, len(times[service]), recording)
        everyday = kind in SYMPTOMS and _by_chance(talk, rest, times[service], quiet)
        # Counts of independent events scatter by their square root; two of them is beyond chance.
        if excess > 2.0 * math.sqrt(talk.count - excess) and not everyday:
            over = kind not in _BLOWS and _ceased(talk, times[service], recording.window.end)
            findings += _findings(service, kind, talk, 0.0 if over else excess)
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind, f.direction, f.text))


def read(lines: Iterable[LogLine], known: Owners) -> dict[tuple[str, str], Talk]:
    """What the lines say, by (service that it is about, kind); what a line itself calls over is left out."""
    talks: dict[tuple[str, str], Talk] = defaultdict(Talk)
    for line in lines:
        meaning = _read(line.message)
        if meaning is not None:
            subject = _subject(line, meaning, known)
            target = _target(line, meaning, known, subject)
            talks[subject, meaning.kind].add(line, meaning, target)
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


def _quiet(recording: Recording, start: float) -> Span | None:
    """The first half of the time from `start` to the claimed onset: claims are late, but hardly by that much."""
    onset = recording.alert.onset
    if onset is None or not start < onset < recording.window.end:
        return None
    return Span(start, (start + onset) / 2.0)


def _expected(talk: Talk, rest: Tally, spoken: int, recording: Recording) -> float:
    """How many such lines the usual talk of the service would bring, by the baseline and by the quiet time."""
    by_baseline = rest.step / rest.anchor * spoken if rest.anchor else 0.0
    window = recording.window
    quiet = _quiet(recording, window.start)
    if quiet is None:
        return by_baseline
    by_history = talk.before(quiet.end) / (quiet.end - quiet.start) * (window.end - window.start)
    return max(by_baseline, by_history)


def _by_chance(talk: Talk, rest: Tally, times: Sequence[float], quiet: Span | None) -> bool:
    """Whether so few lines, of a kind that every system writes now and then, may be the usual ones.

    That the few lines written at rest hold none of them is no proof that there never were any. Where nothing was
    written at rest, in the baseline or early in the log, there is nothing to hold them against.
    """
    early = bisect_left(times, quiet.end) if quiet else 0
    begun = talk.before(quiet.end) if quiet else 0
    before = Tally(rest.step + begun, rest.anchor + early)
    return before.anchor > 0 and rise(before, Tally(talk.count - begun, len(times) - early)) < RISEN


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
    text = counted(talk.count, f"log line of {service} says", f"log lines of {service} say")
    text += f' this or the like: "{meaning.quote}"'
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
