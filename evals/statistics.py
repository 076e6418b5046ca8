"""Shares with their uncertainty."""

import math
from typing import NamedTuple

Z95 = 1.959964
"""The normal quantile of a two-sided 95% interval."""


class Share(NamedTuple):
    """`right` of `total`, with the bounds of its 95% interval (Wilson 1927), each between 0 and 1."""

    right: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.right / self.total if self.total else math.nan


def share(right: int, total: int) -> Share:
    """The share and its interval; with nothing counted the interval is everything."""
    if total == 0:
        return Share(0, 0, 0.0, 1.0)
    p, z2 = right / total, Z95**2
    middle = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 * math.sqrt(p * (1 - p) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return Share(right, total, max(0.0, middle - half), min(1.0, middle + half))
