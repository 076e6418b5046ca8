"""What people or pipelines changed shortly before the onset.

A change by itself is not trouble. It becomes a suspect where its service also shows trouble, and the more so the
shorter before the onset it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, GradedChange, MetricSeries, Recording, ServiceChange
from opsleuth.analysis.robust_statistics import robust_spread, typical_step

FAULT_KIND_BY_CHANGE: Mapping[str, str] = {
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
_ENOUGH_SAMPLES = 3
_FLOOR_SHARE = 0.1
# What wobbles less than by a fifth is all of the move.
_WHOLE_MOVE = 0.8


def find_recent_changes(recording: Recording) -> list[Finding]:
    """One finding for each service and kind: the last change before the onset; size falls with its distance."""
    onset, step = assumed_onset_of(recording), find_onset_slack(recording)
    ordered = sorted(recording.changes or (), key=lambda c: (c.time, c.summary))
    last: dict[tuple[str, str], ServiceChange] = {}
    for change in drop_rolled_back_changes([change for change in ordered if change.time <= onset + step]):
        last[change.service, FAULT_KIND_BY_CHANGE.get(change.kind, "deploy")] = change
    findings = [build_change_finding(change, kind, onset) for (_, kind), change in last.items()]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind))


def sampling_step_of(recording: Recording) -> float:
    """The seconds by which an onset may be late: one sample of the coarser series, at most a minute."""
    steps = [typical_step(series.times) for series in recording.metrics or () if len(series.times) > 1]
    return min(_SAMPLE_SECONDS, max(steps, default=_SAMPLE_SECONDS))


def find_onset_slack(recording: Recording) -> float:
    """The seconds after the onset at which what set it off may be recorded: less than a sampling step.

    A sample that is as bad as those after it was bad from its beginning, so that nothing later set it off; one that
    is half as bad became so in the middle of its step.
    """
    onset, step = assumed_onset_of(recording), sampling_step_of(recording)
    shares = [
        share
        for series in recording.metrics or ()
        if recording.alert.service in (None, series.service)
        and (share := _share_of_move_at(series, onset, step)) is not None
    ]
    return step * (1.0 - max(shares)) if shares else step


def _share_of_move_at(series: MetricSeries, onset: float, step: float) -> float | None:
    """How much of its move a series had made at its first sample from the onset on; None where it did not move then."""
    place = next((i for i, time in enumerate(series.times) if time >= onset), len(series.times))
    before, after = series.values[:place], series.values[place + 1 :]
    if min(len(before), len(after)) < _ENOUGH_SAMPLES or series.times[place] >= onset + step:
        return None
    usual, incident = median(before), median(after)
    if abs(incident - usual) < _NOTICEABLE * robust_spread(before, _FLOOR_SHARE * abs(usual) or 1e-9):
        return None
    share = min(1.0, max(0.0, (series.values[place] - usual) / (incident - usual)))
    return 1.0 if share >= _WHOLE_MOVE else share


def keep_suspected_changes(
    recording: Recording, findings: Iterable[Finding], graded: Sequence[GradedChange]
) -> list[Finding]:
    """The findings without those on innocent changes, and with one on each other change that was passed over."""
    onset = assumed_onset_of(recording)
    wanted = [g.change for g in graded if g.grade != "innocent"]
    kept = [
        f
        for f in findings
        if f.detector != "changes" or any((f.service, f.onset) == (c.service, c.time) for c in wanted)
    ]
    shown = {(f.service, f.onset) for f in kept if f.detector == "changes"}
    missing = {(c.service, c.time): c for c in wanted if (c.service, c.time) not in shown}
    return kept + [
        build_change_finding(change, FAULT_KIND_BY_CHANGE.get(change.kind, "deploy"), onset)
        for change in missing.values()
    ]


def drop_rolled_back_changes(changes: Iterable[ServiceChange]) -> list[ServiceChange]:
    """Those of the changes (in order of time) that no later rollback of the same service took back."""
    standing: list[ServiceChange] = []
    for change in changes:
        if change.kind == "rollback":
            back = _find_rollback_target(standing, change)
            standing = [c for i, c in enumerate(standing) if c.service != change.service or i <= back]
        standing.append(change)
    return standing


def _find_rollback_target(standing: Sequence[ServiceChange], rollback: ServiceChange) -> int:
    """The place of the change that a rollback goes back to; without a version the one before the last is meant.

    Two releases of one version may differ in their configuration: then the last is what is taken back.
    """
    own = [i for i, change in enumerate(standing) if change.service == rollback.service]
    named = [i for i in own if rollback.version and standing[i].version == rollback.version]
    if len(named) > 1 and named[-1] == own[-1]:
        return named[-2]
    return named[-1] if named else own[-2] if len(own) > 1 else -1


def weigh_changes_by_support(findings: Sequence[Finding]) -> list[Finding]:
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


def build_change_finding(change: ServiceChange, kind: str, onset: float) -> Finding:
    ahead = max(onset - change.time, 0.0)
    minutes, seconds = round(ahead / 60.0), round(ahead)
    near = ahead < _SOON_SECONDS
    version = f" {change.version}" if change.version else ""
    figures = {"minutes_before_onset": minutes, "change": change.kind, "summary": change.summary}
    if near:
        figures["seconds_before_onset"] = seconds
    if change.version:
        figures["version"] = change.version
    when = f"{seconds} s before" if near else f"{minutes} min before"
    if change.time > onset:  # within one sample of the series that shows the onset
        seconds = round(change.time - onset)
        figures = {name: value for name, value in figures.items() if name != "seconds_before_onset"}
        figures["seconds_after_onset"] = seconds
        when = f"{seconds} s after"
    return Finding(
        detector="changes",
        signal="changes",
        service=change.service,
        kind=kind,
        size=_AT_ONCE * (_RESTORED if change.kind == "rollback" else 1.0) / (1.0 + ahead / _HALF_SECONDS),
        text=f"{change.kind}{version} of {change.service} {when} the onset: {change.summary}",
        figures=figures,
        onset=change.time,
    )
