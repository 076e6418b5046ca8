"""When the incident began, as far as metrics can tell: alerts fire late, and some say only when they fired."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import NamedTuple

from opsleuth.analysis.alert_measures import judge_alert_measures
from opsleuth.analysis.log_onset import find_log_onset
from opsleuth.analysis.ongoing_trouble import is_time_stated
from opsleuth.analysis.past_questions import asks_about_past
from opsleuth.analysis.records import MetricSeries, Recording, TimeRange
from opsleuth.analysis.reported_trouble import find_reported_trouble
from opsleuth.analysis.request_metrics import BEFORE_STATED, ServiceTraffic, traffic_by_service
from opsleuth.analysis.robust_statistics import find_change_point, quantile, robust_spread, typical_step

# The level of the incident must differ from the usual one by so many spreads before it may move the start.
NOTICEABLE = 3.0
# A tenth of the level is nothing, whatever the quantity.
FLOOR_SHARE = 0.1
# Rates are taken over some seconds, and rise as late.
RATE_SECONDS = 15.0
# So few samples have no level of their own.
ENOUGH = 3


def assumed_onset_of(recording: Recording) -> float:
    """The assumed beginning of the incident: the alert's onset, else when it was sent, else the end of the window."""
    known = [moment for moment in (recording.alert.onset, recording.alert.fired) if moment is not None]
    return known[0] if known else recording.window.end


def with_detected_onset(recording: Recording) -> Recording:
    """The same recording with `alert.onset` moved back to where the alerting metric left its usual level.

    An alert without onset gets the moment at which what it is about moved, or latency or failures rose. Unchanged if nothing rose, the
    alerting metric is not recorded, or nothing before the onset is as usual.
    """
    alert = recording.alert
    if alert.onset is None:
        risen = _find_unclaimed_onset(recording)
        if risen is None and alert.fired is None:
            risen = find_log_onset(recording)
        return replace(recording, alert=replace(alert, onset=risen))
    own = [s for s in recording.metrics or () if (s.service, s.metric) == (alert.service, alert.metric)]
    if not own:
        return recording
    onset = min(_earlier_onset_in_series(series, alert.onset) for series in own)
    return replace(recording, alert=replace(alert, onset=onset))


def _find_unclaimed_onset(recording: Recording) -> float | None:
    """When what the alert is about left its former range; failing that, when its service's lines, latency or failures rose."""
    moved = [
        measure.judgement.onset
        for measure in judge_alert_measures(recording)
        if measure.judgement.onset is not None
    ]
    if moved:
        return min(moved)
    own = _find_own_traffic_rise(recording)
    if own is not None:
        return own
    if reported := find_reported_trouble(recording):
        return reported.onset
    return _find_traffic_rise(recording)


def _earlier_onset_in_series(series: MetricSeries, onset: float) -> float:
    step = typical_step(series.times)
    cut = sum(1 for time in series.times if time + step <= onset)
    before, after = series.values[:cut], series.values[cut:]
    if not before or not after:
        return onset
    first = _first_sample_of_incident(before, after)
    return onset if first is None else min(onset, series.times[first])


def _first_sample_of_incident(before: Sequence[float], after: Sequence[float]) -> int | None:
    """Place of the first of the last samples before the alert that already lie nearer to the incident's level."""
    rising = quantile(after, 0.75) - quantile(before, 0.25)
    falling = quantile(before, 0.75) - quantile(after, 0.25)
    sign = 1.0 if rising >= falling else -1.0
    usual = sign * quantile([sign * value for value in before], 0.25)
    incident = sign * quantile([sign * value for value in after], 0.75)
    low = [value for value in before if sign * (value - usual) <= 0] or [usual]
    if abs(incident - usual) < NOTICEABLE * robust_spread(low, FLOOR_SHARE * abs(usual) or 1e-9):
        return None
    halfway = (usual + incident) / 2
    first = len(before)
    while first > 0 and sign * (before[first - 1] - halfway) > 0:
        first -= 1
    return first if 0 < first < len(before) else None


def _find_traffic_rise(recording: Recording) -> float | None:
    """When latency or failures of any service rose, not after the alert."""
    return _rise_before_alert(recording, traffic_by_service(recording.metrics).values())


def _find_own_traffic_rise(recording: Recording) -> float | None:
    """The same of the alerting service alone."""
    traffic, service = traffic_by_service(recording.metrics), recording.alert.service
    return _rise_before_alert(recording, [traffic[service]] if service in traffic else [])


def _rise_before_alert(recording: Recording, services: Iterable[ServiceTraffic]) -> float | None:
    alert, window = recording.alert, recording.window
    latest = window.end if alert.fired is None else min(window.end, alert.fired)
    begin = window.start if alert.stated is None else window.start - BEFORE_STATED
    looked_at = TimeRange(begin, window.end)
    span = TimeRange(begin, latest + RATE_SECONDS)
    running_first = not (is_time_stated(alert) or asks_about_past(alert, alert.service or ""))
    rise = _clearest_traffic_rise(services, looked_at, span, running_first=running_first)
    return None if rise is None else min(rise, latest)


def _clearest_traffic_rise(
    services: Iterable[ServiceTraffic], window: TimeRange, span: TimeRange, *, running_first: bool
) -> float | None:
    """The rise inside `span` by the most spreads, of all latencies and failures in the window.

    With `running_first` one that lasts to the end of the window goes before a larger one that has healed.
    """
    rises = []
    for one in services:
        inside = [s for s in one.samples if window.start <= s.time <= window.end]
        for course in (
            {s.time: s.latency for s in inside if s.latency is not None},
            {s.time: s.failed for s in inside if s.failed is not None},
        ):
            found = _find_noticeable_rises(course)
            rises += [
                (running_first and rise.running, rise.score, -rise.time)
                for rise in (found if running_first else islice(found, 1))
                if span.start <= rise.time <= span.end
            ]
    return -max(rises)[2] if rises else None


class _TrafficRise(NamedTuple):
    """Where a course rose, by how many spreads, and whether it is still up at its end."""

    score: float
    time: float
    running: bool


def _find_noticeable_rises(course: Mapping[float, float]) -> Iterator[_TrafficRise]:
    """The noticeable rise of a course, if it has one, and those after it fell again."""
    while (rise := _find_noticeable_rise(course)) is not None:
        score, time, usual, incident = rise
        halfway = (usual + incident) / 2
        after = [(t, value) for t, value in course.items() if t >= time]
        yield _TrafficRise(score, time, median(value for _, value in after[-ENOUGH:]) > halfway)
        healed = next(
            (
                i
                for i in range(1, len(after) - ENOUGH + 1)
                if all(value < halfway for _, value in after[i : i + ENOUGH])
            ),
            None,
        )
        if healed is None:
            return
        course = dict(after[healed:])


def _find_noticeable_rise(course: Mapping[float, float]) -> tuple[float, float, float, float] | None:
    """The noticeable rise of a course as (spreads, time, usual, incident); of one that fell again, the rise before."""
    times, values = list(course), list(course.values())
    while (turn := find_change_point(times, values)) is not None:
        place = times.index(turn)
        before, after = values[:place], values[place:]
        if median(after) < median(before):
            times, values = times[:place], before
            continue
        usual, incident = median(before), quantile(after, 0.75)
        score = (incident - usual) / robust_spread(before, FLOOR_SHARE * abs(usual) or 1e-9)
        if score >= NOTICEABLE and min(len(before), len(after)) >= ENOUGH:
            return score, turn, usual, incident
        return None
    return None
