"""Statistics that a few wild samples cannot spoil: medians, spreads with a floor, change points.

Everything takes plain sequences of finite floats and is pure. A metric's scale is not known to the
arithmetic, so each caller states the floor under its spread in the quantity's own unit: without one, a
series that never moves turns the smallest wobble into an infinite deviation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import NormalDist, median

# The median absolute deviation of a normal sample times this is its standard deviation.
MAD_TO_SIGMA = 1.4826
# A change point stands where noise alone would show one as clear in one series of a hundred; it has so many samples on either side.
CHANCE = 0.01
LEAST_OF_A_SIDE = 3


@dataclass(frozen=True, slots=True)
class UsualLevel:
    """What a quantity is like at rest: its level, how far it strays (`spread` > 0), from how many samples."""

    level: float
    spread: float
    count: int


def quantile(values: Sequence[float], share: float) -> float:
    """Linear quantile of a non-empty sequence; `share` in [0, 1]."""
    if not values:
        raise ValueError("quantile of no samples; give at least one")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def robust_spread(values: Sequence[float], floor: float) -> float:
    """Robust standard deviation (scaled MAD), never under `floor` (same unit as the values, > 0)."""
    if floor <= 0:
        raise ValueError(f"spread needs a floor above 0 in the quantity's unit, got {floor}")
    if not values:
        return floor
    centre = median(values)
    return max(floor, MAD_TO_SIGMA * median(abs(value - centre) for value in values))


def measure_usual_level(values: Sequence[float], floor: float) -> UsualLevel | None:
    """Level and spread of samples taken at rest; None without samples."""
    if not values:
        return None
    return UsualLevel(level=median(values), spread=robust_spread(values, floor), count=len(values))


def typical_step(times: Sequence[float]) -> float:
    """Median distance between neighbouring sample times, seconds; 0 for fewer than two samples."""
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return median(gaps) if gaps else 0.0


def find_change_point(times: Sequence[float], values: Sequence[float]) -> float | None:
    """Time of the first sample after the one split that best separates low from high values.

    The extreme of the cumulative sum of centred ranks (Pettitt's statistic): a single outlier moves it by one
    rank only. None for fewer than four samples, or if all values are equal. O(n log n).
    """
    if len(values) < 4 or min(values) == max(values):
        return None
    ranks = _mid_ranks(values)
    centre = (len(values) + 1) / 2
    total, best, place = 0.0, 0.0, 0
    for index in range(len(values) - 1):
        total += ranks[index] - centre
        if abs(total) > best:
            best, place = abs(total), index + 1
    return times[place]


def find_significant_change_point(times: Sequence[float], values: Sequence[float]) -> float | None:
    """The change point where it is no chance find, else None: noise has a best split as well.

    Either a gap lies between the two sides that is wider than both of them, or they rank apart more than chance allows
    at the best of all splits (Mann and Whitney's test, corrected for the number of splits) and their medians lie further
    apart than either side strays. At least three samples on each side.
    """
    place = _find_widest_gap(values)
    if place is not None:
        return times[place]
    turn = find_change_point(times, values)
    if turn is None:
        return None
    place = list(times).index(turn)
    before, after = values[:place], values[place:]
    if min(len(before), len(after)) < LEAST_OF_A_SIDE:
        return None
    spread = max(robust_spread(before, math.ulp(1.0)), robust_spread(after, math.ulp(1.0)))
    apart = max(measure_rank_rise(before, after), measure_rank_rise(after, before))
    chance = 2 * (1 - NormalDist().cdf(apart)) * (len(values) - 1)
    return turn if chance < CHANCE and abs(median(after) - median(before)) > spread else None


def _find_widest_gap(values: Sequence[float]) -> int | None:
    """The split whose sides lie further apart than either of them is wide; the one with the widest gap."""
    lows, highs = list(accumulate(values, min)), list(accumulate(values, max))
    low_after, high_after = list(accumulate(values[::-1], min)), list(accumulate(values[::-1], max))
    best, place = 0.0, None
    for split in range(LEAST_OF_A_SIDE, len(values) - LEAST_OF_A_SIDE + 1):
        low, high = low_after[len(values) - split - 1], high_after[len(values) - split - 1]
        gap = max(low - highs[split - 1], lows[split - 1] - high)
        if gap > max(best, high - low, highs[split - 1] - lows[split - 1]):
            best, place = gap, split
    return place


def measure_rank_rise(before: Sequence[float], since: Sequence[float]) -> float:
    """Standard deviations by which `since` ranks above `before`; 0 where it does not (Mann and Whitney's test).

    Unlike a ratio of medians it is not moved where two kinds of values, fast and slow, are mixed as they were.
    """
    first, second = len(before), len(since)
    whole = first + second
    if not first or not second:
        return 0.0
    ranks = _mid_ranks([*before, *since])
    above = sum(ranks[first:]) - second * (whole + 1) / 2
    # The mean square of centred ranks is smaller where values are equal: the correction for ties.
    spread = sum((rank - (whole + 1) / 2) ** 2 for rank in ranks) / whole
    variance = first * second * spread / max(1, whole - 1)
    return max(0.0, above / math.sqrt(variance)) if variance > 0 else 0.0


def _mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, equal values sharing the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in range(start, end + 1):
            ranks[order[place]] = (start + end) / 2 + 1
        start = end + 1
    return ranks
