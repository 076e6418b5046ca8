"""Choose the planner and the reviewer that the operator configured."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.models.planner import Planner, Reviewer
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.tools.tape import Tape

CHOICES = ("auto", "offline", "model")


class PlannerAndReviewer(NamedTuple):
    """A planner, and a second pair of eyes where there is a model for it."""

    planner: Planner
    reviewer: Reviewer | None = None


@dataclass(frozen=True, slots=True)
class ModelDependencies:
    """What models may use besides their settings.

    `learn` is told every key, so that it is redacted wherever it appears. `memory` is a file that keeps which
    way of asking a server knows. `tape` records the traffic, or answers instead of the network.
    """

    learn: Callable[[str], None] = lambda _: None
    memory: Path | None = None
    tape: Tape | None = None


def choose_planner_and_reviewer(
    choice: str, settings: ModelSettings | None, outside: ModelDependencies
) -> PlannerAndReviewer:
    """Those called `choice`; `auto` is the model if one is configured, else the offline investigator.

    Raises UsageError for an unknown word, ConfigError where a model is asked for and none is configured.
    """
    if choice not in CHOICES:
        raise UsageError(f"there is no planner {choice!r}: the choices are {', '.join(CHOICES)}")
    if choice == "model" and settings is None:
        raise ConfigError(
            "no model is configured: set OPSLEUTH_MODEL (and OPSLEUTH_BASE_URL for a server of your own), "
            "name a profile, or continue without a model (--planner offline)"
        )
    if choice == "offline" or settings is None:
        from opsleuth.models.offline_planner import OfflinePlanner  # its statistics load only when used

        return PlannerAndReviewer(OfflinePlanner())
    from opsleuth.models.planner_factory import (
        build_planner_and_reviewer,  # a client library of half a second
    )

    return PlannerAndReviewer(
        *build_planner_and_reviewer(settings, outside.learn, outside.memory, outside.tape)
    )
