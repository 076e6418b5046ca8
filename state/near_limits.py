"""Limits that are nearly used up, in words: who reads them can still do something about it."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from opsleuth.state.budget import Budget

NEAR_SHARE: Final = Decimal("0.8")
"""Of a limit: from here on it is called near."""


class NearLimit(NamedTuple):
    """A limit by name, and how much of it is used."""

    name: str
    text: str


def is_near(used: Decimal | float, most: Decimal | float | None) -> bool:
    """Whether so much use is near this limit, or beyond it."""
    return most is not None and Decimal(str(used)) >= NEAR_SHARE * Decimal(str(most))


def find_near_limits(budget: Budget, active_seconds: float) -> Iterator[NearLimit]:
    """The limits of a run that are nearly used up, or used up."""
    limits, used = budget.limits, budget.used
    if is_near(used.turns, limits.turns):
        yield NearLimit("turns", f"{used.turns} of {limits.turns} turns are used")
    if is_near(active_seconds, limits.seconds):
        yield NearLimit("seconds", f"{active_seconds:.0f} of {limits.seconds:g} s of active time are used")
    if is_near(used.tokens, limits.tokens):
        yield NearLimit("tokens", f"{used.tokens} of {limits.tokens} tokens are used")
    if limits.cost is not None and is_near(used.cost, limits.cost):
        yield NearLimit("cost", f"${used.cost:.2f} of ${limits.cost:.2f} are used")
