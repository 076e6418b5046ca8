"""When the incident began, as far as the alert's own metric can tell: alerts fire late."""

from collections.abc import Sequence
from dataclasses import replace

from opsleuth.analysis.records import Recording, Series
from opsleuth.analysis.robust import quantile, spread, typical_step

# The level of the incident must differ from the usual one by so many spreads before it may move the start.
NOTICEABLE = 3.0
# A tenth of the level is nothing, whatever the quantity.
FLOOR_SHARE = 0.1


def moment_of(recording: Recording) -> float:
    """When the incident is held to begin: the alert's onset, else when it was sent, else the end of the window."""
    known = [moment for moment in (recording.alert.onset, recording.alert.fired) if moment is not None]
    return known[0] if known else recording.window.end


def with_start(recording: Recording) -> Recording:
    """The same recording with `alert.onset` moved back to where the alerting metric left its usual level.

    Unchanged if the alert has no onset, its metric is not recorded, or nothing before the onset is as usual.
    """
    alert = recording.alert
    own = [s for s in recording.metrics or () if (s.service, s.metric) == (alert.service, alert.metric)]
    if alert.onset is None or not own:
        return recording
    onset = min(_start(series, alert.onset) for series in own)
    return replace(recording, alert=replace(alert, onset=onset))


def _start(series: Series, onset: float) -> float:
    step = typical_step(series.times)
    cut = sum(1 for time in series.times if time + step <= onset)
    before, after = series.values[:cut], series.values[cut:]
    if not before or not after:
        return onset
    first = _first_on_its_side(before, after)
    return onset if first is None else min(onset, series.times[first])


def _first_on_its_side(before: Sequence[float], after: Sequence[float]) -> int | None:
    """Place of the first of the last samples before the alert that already lie nearer to the incident's level."""
    rising = quantile(after, 0.75) - quantile(before, 0.25)
    falling = quantile(before, 0.75) - quantile(after, 0.25)
    sign = 1.0 if rising >= falling else -1.0
    usual = sign * quantile([sign * value for value in before], 0.25)
    incident = sign * quantile([sign * value for value in after], 0.75)
    low = [value for value in before if sign * (value - usual) <= 0] or [usual]
    if abs(incident - usual) < NOTICEABLE * spread(low, FLOOR_SHARE * abs(usual) or 1e-9):
        return None
    halfway = (usual + incident) / 2
    first = len(before)
    while first > 0 and sign * (before[first - 1] - halfway) > 0:
        first -= 1
    return first if 0 < first < len(before) else None
