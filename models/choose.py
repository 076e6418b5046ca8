"""Which planner a run gets, by the word of the operator."""

from opsleuth.models.planner import Planner
from opsleuth.state.errors import ConfigError, UsageError

CHOICES = ("auto", "offline", "model")


def planner_for(choice: str) -> Planner:
    """The planner called `choice`; `auto` is the model if one is configured, else the offline investigator.

    Raises UsageError for an unknown word, ConfigError where a model is asked for and none is configured.
    """
    if choice in ("auto", "offline"):
        from opsleuth.models.offline import OfflinePlanner  # noqa: PLC0415 - its statistics load only when used

        return OfflinePlanner()
    if choice == "model":
        raise ConfigError("no model is configured: go on without one (--planner offline)")
    raise UsageError(f"there is no planner {choice!r}: the choices are {', '.join(CHOICES)}")
