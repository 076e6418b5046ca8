"""A planner and a reviewer with a model, put together from their settings."""

from collections.abc import Callable
from pathlib import Path

from opsleuth.models.degrade import Degrading
from opsleuth.models.http import Replaying, Tap
from opsleuth.models.keys import read_key
from opsleuth.models.model import ModelPlanner
from opsleuth.models.modes import Ladder
from opsleuth.models.openai import Endpoint
from opsleuth.models.planner import Planner, Reviewer
from opsleuth.models.reviewer import ModelReviewer
from opsleuth.models.settings import ModelSettings
from opsleuth.models.tape import Tape


def with_model(
    settings: ModelSettings, learn: Callable[[str], None], memory: Path | None, tape: Tape | None
) -> tuple[Planner, Reviewer | None]:
    """The planner, falling back where that is allowed, and the reviewer. Raises ConfigError for a missing key."""
    planner: Planner = ModelPlanner(_endpoint(settings, learn, tape), Ladder(settings, memory))
    if settings.fallback == "offline":
        from opsleuth.models.offline import OfflinePlanner  # noqa: PLC0415 - only where it may take over

        planner = Degrading(planner, OfflinePlanner())
    own = settings.for_reviewer()
    if own is None:
        return planner, None
    same = own.base_url == settings.base_url
    return planner, ModelReviewer(_endpoint(own, learn, tape, first=same), Ladder(own, memory))


def _endpoint(
    settings: ModelSettings, learn: Callable[[str], None], tape: Tape | None, *, first: bool = True
) -> Endpoint:
    if tape is not None and tape.replays:
        return Endpoint(settings, None, transport=Replaying(tape), sleep=_at_once)
    key = read_key(settings, first=first)
    if key:
        learn(key)
    return Endpoint(settings, key, tap=Tap(tape))


async def _at_once(_: float) -> None:
    """A recording is not waited for."""
