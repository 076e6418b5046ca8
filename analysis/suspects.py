"""From findings to suspects: joined per service, weighed against the call graph, explained by one another."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opsleuth.analysis.kinds import SYMPTOMS
from opsleuth.analysis.records import Finding, Recording, Suspect
from opsleuth.analysis.roles import role_of
from opsleuth.analysis.scoring import by_kind, carries, joined, leading_kinds, strengths
from opsleuth.analysis.topology import callees_of, distances, strangers

# A caller whose own evidence is a symptom is explained by a callee that is at least half as suspect.
EXPLAINS = 0.5
EXPLAINED_WEIGHT = 0.5
# What happens where no call leads to or from the alerting service is most likely its own affair.
STRANGER_WEIGHT = 0.5


def accused(findings: Sequence[Finding], discounts: Mapping[str, float]) -> list[Suspect]:
    """Who the findings point at: one suspect per service and independent kind, strongest first.

    `discounts` weigh single kinds down (by kind, in 0 to 1).
    """
    groups: dict[str, list[tuple[Finding, float]]] = defaultdict(list)
    for place, strength in strengths(findings, discounts).items():
        if findings[place].service:  # what no service is named for accuses nobody
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


def related(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Services that have no calls in common with the alerting one count less: what happens there is its own affair."""
    elsewhere = strangers(recording.topology, recording.alert.service)
    return [replace(s, score=s.score * STRANGER_WEIGHT) if s.service in elsewhere else s for s in suspects]


def _time(onset: float | None) -> float:
    return math.inf if onset is None else onset


def explained(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Suspects whose evidence a callee's fault explains step back behind it, the rest keep their score."""
    callees = callees_of(recording.topology)
    reach = {suspect.service: distances(callees, suspect.service) for suspect in suspects}
    role = role_of(recording.alert.metric or "", "")
    # What the alert asks about is the incident itself, whatever feeds it; a symptom is never all of it.
    asked = {role.name} - SYMPTOMS if role else set()
    reasons = {_key(s): _reason(s, suspects, reach) for s in suspects if s.kind not in asked}
    return _ordered(_stepped_back(suspect, reasons) for suspect in suspects)


def _key(suspect: Suspect) -> tuple[str, str]:
    return suspect.service, suspect.kind


def _reason(
    suspect: Suspect, others: Sequence[Suspect], reach: Mapping[str, Mapping[str, int]]
) -> Suspect | None:
    """The strongest suspect below in the calls that explains this one; of a circle of calls the strongest stays."""
    standing = (suspect.score, suspect.service)
    below = [
        other
        for other in others
        if (calls := reach[suspect.service].get(other.service))
        and other.score >= EXPLAINS * suspect.score
        and carries(other.kind, suspect.kind, direct=calls == 1)
        and (suspect.service not in reach[other.service] or (other.score, other.service) > standing)
    ]
    return max(below, key=lambda other: (other.score, other.service), default=None)


def _stepped_back(suspect: Suspect, reasons: Mapping[tuple[str, str], Suspect | None]) -> Suspect:
    """At most half of its score, and never before what explains it (which may step back itself)."""
    reason = reasons.get(_key(suspect))
    if reason is None:
        return suspect
    score = min(suspect.score * EXPLAINED_WEIGHT, _stepped_back(reason, reasons).score)
    return replace(suspect, score=score, explained_by=reason.service)


def told_once(suspects: Sequence[Suspect], alike: float) -> list[Suspect]:
    """Changes step back behind what stands out in their own service: they set it off, and are no cause beside it.

    `alike` is the share of a change's score from which another suspect of its service counts.
    """
    shown = [s for s in suspects if s.findings[0].signal != "changes"]
    told = []
    for suspect in suspects:
        peers = [
            s
            for s in shown
            if s.service == suspect.service and s.score >= alike * suspect.score and s != suspect
        ]
        if suspect.findings[0].signal == "changes" and peers:
            score = min(suspect.score, peers[0].score) * EXPLAINED_WEIGHT
            told.append(replace(suspect, score=score, explained_by=suspect.service))
        else:
            told.append(suspect)
    return _ordered(told)
