"""What people or pipelines changed shortly before the onset.

A change by itself is no trouble. It becomes a suspect where its service also shows trouble, and the more so the
shorter before the onset it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opsleuth.analysis.onset import moment_of
from opsleuth.analysis.records import Change, Finding, Recording

KINDS: Mapping[str, str] = {
    "deploy": "deploy",
    "rollback": "deploy",
    "migration": "deploy",
    "config": "config",
    "flag": "config",
    "scale": "config",
}
# Under this a distance is told in seconds.
_SOON_SECONDS = 100.0
# Onsets are known to one sample of the monitor that saw them.
_SAMPLE_SECONDS = 60.0
# Size at the onset itself, and the time after which half of it is left: changes that break something mostly do so
# within the hour, by their first traffic. Alone it is little more than noticeable: most changes break nothing.
_AT_ONCE = 4.0
_HALF_SECONDS = 1800.0
# A rollback brings back what ran before: it is made because something is wrong more often than it makes it so.
_RESTORED = 0.25
# The size at which another detector's finding is as likely chance as not.
_NOTICEABLE = 3.0


def find(recording: Recording) -> list[Finding]:
    """One finding for each service and kind: the last change before the onset; size falls with its distance."""
    onset = moment_of(recording)
    ordered = sorted(recording.changes or (), key=lambda c: (c.time, c.summary))
    last: dict[tuple[str, str], Change] = {}
    for change in in_force([change for change in ordered if change.time <= onset + _SAMPLE_SECONDS]):
        last[change.service, KINDS.get(change.kind, "deploy")] = change
    findings = [_finding(change, kind, onset) for (_, kind), change in last.items()]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind))


def in_force(changes: Iterable[Change]) -> list[Change]:
    """Those of the changes (in order of time) that no later rollback of the same service took back."""
    standing: list[Change] = []
    for change in changes:
        if change.kind == "rollback":
            back = _place(standing, change)
            standing = [c for i, c in enumerate(standing) if c.service != change.service or i <= back]
        standing.append(change)
    return standing


def _place(standing: Sequence[Change], rollback: Change) -> int:
    """The place of the change that a rollback goes back to; without a version the one before the last is meant.

    Two releases of one version may differ in their configuration: then the last is what is taken back.
    """
    own = [i for i, change in enumerate(standing) if change.service == rollback.service]
    named = [i for i in own if rollback.version and standing[i].version == rollback.version]
    if len(named) > 1 and named[-1] == own[-1]:
        return named[-2]
    return named[-1] if named else own[-2] if len(own) > 1 else -1


def supported(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, changes weakened to what else speaks against their service, and left out where nothing does."""
    support: dict[str, float] = defaultdict(float)
    for finding in findings:
        if finding.signal != "changes" and finding.direction == "cause":
            share = finding.size / (finding.size + _NOTICEABLE)
            support[finding.service] = max(support[finding.service], share)
    return [
        f if f.signal != "changes" else replace(f, size=f.size * support[f.service])
        for f in findings
        if f.signal != "changes" or support[f.service] > 0.0
    ]


def _finding(change: Change, kind: str, onset: float) -> Finding:
    ahead = max(onset - change.time, 0.0)
    minutes, seconds = round(ahead / 60.0), round(ahead)
    near = ahead < _SOON_SECONDS
    version = f" {change.version}" if change.version else ""
    figures = {"minutes_before_onset": minutes, "change": change.kind, "summary": change.summary}
    if near:
        figures["seconds_before_onset"] = seconds
    if change.version:
        figures["version"] = change.version
    when = f"{seconds} s" if near else f"{minutes} min"
    return Finding(
        detector="changes",
        signal="changes",
        service=change.service,
        kind=kind,
        size=_AT_ONCE * (_RESTORED if change.kind == "rollback" else 1.0) / (1.0 + ahead / _HALF_SECONDS),
        text=f"{change.kind}{version} of {change.service} {when} before the onset: {change.summary}",
        figures=figures,
        onset=change.time,
    )
