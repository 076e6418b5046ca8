"""An exact test for a rise of small counts, where the likelihood ratio overstates the evidence; pure arithmetic."""

import math
from statistics import NormalDist

# Terms that add less than this share of the sum so far no longer change it.
_NEGLIGIBLE = 1e-12


def measure_exact_rate_rise(usual: float, now: float, share: float) -> float:
    """Standard deviations by which `now` events are too many, of which `share` (0 to 1) of all fall there by chance.

    The conditional test of two Poisson rates: given `usual + now` events, those of now are binomial. Infinite where
    the probability is too small for a number.
    """
    if not 0.0 < share < 1.0:
        return 0.0
    probability = _sum_binomial_tail(round(now), round(usual) + round(now), share)
    if probability <= 0.0:
        return math.inf
    return max(0.0, -NormalDist().inv_cdf(probability)) if probability < 1.0 else 0.0


def _sum_binomial_tail(first: int, trials: int, share: float) -> float:
    """The probability of at least `first` of so many trials; the terms fall where `first` is above what is expected."""
    total = 0.0
    for count in range(first, trials + 1):
        term = math.exp(_log_binomial(count, trials, share))
        total += term
        if count > share * trials and term < _NEGLIGIBLE * total:
            break
    return min(1.0, total)


def _log_binomial(count: int, trials: int, share: float) -> float:
    ways = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    return ways + count * math.log(share) + (trials - count) * math.log1p(-share)
