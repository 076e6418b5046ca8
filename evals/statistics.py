"""Shares with their uncertainty."""

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

Z95 = 1.959964
"""The normal quantile of a two-sided 95% interval."""


class ShareInterval(NamedTuple):
    """`right` of `total`, with the bounds of its 95% interval (Wilson 1927), each between 0 and 1."""

    right: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.right / self.total if self.total else math.nan


def wilson_interval(right: int, total: int) -> ShareInterval:
    """The share and its interval; with nothing counted the interval is everything."""
    if total == 0:
        return ShareInterval(0, 0, 0.0, 1.0)
    p, z2 = right / total, Z95**2
    middle = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 * math.sqrt(p * (1 - p) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return ShareInterval(right, total, max(0.0, middle - half), min(1.0, middle + half))


class PairedDifference(NamedTuple):
    """B less A, with a 95% interval. `p` is the chance of so uneven a split where nothing has changed, if counted."""

    value: float
    low: float
    high: float
    p: float | None = None

    @property
    def beyond_noise(self) -> bool:
        """Whether chance alone would rarely do that: by the exact test where there is one, else by the interval."""
        return self.p < 0.05 if self.p is not None else self.low > 0 or self.high < 0


def compare_paired_shares(only_a: int, only_b: int, pairs: int) -> PairedDifference:
    """The difference of two shares over the same cases.

    `only_a` cases were right in A alone, `only_b` in B alone. The interval is Bonett and Price's (2012), the test
    McNemar's in its exact form: a fair coin for every case that changed.
    """
    if pairs == 0:
        return PairedDifference(0.0, -1.0, 1.0, 1.0)
    a, b = (only_a + 1) / (pairs + 2), (only_b + 1) / (pairs + 2)
    half = Z95 * math.sqrt((a + b - (b - a) ** 2) / (pairs + 2))
    low, high = max(-1.0, b - a - half), min(1.0, b - a + half)
    return PairedDifference((only_b - only_a) / pairs, low, high, fair_coin_probability(only_a, only_b))


def fair_coin_probability(heads: int, tails: int) -> float:
    """The two-sided probability of a split at least that uneven from a fair coin."""
    thrown, fewer = heads + tails, min(heads, tails)
    tail = sum(math.comb(thrown, k) for k in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**thrown))


def bootstrap_mean(differences: Sequence[float], draws: int = 1000, seed: int = 0) -> PairedDifference:
    """The mean of per-case differences, with a percentile interval over resampled cases (Efron 1979); repeatable."""
    number = len(differences)
    if number == 0:
        return PairedDifference(0.0, -math.inf, math.inf)
    if len(set(differences)) == 1:
        return PairedDifference(differences[0], differences[0], differences[0])
    random = Random(seed)  # noqa: S311 - resampling, no secret
    means = sorted(math.fsum(random.choices(differences, k=number)) / number for _ in range(draws))
    return PairedDifference(
        math.fsum(differences) / number, means[int(draws * 0.025)], means[int(draws * 0.975) - 1]
    )
