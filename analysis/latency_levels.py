"""Usual and present level of a time per call, from medians by window."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from opsleuth.analysis.robust_statistics import robust_spread
from opsleuth.analysis.time_windows import ComparisonWindows

# What a time per call drifts with load, data and neighbours, however many calls are averaged: milliseconds, and
# a share of itself; a smaller one where the recording itself shows how steady it was before.
DRIFT_MS = 1.0
DRIFT = 0.25
STEADY_DRIFT = 0.1
# Windows that it takes to know how steady something was.
MANY = 5


@dataclass(frozen=True, slots=True)
class CallTimeLevel:
    """Milliseconds per call, usual and now, over `calls` calls in the incident.

    `wobble` is how far windows at rest lie from each other (None if there are too few to tell). `onset` is the
    start of the first window that is nearer to now than to usual; `already` says that the windows before the
    onset were so as well.
    """

    usual: float
    now: float
    calls: int
    onset: float | None
    already: bool
    wobble: float | None = None

    @property
    def excess(self) -> float:
        """Milliseconds more than usual."""
        return self.now - self.usual

    @property
    def drift(self) -> float:
        """Milliseconds that the level moves without a fault."""
        if self.wobble is None:
            return max(DRIFT_MS, DRIFT * self.usual)
        return max(DRIFT_MS, STEADY_DRIFT * self.usual, self.wobble)

    def size(self, noise_ms: float = 0.0) -> float:
        """Excess in standard deviations, of drift, and of `noise_ms` a call; 0 within what one call strays by.

        The calls are averaged with one more at the usual level: what a single call shows counts half.
        """
        if self.excess <= noise_ms:
            return 0.0
        shrunk = self.excess * self.calls / (self.calls + 1)
        return shrunk / math.hypot(self.drift, noise_ms / math.sqrt(self.calls))


Points = Mapping[str, tuple[float, int]]


def compute_call_time_level(points: Points, windows: ComparisonWindows) -> CallTimeLevel | None:
    """Level from (milliseconds, calls) by window; None unless measured both in the reference and in the incident.

    Where there are many earlier windows beside the reference, the slower of the two is the usual.
    """
    usual, now = _mean_over_windows(points, windows.reference), _mean_over_windows(points, windows.incident)
    if usual is None or now is None:
        return None
    usual = max(0.0, usual)  # below 0 where a server works on after its answer: no time that could be won
    rest = [points[name][0] for name in (windows.earlier or windows.reference) if name in points]
    if len(rest) >= MANY:
        usual = max(usual, median(rest))
    half = (usual + now) / 2
    before = _mean_over_windows(points, windows.before)
    late = [
        name for name in (*windows.before, *windows.incident) if name in points and points[name][0] >= half
    ]
    return CallTimeLevel(
        usual=usual,
        now=now,
        calls=sum(points[name][1] for name in windows.incident if name in points),
        onset=windows.starts[late[0]] if late else None,
        already=before is not None and before >= half,
        wobble=robust_spread(rest, DRIFT_MS) if len(rest) >= MANY else None,
    )


def _mean_over_windows(points: Points, names: Iterable[str]) -> float | None:
    chosen = [points[name] for name in names if name in points]
    calls = sum(count for _, count in chosen)
    return sum(value * count for value, count in chosen) / calls if calls else None
