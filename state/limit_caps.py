"""The operator's caps: upper bounds of a run's limits that no request, file, edit or answer raises."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Self

from opsleuth.state.base import FrozenModel, to_json
from opsleuth.state.budget import Budget, Money, Positive, RunLimits, Seconds

DEFAULT_COST: Final = Decimal(2)
"""US dollars that a run may cost where nothing else is set and the prices of its models are known."""
Bound = int | float | Decimal | None
_UNITS: Final = {"turns": "turns", "seconds": "seconds", "tokens": "tokens", "cost": "US dollars"}


class LimitCaps(FrozenModel):
    """Upper bounds of the limits with the same names; None where there is no bound."""

    turns: Positive | None = None
    seconds: Seconds | None = None
    tokens: Positive | None = None
    cost: Money | None = None

    @classmethod
    def from_limits(cls, limits: RunLimits) -> Self:
        """These limits as caps."""
        return cls(turns=limits.turns, seconds=limits.seconds, tokens=limits.tokens, cost=limits.cost)

    @property
    def given(self) -> dict[str, Any]:
        """The bounds that there are, as JSON values by name."""
        return {name: value for name, value in to_json(self).items() if value is not None}

    def tightened_by(self, other: "LimitCaps") -> "LimitCaps":
        """The lower of both bounds, for each limit."""
        return LimitCaps.model_validate(
            {name: _lower_of(getattr(self, name), getattr(other, name)) for name in _UNITS}
        )

    def cut_limits(self, limits: RunLimits) -> RunLimits:
        """The limits, each at most its cap. Without a limit of its own a run has the cap as its limit."""
        lowered = {name: _lower_of(getattr(limits, name), getattr(self, name)) for name in _UNITS}
        if all(getattr(limits, name) == value for name, value in lowered.items()):
            return limits
        return limits.model_copy(update=lowered)

    def cut_budget(self, budget: Budget) -> Budget:
        """The budget under limits that are at most the caps; the same object where they are already."""
        cut = self.cut_limits(budget.limits)
        return budget if cut is budget.limits else Budget(limits=cut, used=budget.used)

    def describe_excess(self, asked: Mapping[str, Any]) -> str | None:
        """Which of the limits asked for are above their caps, in words; None if none is.

        `asked` holds limits by name, as JSON values. Raises ValidationError for a value that is not a limit.
        """
        wanted = LimitCaps.model_validate({name: asked[name] for name in _UNITS if name in asked})
        above = [
            f"limits.{name} is {getattr(wanted, name):f}, the operator allows at most {cap:f} {_UNITS[name]}"
            for name in _UNITS
            if (cap := _as_decimal(getattr(self, name))) is not None
            and (value := _as_decimal(getattr(wanted, name))) is not None
            and value > cap
        ]
        return "; ".join(above) or None


NO_CAPS: Final = LimitCaps()


def _as_decimal(value: Decimal | float | None) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def _lower_of(one: Bound, other: Bound) -> Bound:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
