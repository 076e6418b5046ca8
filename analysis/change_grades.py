"""Which changes can have set the incident off, in three grades.

`cause`: the diff shows a mechanism that meets what fails, before the onset, on the way. `coincides`: right place and
time, but no diff available. `innocent`: everything else, whatever was the latest. Where the trouble came from outside
(a provider, users, a certificate, a resolver) only a diff that names what fails can be a cause.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.change_diffs import (
    ChangeDiff,
    is_idle_change,
    read_change_diff,
    split_release,
    split_words,
)
from opsleuth.analysis.change_mechanisms import (
    NAMED,
    ChangeMechanism,
    IncidentSymptoms,
    find_mechanism,
)
from opsleuth.analysis.changes import drop_rolled_back_changes, find_onset_slack
from opsleuth.analysis.failure_words import is_error_level, is_warning_level
from opsleuth.analysis.message_meaning import read_message_meaning
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, GradedChange, LogLine, Recording, ServiceChange, Suspect

# Onsets are known to one sample of the series that shows them; without one, to this.
_STEP_SECONDS = 60.0
# A change without a diff is suspected within the hour: what breaks something mostly does so by its first traffic.
_NEAR_SECONDS = 3600.0
_MOST_LINES = 400
# A change elsewhere may matter to whoever shares its code, but less than one of the service that fails.
_OWN, _SHARED, _ELSEWHERE = 1.0, 0.9, 0.55
# Half of a mechanism's strength is worth its rule, half what its words share with what fails.
_FLOOR = 0.5
_LEAST = 0.5
# What the trouble itself says of its origin: users, resolvers, authorities.
_OUTSIDE_KINDS = frozenset({"traffic", "dns", "certificate"})
_PUBLIC_HOST = re.compile(
    r"(?:https?://|host=|\b(?:lookup|to|from|ENOTFOUND)\s+)([\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|cloud|co|ai|app))\b",
    re.IGNORECASE,
)
_SHARED_PATH = re.compile(
    r"^(pkg|libs?|common|shared|internal|packages|vendor|proto|api|core|platform|schema)/"
)
_QUOTED = re.compile(r"[`'\"]([\w.-]{2,60})[`'\"]")
_FRAME = re.compile(
    r"File \"([^\"\n]{1,1000})\", line (\d+)|\(?(?<![\w./-])([\w./-]{1,400}\.(?:go|java|kt|js|ts|tsx|rb|php|cs|scala|rs|cpp|cc|c|ex|py)):(\d+)"
)


def grade_changes(
    recording: Recording, findings: Sequence[Finding], suspects: Sequence[Suspect]
) -> list[GradedChange]:
    """All changes that were recorded with their grades, surest first; at most one of them is the cause.

    `suspects` are ranked without any change: what the trouble is, judged by what is seen of it.
    """
    changes = sorted(recording.changes or (), key=lambda c: (c.time, c.service, c.summary))
    if not changes:
        return []
    onset, step = assumed_onset_of(recording), find_onset_slack(recording)
    standing = drop_rolled_back_changes([c for c in changes if c.time <= onset + step])
    parts = [part for change in standing for part in split_release(change)]
    symptoms = collect_symptoms(recording, findings)
    judge = _ChangeJudge(
        recording, findings, suspects, symptoms, onset, [(p, read_change_diff(p)) for p in parts]
    )
    graded = [judge.grade_change(change, diff) for change, diff in judge.diffs]
    graded += [
        GradedChange(change, "innocent", _explain_exclusion(change, onset, step))
        for change in changes
        if not any(change is kept for kept in standing)
    ]
    return _keep_single_cause(graded)


def _explain_exclusion(change: ServiceChange, onset: float, step: float) -> str:
    if change.time > onset + step:
        return f"made {change.time - onset:,.0f} s after the onset"
    return "rolled back before the onset"


def _keep_single_cause(graded: Iterable[GradedChange]) -> list[GradedChange]:
    """The surest cause stays; weaker ones are innocent, for two changes seldom do the same harm at once."""
    ordered = [*graded]
    ordered.reverse()  # of two changes in the same second the later revision comes first
    ordered.sort(key=lambda g: (g.grade != "cause", g.grade != "coincides", -g.score, -g.change.time))
    first = next((g for g in ordered if g.grade == "cause"), None)
    if first is None:
        return ordered
    why = f"{first.change.kind} of {first.change.service} explains more"
    return [
        g if g is first or g.grade == "innocent" else GradedChange(g.change, "innocent", why) for g in ordered
    ]


@dataclass(frozen=True, slots=True)
class _ChangeJudge:
    """What every change is compared with."""

    recording: Recording
    findings: Sequence[Finding]
    suspects: Sequence[Suspect]
    symptoms: IncidentSymptoms
    onset: float
    diffs: Sequence[tuple[ServiceChange, ChangeDiff | None]]

    def grade_change(self, change: ServiceChange, diff: ChangeDiff | None) -> GradedChange:
        if is_idle_change(change):
            return GradedChange(change, "innocent", "changes nothing that runs")
        place = self._weigh_place(change, diff)
        if brought := self._find_brought_statement(change):
            return GradedChange(change, "cause", brought, NAMED)
        if failing := self._find_failing_revision(change):
            return GradedChange(change, "cause", failing, NAMED)
        if diff is None:
            return self._grade_unseen(change, place)
        found = find_mechanism(diff, self.symptoms, self._count_words())
        if found is None:
            return GradedChange(change, "innocent", "the diff shows nothing that meets what fails")
        score = self._score_change(change, diff, found, place)
        if self._came_from_outside() and found.strength < NAMED:
            return GradedChange(change, "innocent", "the trouble came from outside", score)
        if score < _LEAST:
            return GradedChange(change, "innocent", "too little of it meets what fails", score)
        return GradedChange(change, "cause", found.why, score, found.place)

    def _find_brought_statement(self, change: ServiceChange) -> str | None:
        """A statement that its database was never asked before is as good as a diff."""
        for finding in self.findings:
            if finding.detector == "brought" and (finding.service, finding.onset) == (
                change.service,
                change.time,
            ):
                return f"a statement is new on {finding.figures['database']} since"
        return None

    def _find_failing_revision(self, change: ServiceChange) -> str | None:
        """The newest revision fails wherever it runs, and the one before it runs still: as good as a diff."""
        own = [c for c, _ in self.diffs if (c.service, c.kind) == (change.service, change.kind)]
        if change.kind != "deploy" or change is not own[-1]:
            return None
        for finding in self.findings:
            if (finding.service, finding.kind) == (change.service, "deploy") and "failing" in finding.figures:
                failing, up = finding.figures["failing"], finding.figures["up"]
                return f"its pods fail, all {failing} of them, and the {up} of the revision before are up"
        return None

    def _grade_unseen(self, change: ServiceChange, place: float) -> GradedChange:
        ahead = self.onset - change.time
        own = place >= _OWN and change.service in self._suspected_services()
        if not own or ahead > _NEAR_SECONDS or change.kind == "commit" or self._came_from_outside():
            return GradedChange(change, "innocent", "nothing shows that it met what fails")
        score = place / (1.0 + max(ahead, 0.0) / _NEAR_SECONDS)
        when = f"{max(ahead, 0.0):,.0f} s before" if ahead >= 0 else "within one sample of"
        return GradedChange(change, "coincides", f"{when} the onset; no diff is available", score)

    def _score_change(
        self, change: ServiceChange, diff: ChangeDiff, found: ChangeMechanism, place: float
    ) -> float:
        shared = self._share_words(change, diff)
        late = 1.0 / (1.0 + max(self.onset - change.time, 0.0) / (24 * _NEAR_SECONDS))
        return (
            found.strength * (_FLOOR + (1 - _FLOOR) * shared) * place * late / (_FLOOR + (1 - _FLOOR) * 0.5)
        )

    def _share_words(self, change: ServiceChange, diff: ChangeDiff) -> float:
        """How many of the change's rare words the symptoms mention: from 0 to 1."""
        words = {part for name in diff.files for part in _split_parts(name)}
        words |= {part for line in (*diff.removed, *diff.added) for part in _split_parts(line)}
        words |= set(_split_parts(change.summary))
        seen = set(_split_parts(self.symptoms.text))
        common = self._count_parts()
        met = sum(1.0 / common.get(word, 1) for word in words & seen)
        return min(1.0, met / 3.0)

    def _count_words(self) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for _, diff in self.diffs:
            if diff is not None:
                counts.update(diff.gone | diff.came)
        return counts

    def _count_parts(self) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for _, diff in self.diffs:
            if diff is not None:
                counts.update(
                    {p for line in (*diff.removed, *diff.added, *diff.files) for p in _split_parts(line)}
                )
        return counts

    def _suspected_services(self) -> set[str]:
        return {f.service for f in self.findings if f.direction == "cause" and f.signal != "changes"} | {
            suspect.service for suspect in self.suspects
        }

    def _weigh_place(self, change: ServiceChange, diff: ChangeDiff | None) -> float:
        """1 for a service that is suspected or stands next to it on the way, less for shared code, least elsewhere."""
        suspected = self._suspected_services()
        near = {
            name
            for edge in self.recording.topology or ()
            if edge.caller in suspected or edge.callee in suspected
            for name in (edge.caller, edge.callee)
        }
        if change.service in suspected | near or _names_folder(change, suspected):
            return _OWN
        shared = diff is not None and any(_SHARED_PATH.search(name) for name in diff.files)
        return _SHARED if shared else _ELSEWHERE

    def _came_from_outside(self) -> bool:
        if self.suspects and self.suspects[0].kind in _OUTSIDE_KINDS:
            return True
        return names_outside_host(self.recording, self.onset)


