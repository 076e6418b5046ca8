"""What a run may use where no limit is given: money is capped wherever the prices of its models are known."""

from collections.abc import Mapping
from typing import Any

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.state.base import to_json
from opsleuth.state.budget import RunLimits
from opsleuth.state.limit_caps import DEFAULT_COST, LimitCaps


def default_limits(planner: str, model: Mapping[str, Any] | None) -> RunLimits:
    """The limits of a run for which none were given; `model` holds the fields of `ModelSettings`.

    Without the price of each model that is asked nothing can be said of money: then tokens are the limit.
    """
    return RunLimits(cost=DEFAULT_COST) if has_known_prices(planner, model) else RunLimits()


def default_caps(planner: str, model: Mapping[str, Any] | None, given: Mapping[str, Any]) -> LimitCaps:
    """The operator's caps: the limits given by name, and the defaults for all others."""
    limits = RunLimits.model_validate(to_json(default_limits(planner, model)) | dict(given))
    return LimitCaps.from_limits(limits)


def has_known_prices(planner: str, model: Mapping[str, Any] | None) -> bool:
    """Whether the price of each model that such a run asks is known."""
    if model is None or planner == "offline":
        return False
    settings = ModelSettings.model_validate(model)
    return all(used.price is not None for used in (settings, settings.for_reviewer()) if used is not None)
