"""From the findings of all detectors to ranked suspects, causes before victims, with the reasons in words."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from opsleuth.analysis import (
    calm,
    changes,
    demand,
    entry,
    harm,
    messages,
    platform,
    resources,
    serving,
    statements,
)
from opsleuth.analysis.kinds import SYMPTOMS
from opsleuth.analysis.onset import with_start
from opsleuth.analysis.records import Finding, Ranking, Recording, Suspect
from opsleuth.analysis.roles import role_of
from opsleuth.analysis.scoring import by_kind, carries, joined, leading_kinds, strengths
from opsleuth.analysis.topology import callees_of, distances, path, strangers

Detector = Callable[[Recording], list[Finding]]

DETECTORS: tuple[Detector, ...] = (
    harm.find,
    resources.find,
    demand.find,
    calm.find,
    platform.find,
    messages.find,
    serving.find,
    entry.find,
    statements.find,
    changes.find,
)

# A caller whose own evidence is a symptom is explained by a callee that is at least half as suspect.
EXPLAINS = 0.5
EXPLAINED_WEIGHT = 0.5
UNFELT_WEIGHT = 0.5
STRANGER_WEIGHT = 0.5
# A second cause stands beside the first only if it is nearly as strong, and itself more likely than not.
SECOND_CAUSE = 0.8
# Under this nothing points at anyone: half of what a just noticeable symptom alone amounts to.
BELIEVABLE = 0.15


def detect(recording: Recording) -> list[Finding]:
    """What every detector says about the recording, strongest first inside each detector."""
    started = with_start(recording)
    return [finding for find in DETECTORS for finding in find(started)]


def rank(recording: Recording, findings: Sequence[Finding]) -> Ranking:
    """Suspects by how strongly the findings point at them, and what that means for the incident as a whole."""
    findings = changes.supported(findings)
    # Slowness somewhere inside explains nothing where users measurably wait no longer than usual.
    discounts = {"latency": UNFELT_WEIGHT} if harm.users_wait(with_start(recording)) is False else {}
    suspects = _explained(recording, _related(recording, _suspects(findings, discounts)))
    believable = [suspect for suspect in suspects if suspect.score >= BELIEVABLE]
    causes = _causes(believable)
    return Ranking(
        verdict=_verdict(believable, findings),
        suspects=suspects,
        causes=causes,
        propagation=_propagation(recording, believable[:causes], findings),
        notes=_notes(recording, suspects, causes, findings),
    )


def _suspects(findings: Sequence[Finding], discounts: Mapping[str, float]) -> list[Suspect]:
    groups: dict[str, list[tuple[Finding, float]]] = defaultdict(list)
    for place, strength in strengths(findings, discounts).items():
        groups[findings[place].service].append((findings[place], strength))
    return _ordered(suspect for parts in groups.values() for suspect in _of_service(parts))


def _of_service(parts: Sequence[tuple[Finding, float]]) -> list[Suspect]:
    """One suspect for the leading kind of a service, and one for each other kind that stands on its own."""
    kinds = by_kind(parts)
    leading = leading_kinds(kinds)
    whole = joined(parts)
    others = [kind for kind in leading[1:] if kind not in SYMPTOMS]
    return [_suspect(parts, kind, whole * kinds[kind] / kinds[leading[0]]) for kind in (leading[0], *others)]


def _suspect(parts: Sequence[tuple[Finding, float]], kind: str, score: float) -> Suspect:
    ordered = sorted(parts, key=lambda part: (part[0].kind != kind, -part[1], part[0].text))
    best = ordered[0][0]
    return Suspect(best.service, kind, score, [f for f, _ in ordered], best.metric, best.onset)


def _ordered(suspects: Iterable[Suspect]) -> list[Suspect]:
    """Strongest first; of equals those that nothing explains, then those that began earlier."""
    return sorted(
        suspects,
        key=lambda s: (-s.score, s.explained_by is not None, _time(s.onset), s.service, s.kind),
    )


def _related(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Services that have no calls in common with the alerting one count less: what happens there is its own affair."""
    elsewhere = strangers(recording.topology, recording.alert.service)
    return [
        replace(suspect, score=suspect.score * STRANGER_WEIGHT) if suspect.service in elsewhere else suspect
        for suspect in suspects
    ]


def _time(onset: float | None) -> float:
    return math.inf if onset is None else onset


def _explained(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Callers that only show symptoms step back behind the callee that explains them."""
    callees = callees_of(recording.topology)
    role = role_of(recording.alert.metric or "", "")
    asked = role.name if role else None
    return _ordered(_explain(suspect, suspects, callees, asked) for suspect in suspects)


def _explain(
    suspect: Suspect, others: Sequence[Suspect], callees: Mapping[str, set[str]], asked: str | None
) -> Suspect:
    if suspect.kind == asked and suspect.kind not in SYMPTOMS:
        return suspect  # the alert asks about this very thing: it is the incident, whatever feeds it
    reach = distances(callees, suspect.service)
    deeper = [
        other
        for other in others
        if reach.get(other.service)
        and other.score >= EXPLAINS * suspect.score
        and carries(other.kind, suspect.kind, direct=reach[other.service] == 1)
    ]
    if not deeper:
        return suspect
    cause = max(deeper, key=lambda s: (s.score, s.service))
    return replace(suspect, score=suspect.score * EXPLAINED_WEIGHT, explained_by=cause.service)


def _causes(suspects: Sequence[Suspect]) -> int:
    top = suspects[0].score if suspects else 0.0
    return len(list(takewhile(lambda s: s.explained_by is None and s.score >= SECOND_CAUSE * top, suspects)))


def _verdict(suspects: Sequence[Suspect], findings: Sequence[Finding]) -> str:
    if suspects:
        return "cause_found"
    return "healthy" if any(finding.direction == "healthy" for finding in findings) else "inconclusive"


def _propagation(
    recording: Recording, causes: Sequence[Suspect], findings: Sequence[Finding]
) -> list[tuple[str, str]]:
    """The call paths from the alerting service to each cause, from the cause outwards."""
    touched = {finding.service for finding in findings if finding.direction != "healthy"}
    pairs: dict[tuple[str, str], None] = {}
    for cause in causes:
        steps = path(callees_of(recording.topology), recording.alert.service or "", cause.service)
        suffering = [s for s in steps if s in touched or s in (recording.alert.service, cause.service)]
        for victim, source in reversed(list(pairwise(suffering))):
            pairs[source, victim] = None
    return list(pairs)


def _notes(
    recording: Recording, suspects: Sequence[Suspect], causes: int, findings: Sequence[Finding]
) -> list[str]:
    notes = [f"{s.service} ({s.kind}): {s.findings[0].text}" for s in suspects[:causes]]
    notes += [f"{s.service} is explained by {s.explained_by}." for s in suspects if s.explained_by]
    notes += [f.text for f in findings if f.direction == "healthy"]
    missing = _missing(recording)
    return [*notes, f"Not available: {', '.join(missing)}."] if missing else notes


def _missing(recording: Recording) -> list[str]:
    sources: Mapping[str, bool] = {
        "metrics": recording.metrics is None,
        "logs": recording.logs is None and recording.patterns is None,
        "traces": recording.spans is None and recording.span_stats is None,
        "topology": recording.topology is None,
        "changes": recording.changes is None,
        "events": recording.events is None,
        "objects": recording.objects is None,
        "statements": recording.statements is None,
    }
    return [name for name, absent in sources.items() if absent]