def names_outside_host(recording: Recording, onset: float, service: str | None = None) -> bool:
    """Whether many failing lines since the onset (of one service, or of all) name a host outside."""
    failing = [line for line in _failing_lines(recording, onset) if service in (None, line.service)]
    outside = [
        line for line in failing if _PUBLIC_HOST.search(line.message) or _NAMES_CLOUD.search(line.message)
    ]
    return len(outside) > len(failing) / 3 and len(outside) > 0


_NAMES_CLOUD = re.compile(
    r"\.amazonaws\.com|\.googleapis\.com|\.azure\.|\.cloudfront\.net|\.windows\.net", re.IGNORECASE
)


def _names_folder(change: ServiceChange, services: Collection[str]) -> bool:
    """Whether the change lies in the folder of a suspected service (`services/payment` of `paymentservice`)."""
    diff_files = [str(name) for name in (change.extra or {}).get("files") or ()]
    folders = {part.lower() for name in diff_files for part in name.split("/")[:-1] if len(part) > 3}
    return any(
        folder in service.lower().replace("-", "") for folder in folders - _GENERIC for service in services
    )


_GENERIC = frozenset(
    {"internal", "services", "service", "server", "common", "cmd", "pkg", "src", "main", "config"}
)


def collect_symptoms(recording: Recording, findings: Sequence[Finding]) -> IncidentSymptoms:
    """What is seen of the incident, in the form that mechanisms read."""
    lines = _failing_lines(recording, assumed_onset_of(recording))
    messages = list(dict.fromkeys(line.message for line in lines))[:_MOST_LINES]
    told = [f.text for f in findings if f.direction == "cause" and f.signal != "changes" and f.size > 0]
    moved = [f.text for f in findings if f.detector == "alert_measure"]
    alert = recording.alert
    text = "\n".join([alert.text, alert.metric or "", *messages, *told, *moved]).lower()
    joined = "\n".join(messages)
    return IncidentSymptoms(
        text=text,
        quoted=frozenset(_QUOTED.findall(joined)),
        names=frozenset(split_words(joined)),
        frames=frozenset(_read_frames(joined)),
        kinds=frozenset(f.kind for f in findings if f.direction == "cause" and f.signal != "changes"),
    )


