"""A planner and a reviewer with a model, built from their settings."""

from collections.abc import Callable
from pathlib import Path

from opsleuth.configuration.model_keys import read_key
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.models.chat_endpoint import ModelEndpoint
from opsleuth.models.model_planner import ModelPlanner
from opsleuth.models.model_reviewer import ModelReviewer
from opsleuth.models.offline_fallback import FallbackPlanner
from opsleuth.models.planner import Planner, Reviewer
from opsleuth.models.request_modes import ModeLadder
from opsleuth.models.response_tap import ReplayTransport, ResponseTap
from opsleuth.tools.tape import Tape


def build_planner_and_reviewer(
    settings: ModelSettings, learn: Callable[[str], None], memory: Path | None, tape: Tape | None
) -> tuple[Planner, Reviewer | None]:
    """The planner, falling back where that is allowed, and the reviewer. Raises ConfigError for a missing key."""
    planner: Planner = ModelPlanner(_build_endpoint(settings, learn, tape), ModeLadder(settings, memory))
    if settings.fallback == "offline":
        from opsleuth.models.offline_planner import OfflinePlanner  # only where it may take over

        planner = FallbackPlanner(planner, OfflinePlanner())
    own = settings.for_reviewer()
    if own is None:
        return planner, None
    same = own.base_url == settings.base_url
    return planner, ModelReviewer(_build_endpoint(own, learn, tape, first=same), ModeLadder(own, memory))


def _build_endpoint(
    settings: ModelSettings, learn: Callable[[str], None], tape: Tape | None, *, first: bool = True
) -> ModelEndpoint:
    if tape is not None and tape.replays:
        return ModelEndpoint(settings, None, transport=ReplayTransport(tape), sleep=_skip_pause)
    key = read_key(settings, first=first)
    if key:
        learn(key)
    return ModelEndpoint(settings, key, tap=ResponseTap(tape))


async def _skip_pause(_: float) -> None:
    """A recording is not waited for."""
