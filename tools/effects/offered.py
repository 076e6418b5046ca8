"""Which effect tools a run gets: those of its platform, and the drafts that every run may write."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opsleuth.tools.effects.messages import DRAFT, message_tool
from opsleuth.tools.effects.platform import Platform
from opsleuth.tools.effects.services import service_tools
from opsleuth.tools.spec import ToolSpec

if TYPE_CHECKING:
    from opsleuth.tools.effects.plane import ControlPlane


def effect_tools(platform: Platform | None) -> tuple[ToolSpec, ...]:
    """All tools that change something; without a platform only drafts."""
    if platform is None:
        return (DRAFT,)
    return (*service_tools(platform), message_tool(platform), DRAFT)


def platform_of(settings: Mapping[str, Any] | None) -> "ControlPlane | None":
    """The platform that a run's settings describe."""
    if not settings:
        return None
    from opsleuth.tools.effects.plane import ControlPlane  # noqa: PLC0415 - an HTTP client: only where there is a plane

    return ControlPlane(**settings)
