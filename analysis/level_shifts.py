"""Whether one series left its usual level on its bad side, by how much, and since when.

Two comparisons are tried: the incident against the samples before the alert's onset, and the end of the window
against its start, because an alert often fires long after the thing began. A fault-free recording of another
time, where there is one, is a second reference in both: what either of them shows is usual.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from opsleuth.analysis.records import MetricSeries
from opsleuth.analysis.robust_statistics import quantile, robust_spread, typical_step

# A level must leave the usual one by so many spreads (one false alarm in some hundred).
NOTICEABLE = 3.0
# At its limit a share of capacity cannot stand out any further: there two thirds of that will do.
SATURATED = 0.95
SATURATED_NOTICEABLE = 2.0
# The start of a window: a twentieth of it, and three samples where so many came before the incident.
HEAD_SHARE = 20
HEAD = 3
# Fewer samples have no start and no end.
ENOUGH = 4


@dataclass(frozen=True, slots=True)
class ShiftRule:
    """How to read one quantity: fault `kind`, bad `side` (+1 more, -1 less), and what is too little to count.

    The spread is never under `floor` (in the quantity's unit) plus `relative` of the usual level; `ratio` is how
    many times the usual level it must reach, and `least` by how much it must move; below `harmful` (of
    shares of a capacity), or `sure` times the usual, it moved but proves nothing by itself. `symptom` marks what suffers more often
    than it causes, `grows` what piles up until the end and is judged by where it has got to.
    """

    kind: str
    side: int
    floor: float
    relative: float
    ratio: float = 1.0
    harmful: float = 0.0
    symptom: bool = False
    noticeable: float = NOTICEABLE
    least: float = 0.0
    sure: float = 1.0
    grows: bool = False


@dataclass(frozen=True, slots=True)
class LevelShift:
    """A level that moved: `usual` to `incident` in the quantity's unit, by `score` spreads, first seen at `onset`.

    `size` is the score brought to a scale on which `NOTICEABLE` is just that, also where less was asked for.
    """

    usual: float
    incident: float
    score: float
    size: float
    onset: float | None


@dataclass(frozen=True, slots=True)
class _ShiftComparison:
    """One comparison: a level in the incident, the samples at rest, and the samples from `cut` on as incident."""

    incident: float
    rests: Sequence[Sequence[float]]
    wobble: float
    cut: int


def find_level_shift(
    series: MetricSeries, scale: float, rule: ShiftRule, onset: float | None, reference: Sequence[float] = ()
) -> LevelShift | None:
    """The move that the alert's onset divides, else the drift of the window, None if neither is what the rule asks for.

    `scale` times a value is in the rule's unit; `reference` are values of the fault-free recording, unscaled;
    `onset` is when the incident began as far as the alert knows.
    """
    values = [value * scale for value in series.values]
    rest = [value * scale for value in reference]
    step = typical_step(series.times)
    cut = sum(1 for time in series.times if onset is not None and time + step <= onset)
    views = [_compare_at_onset(values, cut, rule, rest), _compare_start_and_end(values, cut, rest)]
    if rule.grows:
        views.append(_compare_last_quarter(values, cut, rest))
    moves = (_measure_shift(series.times, values, view, rule) for view in views if view is not None)
    return next((move for move in moves if move is not None), None)


def _compare_at_onset(
    values: Sequence[float], cut: int, rule: ShiftRule, reference: Sequence[float]
) -> _ShiftComparison | None:
    rests = [part for part in (values[:cut], reference) if part]
    if not rests or cut == len(values):
        return None
    # A fault may end inside the window: the level that a quarter of the samples pass speaks for it.
    return _ShiftComparison(quantile(values[cut:], 0.75 if rule.side > 0 else 0.25), rests, 0.0, cut)


def _compare_start_and_end(
    values: Sequence[float], cut: int, reference: Sequence[float]
) -> _ShiftComparison | None:
    if len(values) < ENOUGH:
        return None
    # One sample is enough of a start only where the incident may have begun with the second.
    head = values[: max(HEAD if cut >= ENOUGH else 1, len(values) // HEAD_SHARE)]
    half = len(values) // 2
    # The wobble inside either half counts as noise: what swings to and fro has not gone anywhere.
    wobble = max(robust_spread(values[:half], math.ulp(1.0)), robust_spread(values[half:], math.ulp(1.0)))
    return _ShiftComparison(median(values[half:]), [part for part in (head, reference) if part], wobble, 0)


def _compare_last_quarter(
    values: Sequence[float], cut: int, reference: Sequence[float]
) -> _ShiftComparison | None:
    """The last quarter of the incident: what leaks is least in view when it starts."""
    rests = [part for part in (values[:cut], reference) if part]
    last = max(HEAD, (len(values) - cut) // 4)
    if not rests or len(values) - cut < last:
        return None
    return _ShiftComparison(median(values[-last:]), rests, 0.0, cut)


def _measure_shift(
    times: Sequence[float], values: Sequence[float], view: _ShiftComparison, rule: ShiftRule
) -> LevelShift | None:
    """Distance of the incident from the nearest level at rest, in the widest of their spreads."""
    levels = [median(rest) for rest in view.rests]
    level = max(levels) if rule.side > 0 else min(levels)
    floor = rule.floor + rule.relative * abs(level)
    noise = max(view.wobble, *(robust_spread(rest, floor) for rest in view.rests))
    score = rule.side * (view.incident - level) / noise
    needed = SATURATED_NOTICEABLE if rule.harmful > 0 and view.incident >= SATURATED else rule.noticeable
    too_little = rule.side * (view.incident - level) < rule.least
    if score < needed or too_little or (rule.side > 0 and view.incident < rule.ratio * level):
        return None
    beyond = [rule.side * (value - level) > needed * noise for value in values]
    return LevelShift(
        level,
        view.incident,
        score,
        score * NOTICEABLE / needed,
        _find_excursion_start(times, beyond, view.cut),
    )


def _find_excursion_start(times: Sequence[float], beyond: Sequence[bool], cut: int) -> float | None:
    """When the excursion began that touches the incident (samples from `cut` on); None if there is none."""
    first = next((index for index in range(cut, len(beyond)) if beyond[index]), None)
    if first is None:
        return None
    while first > 0 and beyond[first - 1]:
        first -= 1
    return times[first]
