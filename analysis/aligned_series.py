"""Several series on one time axis: means of equal intervals, the ratio of two, and how far they move together."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from statistics import fmean

from opsleuth.analysis.records import MetricSeries, TimeRange
from opsleuth.analysis.robust_statistics import typical_step

EVEN_STEPS = (
    *(1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0),
    *(3_600.0, 7_200.0, 21_600.0, 86_400.0),
)
"""Steps in seconds that divide minutes, hours or days, so that times are easy to read."""
LEAST_PAIRS = 8
"""Stretches that two series must share before a correlation says anything."""
_MOST_SHIFT = 10


@dataclass(frozen=True, slots=True)
class AlignedSeries:
    """Columns over one axis: `times` are the starts of stretches of `step` seconds; None where a series has no sample."""

    step: float
    times: Sequence[float]
    columns: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's coefficient over `pairs` stretches, and the shift at which it is strongest.

    `shift` in seconds is positive where the second series follows the first.
    """

    coefficient: float
    pairs: int
    shift: float
    shifted: float


def align_series(groups: Sequence[Sequence[MetricSeries]], span: TimeRange, most: int) -> AlignedSeries:
    """Each group of series (the instances of one metric) as one column of means, on at most `most` stretches."""
    coarsest = max((typical_step(one.times) for group in groups for one in group), default=0.0)
    needed = max(coarsest, (span.end - span.start) / most)
    step = next((even for even in EVEN_STEPS if even >= needed), math.ceil(needed))
    start = math.floor(span.start / step) * step
    buckets = [_average_by_stretch(group, span, start, step) for group in groups]
    used = sorted({place for bucket in buckets for place in bucket})
    times = [start + place * step for place in used]
    return AlignedSeries(step, times, [[bucket.get(place) for place in used] for bucket in buckets])


def _average_by_stretch(
    group: Sequence[MetricSeries], span: TimeRange, start: float, step: float
) -> dict[int, float]:
    """The mean of all samples in each stretch, by its number from `start`."""
    found: dict[int, list[float]] = defaultdict(list)
    for one in group:
        for time, value in zip(one.times, one.values, strict=True):
            if span.start <= time < span.end and math.isfinite(value):
                found[int((time - start) // step)].append(value)
    return {place: fmean(values) for place, values in found.items()}


def divide_columns(first: Sequence[float | None], second: Sequence[float | None]) -> list[float | None]:
    """First by second; None where one is missing or the second is zero."""
    return [None if a is None or b is None or b == 0 else a / b for a, b in zip(first, second, strict=True)]


def correlate_columns(aligned: AlignedSeries, first: int, second: int) -> Correlation | None:
    """How far two columns move together; None where they share too little, or one never moves."""
    a, b = aligned.columns[first], aligned.columns[second]
    now = _correlate_pairs(a, b)
    if now is None:
        return None
    reach = min(_MOST_SHIFT, len(a) // 4)
    shifted = [
        (found, shift) for shift in range(-reach, reach + 1) if (found := _correlate_shifted(a, b, shift))
    ]
    best, shift = max(shifted, key=lambda one: (abs(one[0][0]), -abs(one[1])))
    return Correlation(now[0], now[1], shift * aligned.step, best[0])


def _correlate_shifted(
    a: Sequence[float | None], b: Sequence[float | None], shift: int
) -> tuple[float, int] | None:
    return (
        _correlate_pairs(a[: len(a) - shift], b[shift:])
        if shift >= 0
        else _correlate_pairs(a[-shift:], b[:shift])
    )


def _correlate_pairs(a: Sequence[float | None], b: Sequence[float | None]) -> tuple[float, int] | None:
    """Pearson's coefficient over the places where both have a value, and how many these are."""
    both = [x is not None and y is not None for x, y in zip(a, b, strict=True)]
    left = [value for value in compress(a, both) if value is not None]
    right = [value for value in compress(b, both) if value is not None]
    if len(left) < LEAST_PAIRS:
        return None
    mean_left, mean_right = fmean(left), fmean(right)
    spread = math.sqrt(sum((x - mean_left) ** 2 for x in left) * sum((y - mean_right) ** 2 for y in right))
    if spread == 0.0 or not math.isfinite(spread):
        return None
    product = sum((x - mean_left) * (y - mean_right) for x, y in zip(left, right, strict=True))
    return max(-1.0, min(1.0, product / spread)), len(left)
