"""Usual and present level of a time per call, from medians by window."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opsleuth.analysis.windows import Windows, start_of

# Share of itself that a time per call drifts with load, data and neighbours, however many calls are averaged.
DRIFT = 0.25


@dataclass(frozen=True, slots=True)
class Level:
    """Milliseconds per call, usual and now, over `calls` calls in the incident.

    `onset` is the start of the first window that is nearer to now than to usual; `already` tells that the
    windows before the onset were so as well.
    """

    usual: float
    now: float
    calls: int
    onset: float | None
    already: bool

    @property
    def excess(self) -> float:
        """Milliseconds more than usual."""
        return self.now - self.usual

    def size(self, floor_ms: float, noise_ms: float = 0.0) -> float:
        """Excess in standard deviations: of drift (at least `floor_ms`), and of `noise_ms` a call.

        The calls are averaged with one more at the usual level: what a single call shows counts half.
        """
        drift = max(floor_ms, DRIFT * self.usual)
        shrunk = self.excess * self.calls / (self.calls + 1)
        return shrunk / math.hypot(drift, noise_ms / math.sqrt(self.calls))


Points = Mapping[str, tuple[float, int]]


def level(points: Points, windows: Windows) -> Level | None:
    """Level from (milliseconds, calls) by window; None unless measured both in the reference and in the incident."""
    usual, now = _mean(points, windows.reference), _mean(points, windows.incident)
    if usual is None or now is None:
        return None
    usual = max(0.0, usual)  # below 0 where a server works on after its answer: no time that could be won
    half = (usual + now) / 2
    earlier = _mean(points, windows.before)
    late = [
        name for name in (*windows.before, *windows.incident) if name in points and points[name][0] >= half
    ]
    return Level(
        usual=usual,
        now=now,
        calls=sum(points[name][1] for name in windows.incident if name in points),
        onset=start_of(late[0]) if late else None,
        already=earlier is not None and earlier >= half,
    )


def _mean(points: Points, names: Iterable[str]) -> float | None:
    chosen = [points[name] for name in names if name in points]
    calls = sum(count for _, count in chosen)
    return sum(value * count for value, count in chosen) / calls if calls else None
