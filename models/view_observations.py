"""What a planner sees of the results so far, looked up by tool: the ranking, its suspects, answers without errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.models.planner import PlannerView
from opsleuth.state.results import Observation

Suspect = Mapping[str, Any]


def latest_ranking(view: PlannerView) -> Observation | None:
    """The newest answer of `rank_suspects`, or None."""
    found = [o for o in view.observations if o.tool == "rank_suspects" and o.status in ("ok", "none_matched")]
    return found[-1] if found else None


def ranked_suspects(view: PlannerView) -> Sequence[Suspect]:
    """The ranked suspects, best first; empty without a ranking."""
    ranking = latest_ranking(view)
    return ranking.record.get("suspects", ()) if ranking else ()


def observations_of_tool(tool: str, view: PlannerView) -> list[Observation]:
    """What a tool answered so far, errors left out."""
    return [o for o in view.observations if o.tool == tool and o.status == "ok"]
