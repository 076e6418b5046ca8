"""Steps that used to follow and no longer do.

A step (a child span, a log line) is counted together with its anchor: what happens once for every time that
the step may happen. Where fewer calls come in, both fall and nothing is lost; where work breaks off half way,
the anchor goes on and the step does not.
"""

import math
from dataclasses import dataclass

# Share of the expected steps below which a step counts as gone and not merely as rarer.
GONE = 0.1


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a step and its anchor happened in one stretch of time."""

    step: float
    anchor: float


@dataclass(frozen=True, slots=True)
class Loss:
    """`missing` of `expected` steps, given how often the anchor happened; `size` in standard deviations."""

    expected: float
    missing: float
    size: float

    @property
    def complete(self) -> bool:
        """Whether hardly any of the expected steps are left."""
        return self.missing >= (1 - GONE) * self.expected


def loss(usual: Tally, now: Tally) -> Loss | None:
    """What is missing now if steps followed their anchor as usual; None where nothing is."""
    if usual.anchor <= 0 or usual.step <= 0 or now.anchor <= 0:
        return None
    expected = now.anchor * usual.step / usual.anchor
    missing = expected - now.step
    if missing <= 0:
        return None
    return Loss(expected, missing, math.sqrt(max(0.0, _likelihood_ratio(usual, now))))


def gain(usual: Tally, now: Tally) -> float:
    """How many standard deviations more steps there are now per anchor than usual; 0 where there are not more."""
    if usual.anchor <= 0 or now.anchor <= 0 or now.step * usual.anchor <= usual.step * now.anchor:
        return 0.0
    return math.sqrt(max(0.0, _likelihood_ratio(usual, now)))


def _likelihood_ratio(usual: Tally, now: Tally) -> float:
    """Twice the log-likelihood gained by two shares instead of one (Wilks; chi-square with one degree).

    Steps are a share of their anchors where there is at most one for each; half a step is added to each side,
    so that 3 of 3 is not taken for certainty. Else they are a Poisson count per anchor, and as many as usually
    come together (in a loop, on one page) weigh as one.
    """
    if usual.step <= usual.anchor and now.step <= now.anchor:
        return 2 * (_binomial(usual) + _binomial(now) - _binomial(usual, now) - _binomial(now, usual))
    together = (usual.step + now.step) / (usual.anchor + now.anchor)
    gained = sum(t.step * math.log(t.step / (together * t.anchor)) for t in (usual, now) if t.step > 0)
    return 2 * gained / max(1.0, usual.step / usual.anchor)


def _binomial(tally: Tally, pooled_with: Tally | None = None) -> float:
    """Log-likelihood of a tally under its own share, or under the share of two tallies together."""
    step = tally.step + (pooled_with.step if pooled_with else 0)
    anchor = tally.anchor + (pooled_with.anchor if pooled_with else 0)
    share = (step + 0.5) / (anchor + 1)
    return tally.step * math.log(share) + (tally.anchor - tally.step) * math.log(1 - share)