def _read_frames(text: str) -> Iterable[tuple[str, int]]:
    for found in _FRAME.finditer(text):
        yield found[1] or found[3], int(found[2] or found[4])


def _failing_lines(recording: Recording, onset: float) -> list[LogLine]:
    """Lines from just before the onset on that report trouble, by level or by phrase."""
    return [
        line
        for line in recording.logs or ()
        if (line.time is None or line.time >= onset - _STEP_SECONDS)
        and (is_error_level(line.level) or is_warning_level(line.level) or read_message_meaning(line.message))
    ]


def _split_parts(text: str) -> list[str]:
    """The words inside identifiers, in lower case, of four letters and more: `readThreeDSResult` holds `result`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+", " ", text)
    return [word.lower() for word in spaced.split() if len(word) > 3 and word.lower() not in _COMMON]


_COMMON = frozenset(
    [
        "return",
        "func",
        "string",
        "error",
        "errors",
        "public",
        "private",
        "static",
        "void",
        "const",
        "self",
        "this",
        "that",
        "with",
        "from",
        "into",
        "when",
        "null",
        "none",
        "true",
        "false",
        "context",
        "request",
        "response",
        "service",
        "services",
        "handler",
        "http",
        "https",
        "type",
        "class",
        "import",
        "value",
        "config",
        "data",
        "name",
        "list",
        "item",
    ]
)
