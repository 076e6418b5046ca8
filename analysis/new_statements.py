"""Statements that a release brought: statements that a database first received after its caller changed.

The database is slow, but what made it so is the release. The same statement grown slow by itself, as after an index
was lost, has no such change before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from opsleuth.analysis.changes import FAULT_KIND_BY_CHANGE
from opsleuth.analysis.fault_kinds import SYMPTOMS, symptoms_of_kind
from opsleuth.analysis.records import Finding, Recording, ServiceChange
from opsleuth.analysis.sql_statements import find_first_seen_times, shorten_statement

# A release serves within minutes, and statements are read every so often.
WITHIN_SECONDS = 600.0
# Clocks of two systems, and the rounding of a commit's time.
SLACK_SECONDS = 2.0


def attribute_new_statements(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; a new statement's database becomes the victim of the release that brought it, which is added.

    Whoever made the release is its victim too, insofar as it complains of the database or of what follows from it.
    """
    seen = find_first_seen_times(recording)
    brought: list[Finding] = []
    victims: set[tuple[str, str]] = set()
    for finding in findings:
        since = seen.get((finding.service, finding.figures.get("statement", "")))
        change = None if since is None else _find_last_caller_change(recording, finding.service, since)
        if change is not None:
            brought.append(_build_release_finding(finding, change))
            follows = {finding.kind, *symptoms_of_kind(finding.kind)} - SYMPTOMS
            victims |= {(finding.service, finding.kind), *((change.service, kind) for kind in follows)}
    told = (replace(f, direction="victim") if (f.service, f.kind) in victims else f for f in findings)
    return [*told, *brought]


def _find_last_caller_change(recording: Recording, database: str, since: float) -> ServiceChange | None:
    """The last change of a caller of the database before the statement was first seen."""
    latest = since + SLACK_SECONDS
    callers = set(_list_callers(recording, database))
    fitting = [
        change
        for change in recording.changes or ()
        if change.service in callers and latest - WITHIN_SECONDS <= change.time <= latest
    ]
    return max(fitting, key=lambda change: (change.time, change.summary), default=None)


def _list_callers(recording: Recording, service: str) -> Iterable[str]:
    if recording.topology:
        return (edge.caller for edge in recording.topology if edge.callee == service)
    return (recording.alert.service,) if recording.alert.service else ()


def _build_release_finding(finding: Finding, change: ServiceChange) -> Finding:
    release = f"{change.kind} {change.version}" if change.version else change.kind
    figures = {
        "statement": finding.figures["statement"],
        "database": finding.service,
        "change": change.kind,
        "summary": change.summary,
    }
    if change.version:
        figures["version"] = change.version
    return Finding(
        detector="brought",
        signal="statements",
        service=change.service,
        kind=FAULT_KIND_BY_CHANGE.get(change.kind, "deploy"),
        size=finding.size,
        text=(
            f'The statement "{shorten_statement(str(finding.figures["statement"]), 90)}" is new on {finding.service} since '
            f"{release} of {change.service}: {change.summary}."
        ),
        figures=figures,
        onset=change.time,
    )
