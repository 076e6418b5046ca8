"""What decides that a run is healthy: the alert's own measures were read and stayed within what was usual before.

A twitchy monitor, or an alert gone stale. The offline planner takes the verdict over (`models/offline_conclusion.py`), and the
conclusion's checks hold a planner's own "healthy" against the same evidence (`verification/conclusion_checks.py`).
"""

from collections.abc import Sequence

from opsleuth.analysis.alert_measures import (
    DETECTOR,
    AlertMeasure,
    judge_alert_measures,
    list_values_since,
)
from opsleuth.analysis.faint_signs import FAINT
from opsleuth.analysis.fault_kinds import SYMPTOMS
from opsleuth.analysis.level_shifts import ENOUGH, ShiftRule, find_level_shift
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.number_format import format_number, scale_to_readable_unit
from opsleuth.analysis.records import Finding, Recording, Suspect
from opsleuth.state.run_status import Verdict

# Two spreads, less than a detector asks for: calm is only said of what does not even lean towards trouble.
LEANING = 2.0
_EITHER_SIDE = tuple(ShiftRule("other", side, 1e-9, 0.05, noticeable=LEANING) for side in (+1, -1))


def find_unchanged_alert_metrics(recording: Recording) -> list[Finding]:
    """A `healthy` finding for each series the alert is about, if all of them stayed within what was usual before."""
    own = judge_alert_measures(recording)
    findings = [_finding_if_unchanged(recording, measure) for measure in own]
    calm = [finding for finding in findings if finding is not None]
    return calm if len(calm) == len(own) else []


def _finding_if_unchanged(recording: Recording, measure: AlertMeasure) -> Finding | None:
    series, judged = measure
    if judged.state != "usual" or len(series.values) < ENOUGH or _leans_to_trouble(recording, measure):
        return None
    values = list_values_since(recording, series) or series.values
    levels = (min(values), max(values), judged.low, judged.high)
    (low, high, usual_low, usual_high), unit = scale_to_readable_unit(levels, series.unit)
    return Finding(
        detector="calm",
        signal="metrics",
        service=series.service,
        kind="other",
        size=1.0,
        text=(
            f"{series.metric} of {series.service} kept between {format_number(low)} and {format_number(high)} {unit}".rstrip()
            + f", as in the stretch before ({format_number(usual_low)} to {format_number(usual_high)})."
        ),
        figures={"low": low, "high": high, "usual_low": usual_low, "usual_high": usual_high, "unit": unit},
        direction="healthy",
        metric=series.metric,
    )


def _leans_to_trouble(recording: Recording, measure: AlertMeasure) -> bool:
    series = measure.series
    role = find_metric_role(series.metric, series.unit, series.values)
    rest = [
        value
        for other in recording.metrics_baseline or ()
        if (other.service, other.metric, other.instance) == (series.service, series.metric, series.instance)
        for value in other.values
    ]
    scale, onset = role.scale if role else 1.0, recording.alert.onset
    return any(find_level_shift(series, scale, rule, onset, rest) for rule in _EITHER_SIDE)


def choose_verdict(suspects: Sequence[Suspect], findings: Sequence[Finding]) -> Verdict:
    """A cause where there is a suspect; healthy only if the alert's own measures were seen to be as usual, and none of them moved.

    Faint signs of what users feel (slowness, failures) leave it open.
    """
    if suspects:
        return Verdict.CAUSE_FOUND
    moved = any(
        finding.detector == DETECTOR or (finding.direction == FAINT and finding.kind in SYMPTOMS)
        for finding in findings
    )
    as_usual = any(finding.direction == "healthy" for finding in findings)
    return Verdict.HEALTHY if as_usual and not moved else Verdict.INCONCLUSIVE
