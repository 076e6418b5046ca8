"""Which tools a planner is offered this turn."""

from collections.abc import Sequence

from opsleuth.nodes.deps import Deps
from opsleuth.tools.spec import ToolSpec


def list_offered_tools(deps: Deps) -> Sequence[ToolSpec]:
    """All of the run but those that failed too often in a row: they come back when they may be tried again."""
    paused = deps.executor.breaker.open_tools()
    return [spec for spec in deps.toolbox.specs if spec.name not in paused]
