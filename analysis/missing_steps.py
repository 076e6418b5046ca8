"""Steps that used to follow and no longer do.

A step (a child span, a log line) is counted together with its anchor: what happens once for every time that
the step may happen. Where fewer calls come in, both fall and nothing is lost; where work breaks off half way,
the anchor goes on and the step does not.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from opsleuth.analysis.exact_tests import measure_exact_rate_rise
from opsleuth.analysis.time_windows import ComparisonWindows

# Share of the expected steps below which a step counts as gone and not merely as rarer.
GONE = 0.1
# A step seen less often than this in the reference is not a rule to hold anything against.
ENOUGH = 3
# How many anchors that are as frequent as a step are tried. More agree only by chance.
TRIES = 20
# How many that were equally frequent, and still are, make a flow of work.
FLOW = 3


@dataclass(frozen=True, slots=True)
class StepTally:
    """How often a step and its anchor happened in one time range."""

    step: float
    anchor: float


@dataclass(frozen=True, slots=True)
class StepLoss:
    """`missing` of `expected` steps, given how often the anchor happened; `size` in standard deviations."""

    expected: float
    missing: float
    size: float

    @property
    def is_complete(self) -> bool:
        """Whether hardly any of the expected steps are left."""
        return self.missing >= (1 - GONE) * self.expected


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """Something that happens inside a service, and how often it did in each window."""

    name: str
    by_window: Mapping[str, int]

    def total(self, windows: Iterable[str]) -> int:
        """How often it happened in the named windows together."""
        return sum(self.by_window.get(name, 0) for name in windows)


@dataclass(frozen=True, slots=True)
class LostStep:
    """A step that no longer follows its anchor as often as it did; `onset` as far as windows have a time."""

    step: WindowCounts
    anchor: WindowCounts
    usual: StepTally
    now: StepTally
    loss: StepLoss
    onset: float | None

    @property
    def order(self) -> tuple[float, str, str]:
        """Key by which the largest loss is the last; names decide between equals."""
        return self.loss.size, self.step.name, self.anchor.name


def compare_step_to_anchor(
    step: WindowCounts, anchor: WindowCounts, windows: ComparisonWindows, *, bound: bool
) -> LostStep | None:
    """What is missing of a step now, if it followed the anchor as usual; None where nothing is.

    `bound` says that the one is known to belong to the other, and not only to have been as frequent.
    """
    usual = StepTally(step.total(windows.reference), anchor.total(windows.reference))
    now = StepTally(step.total(windows.incident), anchor.total(windows.incident))
    lost = measure_step_loss(usual, now, bound=bound)
    if lost is None or usual.step < ENOUGH:
        return None
    half = (usual.step / usual.anchor + now.step / now.anchor) / 2
    rare = (
        name
        for name in (*windows.before, *windows.incident)
        if step.by_window.get(name, 0) < half * anchor.by_window.get(name, 0)
    )
    first = next(rare, None)
    return LostStep(step, anchor, usual, now, lost, None if first is None else windows.starts.get(first))


class StepCompanions:
    """Things counted in one service, found by how often they happen in the reference."""

    def __init__(self, counted: Iterable[WindowCounts], windows: ComparisonWindows) -> None:
        """Of those that are equally frequent, what happens most often now comes first: it leaves most open."""
        self._windows = windows
        self._by_count: dict[int, list[WindowCounts]] = defaultdict(list)
        for one in sorted(counted, key=lambda one: (-one.total(windows.incident), one.name)):
            self._by_count[one.total(windows.reference)].append(one)

    def is_part_of_flow(self, anchor: WindowCounts) -> bool:
        """Whether the anchor moves in step with two others at least: what is so frequent here is one flow of work."""
        usual, now = anchor.total(self._windows.reference), anchor.total(self._windows.incident)
        alike = (one.total(self._windows.incident) == now for one in self._by_count.get(usual, ()))
        return sum(alike) >= FLOW

    def of(self, step: WindowCounts, least: int, most: int) -> Iterator[WindowCounts]:
        """Others that happen from `least` to `most` times in the reference, a few of each frequency."""
        for count in range(least, most + 1):
            for one in self._by_count.get(count, ())[: TRIES + 1]:
                if one is not step:
                    yield one


def measure_step_loss(usual: StepTally, now: StepTally, *, bound: bool = True) -> StepLoss | None:
    """What is missing now if steps followed their anchor as usual; None where nothing is.

    Of steps and anchors that are not known to be bound, only so much counts as two independent rates would not
    move apart by chance.
    """
    if usual.anchor <= 0 or usual.step <= 0 or now.anchor <= 0:
        return None
    expected = now.anchor * usual.step / usual.anchor
    missing = expected - now.step
    if missing <= 0:
        return None
    gained = _likelihood_ratio(usual, now) if bound else _independent_rates_ratio(usual, now)
    return StepLoss(expected, missing, math.sqrt(max(0.0, gained)))


def measure_step_gain(usual: StepTally, now: StepTally) -> float:
    """How many standard deviations more steps there are now per anchor than usual; 0 where there are not more."""
    if usual.anchor <= 0 or now.anchor <= 0 or now.step * usual.anchor <= usual.step * now.anchor:
        return 0.0
    return math.sqrt(max(0.0, _likelihood_ratio(usual, now)))


def measure_rate_rise(usual: StepTally, now: StepTally) -> float:
    """How many standard deviations the rate of steps per anchor has risen, both being independent events.

    Likelihood ratio of two Poisson rates, or what the exact test shows where that is less, as it is of a few events;
    0 where the rate has not risen or nothing tells the usual one.
    """
    if usual.anchor <= 0 or now.anchor <= 0 or now.step * usual.anchor <= usual.step * now.anchor:
        return 0.0
    rate = (usual.step + now.step) / (usual.anchor + now.anchor)
    gained = sum(t.step * math.log(t.step / (rate * t.anchor)) for t in (usual, now) if t.step > 0)
    exact = measure_exact_rate_rise(usual.step, now.step, now.anchor / (usual.anchor + now.anchor))
    return min(exact, math.sqrt(max(0.0, 2 * gained)))


def _likelihood_ratio(usual: StepTally, now: StepTally) -> float:
    """Twice the log-likelihood gained by two shares instead of one (Wilks; chi-square with one degree).

    Steps are a share of their anchors where there is at most one for each; half a step is added to each side,
    so that 3 of 3 is not taken for certainty. Else they are a Poisson count per anchor, and as many as usually
    come together (in a loop, on one page) weigh as one.
    """
    if usual.step <= usual.anchor and now.step <= now.anchor:
        return 2 * (
            _binomial_log_likelihood(usual)
            + _binomial_log_likelihood(now)
            - _binomial_log_likelihood(usual, now)
            - _binomial_log_likelihood(now, usual)
        )
    together = (usual.step + now.step) / (usual.anchor + now.anchor)
    gained = sum(t.step * math.log(t.step / (together * t.anchor)) for t in (usual, now) if t.step > 0)
    return 2 * gained / max(1.0, usual.step / usual.anchor)


def _independent_rates_ratio(usual: StepTally, now: StepTally) -> float:
    """Twice the log-likelihood gained by two changes of rate instead of one (G of the two by two table)."""
    whole = usual.step + usual.anchor + now.step + now.anchor
    gained = 0.0
    for tally in (usual, now):
        column = tally.step + tally.anchor
        for seen, row in ((tally.step, usual.step + now.step), (tally.anchor, usual.anchor + now.anchor)):
            gained += seen * math.log(seen * whole / (row * column)) if seen > 0 else 0.0
    return 2 * gained


def _binomial_log_likelihood(tally: StepTally, pooled_with: StepTally | None = None) -> float:
    """Log-likelihood of a tally under its own share, or under the share of two tallies together."""
    step = tally.step + (pooled_with.step if pooled_with else 0)
    anchor = tally.anchor + (pooled_with.anchor if pooled_with else 0)
    share = (step + 0.5) / (anchor + 1)
    return tally.step * math.log(share) + (tally.anchor - tally.step) * math.log(1 - share)
