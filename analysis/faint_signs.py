"""Moves that statistics notice and practice does not: they name a cause only where a second sign agrees.

Many series are compared in each run, so that one of them strays beyond its usual range by chance every few dozen
runs. A cause needs more than one small move: a size that matters in practice, or another sign at the same service.
"""

from collections.abc import Sequence
from dataclasses import replace

from opsleuth.analysis.alert_measures import (
    DETECTOR,
    LEAST_LATENCY_MOVE,
    judge_alert_measures,
    kind_of_measure,
)
from opsleuth.analysis.harm_measures import FAILED_FLOOR
from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.resource_usage import HINT

FAINT = "faint"
"""Direction of a finding that is told and accuses nobody."""

_TOO_LITTLE = "This is too small to be a cause by itself."
# A measure that leaves its usual range for some samples only must pass the furthest usual sample by half.
_LEAST_EXCURSION = 0.5
# Failures that nobody holds against the requests must double.
_LEAST_FAILURES = 2.0


def doubt_faint_signs(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those that are faint and stand alone accuse nobody any more.

    A small excursion of the alert's own measure gets size 0, if a source besides metrics could have agreed. A faint sign elsewhere gets the direction `faint`,
    unless the alert's measures moved too, or could not be judged.
    """
    heard = _has_other_source(recording)
    kept = [_weaken_lone_excursion(finding, findings) if heard else finding for finding in findings]
    lone = [f for f in kept if _is_faint_accusation(f) and not _is_confirmed(f, kept)]
    asked = _list_unmoved_kinds(recording) if lone else set()
    faint = [f for f in lone if asked and f.kind not in asked]
    return [replace(f, direction=FAINT, text=f"{f.text} {_TOO_LITTLE}") if f in faint else f for f in kept]


def _has_other_source(recording: Recording) -> bool:
    """Whether something besides metrics was read, so that its silence says something."""
    sources = (recording.logs, recording.patterns, recording.spans, recording.span_stats, recording.objects)
    return any(source is not None for source in sources)


def _weaken_lone_excursion(finding: Finding, findings: Sequence[Finding]) -> Finding:
    if finding.detector != DETECTOR or not _is_small_excursion(finding) or _is_confirmed(finding, findings):
        return finding
    return replace(finding, size=0.0)


def _is_small_excursion(finding: Finding) -> bool:
    """Whether the alert's measure went only a little beyond its usual range, and only for a part of the time."""
    figures = finding.figures
    low, high, seen = figures["usual_low"], figures["usual_high"], figures["incident"]
    # A share of good requests near 1 never moves far: what fails says how much it matters.
    if figures["lasts"] or finding.kind == "errors":
        return False
    beyond, edge = (seen - high, high) if seen > high else (low - seen, low)
    return bool(beyond < _LEAST_EXCURSION * abs(edge))


def _is_faint_accusation(finding: Finding) -> bool:
    """Whether the finding accuses a service of a move that hurts nobody much."""
    if finding.direction != "cause":
        return False
    if finding.detector.startswith("resources."):
        return finding.size <= HINT
    usual, incident = finding.figures.get("usual", 0.0), finding.figures.get("incident", 0.0)
    if finding.detector == "harm.waiting":
        return bool(incident < (1.0 + LEAST_LATENCY_MOVE) * usual)
    if finding.detector == "harm.failures":
        if "usual_percent" in finding.figures:
            return bool(incident - usual < FAILED_FLOOR)
        return bool(incident < _LEAST_FAILURES * usual)
    return False


def _is_confirmed(faint: Finding, findings: Sequence[Finding]) -> bool:
    """Whether anything else speaks against the same service; a change alone does not: most changes do no harm."""
    return any(
        other.service == faint.service
        and other.size > 0
        and other.direction != "healthy"
        and other.signal != "changes"
        and (other.detector, other.metric) != (faint.detector, faint.metric)
        for other in findings
    )


def _list_unmoved_kinds(recording: Recording) -> set[str]:
    """The kinds of fault that the alert's measures speak of, if they could be judged and none of them moved."""
    judged = judge_alert_measures(recording)
    if any(measure.judgement.state in ("moved", "unknown") for measure in judged):
        return set()
    return {kind_of_measure(measure.series) for measure in judged}
