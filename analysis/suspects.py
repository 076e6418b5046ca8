"""From findings to suspects: joined per service, weighed against the call graph, explained by one another."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opsleuth.analysis.fault_kinds import SYMPTOMS
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.records import Finding, Recording, Suspect
from opsleuth.analysis.scoring import (
    combine_strengths,
    combine_strengths_by_kind,
    is_visible_in_caller,
    score_cause_findings,
    select_leading_kinds,
)
from opsleuth.analysis.sql_statements import is_judged_without_history
from opsleuth.analysis.topology import callees_by_caller, find_unrelated_services, measure_call_distances

# A caller whose own evidence is a symptom is explained by a callee that is at least half as suspect.
EXPLAINS = 0.5
EXPLAINED_WEIGHT = 0.5
# What happens where no call leads to or from the alerting service is most likely its own affair.
STRANGER_WEIGHT = 0.5
# Whoever waits for a callee does not work: that a processor is busy takes more than a statement nobody knows as quick.
_OWN_WORK = "cpu"


def suspects_from_findings(findings: Sequence[Finding], discounts: Mapping[str, float]) -> list[Suspect]:
    """Who the findings point at: one suspect per service and independent kind, strongest first.

    `discounts` weigh single kinds down (by kind, in 0 to 1).
    """
    groups: dict[str, list[tuple[Finding, float]]] = defaultdict(list)
    for place, strength in score_cause_findings(findings, discounts).items():
        if findings[place].service:  # what no service is named for accuses nobody
            groups[findings[place].service].append((findings[place], strength))
    return _sort_suspects(suspect for parts in groups.values() for suspect in _suspects_of_service(parts))


def _suspects_of_service(parts: Sequence[tuple[Finding, float]]) -> list[Suspect]:
    """One suspect for the leading kind of a service, and one for each other kind that stands on its own."""
    kinds = combine_strengths_by_kind(parts)
    leading = select_leading_kinds(kinds)
    whole = combine_strengths(parts)
    others = [kind for kind in leading[1:] if kind not in SYMPTOMS]
    return [
        _build_suspect(parts, kind, whole * kinds[kind] / kinds[leading[0]]) for kind in (leading[0], *others)
    ]


def _build_suspect(parts: Sequence[tuple[Finding, float]], kind: str, score: float) -> Suspect:
    ordered = sorted(parts, key=lambda part: (part[0].kind != kind, -part[1], part[0].text))
    best = ordered[0][0]
    return Suspect(best.service, kind, score, [f for f, _ in ordered], best.metric, best.onset)


def _sort_suspects(suspects: Iterable[Suspect]) -> list[Suspect]:
    """Strongest first; of equals those that nothing explains, then those that began earlier."""
    return sorted(
        suspects,
        key=lambda s: (-s.score, s.explained_by is not None, _onset_sort_key(s.onset), s.service, s.kind),
    )


def demote_unrelated_suspects(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Services that have no calls in common with the alerting one count less: what happens there is its own affair."""
    elsewhere = find_unrelated_services(recording.topology, recording.alert.service)
    return [replace(s, score=s.score * STRANGER_WEIGHT) if s.service in elsewhere else s for s in suspects]


def _onset_sort_key(onset: float | None) -> float:
    return math.inf if onset is None else onset


def demote_explained_suspects(recording: Recording, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Suspects whose evidence a callee's fault explains step back behind it, the rest keep their score."""
    callees = callees_by_caller(recording.topology)
    reach = {suspect.service: measure_call_distances(callees, suspect.service) for suspect in suspects}
    role = find_metric_role(recording.alert.metric or "", "")
    # What the alert asks about is the incident itself, whatever feeds it; a symptom is never all of it.
    asked = {role.name} - SYMPTOMS if role else set()
    reasons = {
        _suspect_key(s): _find_explaining_suspect(s, suspects, reach) for s in suspects if s.kind not in asked
    }
    return _sort_suspects(_demote_suspect(suspect, reasons) for suspect in suspects)


def _suspect_key(suspect: Suspect) -> tuple[str, str]:
    return suspect.service, suspect.kind


def _find_explaining_suspect(
    suspect: Suspect, others: Sequence[Suspect], reach: Mapping[str, Mapping[str, int]]
) -> Suspect | None:
    """The strongest suspect below in the calls that explains this one; of a circle of calls the strongest stays."""
    standing = (suspect.score, suspect.service)
    below = [
        other
        for other in others
        if (calls := reach[suspect.service].get(other.service))
        and other.score >= EXPLAINS * suspect.score
        and is_visible_in_caller(other.kind, suspect.kind, direct=calls == 1)
        and not (suspect.kind == _OWN_WORK and is_judged_without_history(other.findings))
        and (suspect.service not in reach[other.service] or (other.score, other.service) > standing)
    ]
    return max(below, key=lambda other: (other.score, other.service), default=None)


def _demote_suspect(suspect: Suspect, reasons: Mapping[tuple[str, str], Suspect | None]) -> Suspect:
    """At most half of its score, and never before what explains it (which may step back itself)."""
    reason = reasons.get(_suspect_key(suspect))
    if reason is None:
        return suspect
    score = min(suspect.score * EXPLAINED_WEIGHT, _demote_suspect(reason, reasons).score)
    return replace(suspect, score=score, explained_by=reason.service)


def demote_redundant_changes(suspects: Sequence[Suspect], alike: float) -> list[Suspect]:
    """Changes step back behind what stands out in their own service: they set it off, and are not a cause beside it.

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
    return _sort_suspects(told)
