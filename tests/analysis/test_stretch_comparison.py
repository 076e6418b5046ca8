"""One stretch against another, whatever is measured: quiet series of many shapes, and faults of many shapes in them."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from opsleuth.analysis.stretch_comparison import judge_window

SAMPLES, STRETCH = 120, 15
Shape = Callable[[random.Random], list[float]]


def draw_white(rng: random.Random) -> list[float]:
    return [100 + rng.gauss(0, 8) for _ in range(SAMPLES)]


def draw_periodic(rng: random.Random) -> list[float]:
    period = rng.randint(4, 12)
    return [(4.0 if i % period == 0 else 1.0) + rng.gauss(0, 0.05) for i in range(SAMPLES)]


def draw_bursts(rng: random.Random) -> list[float]:
    return [(rng.uniform(5, 10) if rng.random() < 0.08 else 1.0) + rng.gauss(0, 0.02) for _ in range(SAMPLES)]


def draw_constant(rng: random.Random) -> list[float]:
    return [float(rng.choice((0, 3, 50)))] * SAMPLES


def draw_counts(rng: random.Random) -> list[float]:
    return [float(sum(rng.random() < 0.05 for _ in range(60))) for _ in range(SAMPLES)]


SHAPES: tuple[Shape, ...] = (draw_white, draw_periodic, draw_bursts, draw_constant, draw_counts)


def judge(values: Sequence[float]) -> str:
    times = [60.0 * i for i in range(len(values))]
    return judge_window(times, values, len(values) - STRETCH).state


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_quiet_series_is_seldom_said_to_have_moved(shape: Shape) -> None:
    states = Counter(judge(shape(random.Random(seed))) for seed in range(200))
    assert states["moved"] <= 10
    assert states["usual"] >= 160


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("fault", ["up", "down", "ramp", "late"])
def test_a_series_that_left_its_range_is_never_called_usual(shape: Shape, fault: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        values = shape(rng)
        begin = rng.randint(SAMPLES // 2, SAMPLES - 8) if fault != "late" else SAMPLES - 4
        wide = (max(values) - min(values)) or max(1.0, abs(values[0]))
        for place in range(begin, SAMPLES):
            far = (place - begin + 1) / (SAMPLES - begin) if fault == "ramp" else 1.0
            values[place] += (-1 if fault == "down" else 1) * 4 * wide * far
        assert judge(values) != "usual", (shape.__name__, seed)


def test_the_onset_is_where_the_level_left_its_range_though_the_alert_came_later() -> None:
    for begin in (60, 75, 90, 110):
        rng = random.Random(begin)
        values = [10 + rng.gauss(0, 0.5) + (30 if i >= begin else 0) for i in range(SAMPLES)]
        judged = judge_window([60.0 * i for i in range(SAMPLES)], values, SAMPLES - STRETCH)
        assert judged.onset == 60.0 * begin


def test_a_series_is_never_compared_with_itself() -> None:
    assert judge_window([0.0, 60.0, 120.0, 180.0, 240.0], [5.0] * 5, 0).state == "unknown"
    assert judge_window([0.0, 60.0], [5.0, 5.0], 1).state == "unknown"


def test_a_drift_is_not_a_crowd_of_outliers() -> None:
    """Neighbours of a slow wave are alike, so that three of them beyond the range prove no more than one."""
    values = [50 + 20 * math.sin(i / 19) for i in range(SAMPLES)]
    assert all(abs(b - a) < 2 for a, b in pairwise(values))
    assert judge(values) != "moved"
