"""Whether one stretch of a series left what was usual in another, for a quantity of which nothing else is known.

Nothing is assumed about name, unit, shape or sign: bursts, daily courses and constants occur among the usual ones.
So the stretch is compared with the range that the reference itself covered, never against a model of it, and never
against itself.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from opsleuth.analysis.level_shifts import ENOUGH
from opsleuth.analysis.robust_statistics import quantile, robust_spread

WindowState = Literal["moved", "unclear", "usual", "unknown"]

# By how much the samples must lie beyond the furthest of the reference, in its distance from the usual level: one
# sample that lies as far again, two by half, three by a tenth. Each has about one chance in a hundred at rest.
_BEYOND = ((1, 1.0), (2, 0.5), (3, 0.1))
# A course that drifts (each sample near the one before) leaves its former range in company, so that three tell little.
_SMOOTH = 0.5
_SMOOTH_BEYOND = ((2, 1.5), (3, 1.0))
# Half of what is asked for proves nothing, neither trouble nor rest.
_UNCLEAR_SHARE = 0.5
# A level moved if its middle lies twice as far from the usual middle as the bulk of the reference does.
_BULK = 0.98
_SHIFTED = 1.0
_SMOOTH_SHIFTED = 3.0
_SHIFT_SAMPLES = 3
# Of a constant (and of the digits that a source rounds to) a twentieth is nothing.
_FLOOR_SHARE = 0.05
_SMALLEST = 1e-9
# The stretch just before is as many times as long; a chance of one in two hundred for a crowd off the bulk, which
# reaches three spreads from the middle.
_RECENT = 3
_BULK_SPREADS = 3.0
_LEVEL_NOISE = 0.01
_RARE = 0.005
# Three spreads of the twentieth by which most levels wobble between any two stretches.
LEAST_MOVE = 0.15
EITHER_SIDE = (+1, -1)
# Splits tried where nobody knows when it began.
_MOST_SPLITS = 48
# A sixth of the window is the least that shows what is usual.
_LEAST_PART = 6


@dataclass(frozen=True, slots=True)
class WindowJudgement:
    """How the stretch compares: `low` to `high` is what the reference covered, `seen` the furthest level in the stretch.

    `usual` is the middle of the reference, `side` +1 for more and -1 for less, `margin` how far beyond, in the
    reference's own distances; `onset` is the first sample beyond (None unless it moved). `lasts` is true where
    the middle of the stretch itself left the range, by as much as counts.
    """

    state: WindowState
    usual: float = 0.0
    low: float = 0.0
    high: float = 0.0
    seen: float = 0.0
    side: int = 0
    margin: float = 0.0
    onset: float | None = None
    lasts: bool = False


UNKNOWN = WindowJudgement("unknown")


def judge_window(
    times: Sequence[float],
    values: Sequence[float],
    cut: int,
    reference: Sequence[float] = (),
    *,
    sides: Sequence[int] = EITHER_SIDE,
    least: float = LEAST_MOVE,
) -> WindowJudgement:
    """The samples from `cut` on against those before it and a fault-free `reference`; `unknown` where either lacks.

    A level that moved for good before `cut` is found as well: the samples before it then are not a reference. Only
    moves to one of `sides` count, and those of less than `least` of the usual level are nothing by themselves.
    """
    before = [*values[:cut], *reference]
    stretch = values[cut:]
    if len(before) < ENOUGH or not stretch:
        return UNKNOWN
    shifted = _find_lasting_shift(times, values, reference)
    if shifted is not None and shifted.side in sides:
        return _weigh_size(shifted, least, two_references=bool(reference))
    best = max(
        (
            _weigh_size(
                _judge_side(times[cut:], stretch, before, side), least, two_references=bool(reference)
            )
            for side in sides
        ),
        key=lambda judged: (judged.state == "moved", judged.state == "unclear", judged.margin),
    )
    best = replace(best, lasts=_has_moved_middle(stretch, best, least))
    if best.state != "usual" or reference:  # a fault-free recording that covers it needs no second look
        return best
    return _doubt_rest(times, values, cut, best, sides)


def _weigh_size(judged: WindowJudgement, least: float, *, two_references: bool) -> WindowJudgement:
    """A move that is small beside the level itself proves nothing; between two days it is what levels do."""
    if abs(judged.seen - judged.usual) >= least * abs(judged.usual) or judged.state == "usual":
        return judged
    return replace(judged, state="usual" if two_references else "unclear", onset=None)


def _has_moved_middle(stretch: Sequence[float], judged: WindowJudgement, least: float) -> bool:
    middle = median(stretch)
    beyond = middle > judged.high if judged.side > 0 else middle < judged.low
    return beyond and abs(middle - judged.usual) >= least * abs(judged.usual)


def _judge_side(
    times: Sequence[float], stretch: Sequence[float], before: Sequence[float], side: int
) -> WindowJudgement:
    middle = median(before)
    furthest = max(side * (value - middle) for value in before)
    width = max(furthest, _FLOOR_SHARE * abs(middle), _SMALLEST)
    constant = furthest <= 0 and min(before) == max(before)
    beyond = sorted(((side * (v - middle) - furthest) / width for v in stretch), reverse=True)
    steps: Sequence[tuple[int, float]] = _SMOOTH_BEYOND if _measure_smoothness(before) > _SMOOTH else _BEYOND
    if constant:  # one sample that differs from a constant may be one event of a counter
        steps = ((2, 1.0),)
    least = min(enough for _, enough in steps)
    moved = any(len(beyond) >= count and beyond[count - 1] >= enough for count, enough in steps)
    unclear = any(
        len(beyond) >= count and beyond[count - 1] >= _UNCLEAR_SHARE * enough for count, enough in steps
    ) or (constant and beyond[0] > 0)
    state: WindowState = "moved" if moved else "unclear" if unclear else "usual"
    first = next(
        (t for t, v in zip(times, stretch, strict=True) if side * (v - middle) - furthest >= least * width),
        None,
    )
    seen = max(stretch) if side > 0 else min(stretch)
    return WindowJudgement(
        state,
        middle,
        min(before),
        max(before),
        seen,
        side,
        max(0.0, beyond[0]),
        first if moved else None,
    )


def _measure_smoothness(values: Sequence[float]) -> float:
    """The correlation of neighbouring samples; 0 where there are too few, or all are equal."""
    if len(values) < 2 * ENOUGH:
        return 0.0
    mean = fmean(values)
    off = [value - mean for value in values]
    whole = sum(one * one for one in off)
    return sum(a * b for a, b in itertools.pairwise(off)) / whole if whole > 0 else 0.0


def _find_lasting_shift(
    times: Sequence[float], values: Sequence[float], reference: Sequence[float]
) -> WindowJudgement | None:
    """The level that moved once and stayed so until the end, at the split that separates it best."""
    last = len(values) - _SHIFT_SAMPLES
    stride = max(1, last // _MOST_SPLITS)
    best: WindowJudgement | None = None
    for split in range(max(ENOUGH, len(values) // _LEAST_PART), last + 1, stride):
        found = _measure_lasting_shift(times, values, split, reference)
        if found is not None and (best is None or found.margin > best.margin):
            best = found
    return best


def _measure_lasting_shift(
    times: Sequence[float], values: Sequence[float], split: int, reference: Sequence[float]
) -> WindowJudgement | None:
    before, after = [*values[:split], *reference], values[split:]
    usual, level = median(before), median(after)
    side = 1 if level >= usual else -1
    bulk = side * (quantile(before, _BULK if side > 0 else 1 - _BULK) - usual)
    width = max(bulk, _FLOOR_SHARE * abs(usual), _SMALLEST)
    margin = (side * (level - usual) - bulk) / width
    if margin < (_SMOOTH_SHIFTED if _measure_smoothness(before) > _SMOOTH else _SHIFTED):
        return None
    halfway = (usual + level) / 2
    first = split
    while first > 0 and side * (values[first - 1] - halfway) > 0:
        first -= 1
    while first < len(values) - 1 and side * (values[first] - halfway) <= 0:
        first += 1
    # What climbs has left its range long before it is halfway.
    while first > 0 and side * (values[first - 1] - usual) - bulk > width:
        first -= 1
    return WindowJudgement(
        "moved", usual, min(before), max(before), level, side, margin, times[first], lasts=True
    )


def _doubt_rest(
    times: Sequence[float],
    values: Sequence[float],
    cut: int,
    calm: WindowJudgement,
    sides: Sequence[int],
) -> WindowJudgement:
    """`unclear` where the range holds but the rest does not: unlike the hours just before, or outliers in a crowd.

    A reference with bursts of its own covers almost any range, so being within it is not proof of rest.
    """
    stretch = values[cut:]
    recent = values[max(0, cut - _RECENT * len(stretch)) : cut]
    if len(recent) < ENOUGH:
        return calm
    doubt = max(
        (_judge_side(times[cut:], stretch, recent, side) for side in sides), key=lambda judged: judged.margin
    )
    if doubt.state != "moved" and not _crowds_outside(stretch, values[:cut]):
        return calm
    return replace(calm, state="unclear", margin=max(calm.margin, doubt.margin))


def _crowds_outside(stretch: Sequence[float], before: Sequence[float]) -> bool:
    """Whether far more of the stretch lies off the bulk of the reference than chance would bring there."""
    middle = median(before)
    reach = _BULK_SPREADS * robust_spread(before, max(_LEVEL_NOISE * abs(middle), _SMALLEST))
    outer = (sum(abs(value - middle) > reach for value in before) + 1) / (len(before) + 1)
    count = sum(abs(value - middle) > reach for value in stretch)
    by_chance = sum(
        math.comb(len(stretch), n) * outer**n * (1 - outer) ** (len(stretch) - n)
        for n in range(count, len(stretch) + 1)
    )
    return by_chance < _RARE
