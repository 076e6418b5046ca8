"""Which effect tools a run gets: those of its platform, and the drafts that every run may write."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opsleuth.tools.effects.messages import DRAFT, build_message_tool
from opsleuth.tools.effects.platform import Platform
from opsleuth.tools.effects.service_changes import build_service_tools
from opsleuth.tools.spec import ToolSpec

if TYPE_CHECKING:
    from opsleuth.tools.effects.control_plane import ControlPlane


def build_effect_tools(platform: Platform | None) -> tuple[ToolSpec, ...]:
    """All tools that change something; without a platform only drafts."""
    if platform is None:
        return (DRAFT,)
    return (*build_service_tools(platform), build_message_tool(platform), DRAFT)


def control_plane_from_settings(settings: Mapping[str, Any] | None) -> "ControlPlane | None":
    """The platform that a run's settings describe."""
    if not settings:
        return None
    from opsleuth.tools.effects.control_plane import (
        ControlPlane,  # an HTTP client: only where there is a plane
    )

    return ControlPlane(**settings)
