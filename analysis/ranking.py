"""From the findings of all detectors to ranked suspects, causes before victims, with the reasons in words."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile

from opsleuth.analysis import (
    brought,
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
from opsleuth.analysis.onset import with_start
from opsleuth.analysis.records import Finding, Ranking, Recording, Suspect
from opsleuth.analysis.suspects import accused, explained, related, told_once
from opsleuth.analysis.topology import callees_of, path

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

# What users do not feel counts half.
UNFELT_WEIGHT = 0.5
# A second cause stands beside the first only if it is nearly as strong, and itself more likely than not.
SECOND_CAUSE = 0.8
# Under this nothing points at anyone: it is not half of what a just noticeable symptom amounts to (0.35).
BELIEVABLE = 0.15


def detect(recording: Recording) -> list[Finding]:
    """What every detector says about the recording, strongest first inside each detector."""
    started = with_start(recording)
    return [finding for find in DETECTORS for finding in find(started)]


def rank(recording: Recording, findings: Sequence[Finding]) -> Ranking:
    """Suspects by how strongly the findings point at them, and what that means for the incident as a whole."""
    findings = changes.supported(brought.attributed(recording, findings))
    # Slowness somewhere inside explains little where users measurably wait no longer than usual.
    discounts = {"latency": UNFELT_WEIGHT} if harm.users_wait(with_start(recording)) is False else {}
    suspects = explained(recording, related(recording, accused(findings, discounts)))
    suspects = told_once(suspects, SECOND_CAUSE)
    believable = [suspect for suspect in suspects if suspect.score >= BELIEVABLE]
    causes = _causes(believable)
    return Ranking(
        verdict=_verdict(believable, findings),
        suspects=suspects,
        causes=causes,
        propagation=_propagation(recording, believable[:causes], findings),
        notes=_notes(recording, suspects, causes, findings),
    )


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
    notes += [
        f"{s.service} is explained by {s.explained_by}."
        for s in suspects
        if s.explained_by not in (None, s.service)
    ]
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
