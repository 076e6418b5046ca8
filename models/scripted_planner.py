"""A planner that follows a script: for demonstrations, replays and tests."""

from collections.abc import Sequence

from opsleuth.models.planner import PlannerError, PlannerResult, PlannerView
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.decision import Decision


class ScriptedPlanner:
    """Turn n gets the script's n-th entry, in whatever process it is asked; the last entry repeats.

    An entry that is an error is raised, as a real planner would. `spent` is charged for every decision.
    """

    name = "scripted"

    def __init__(self, script: Sequence[Decision | PlannerError], spent: ModelCallCost | None = None) -> None:
        if not script:
            raise ValueError("a script needs at least one entry")
        self._script = tuple(script)
        self._spent = spent or ModelCallCost()

    async def decide(self, view: PlannerView) -> PlannerResult:
        turn = view.state.budget.used.turns
        entry = self._script[min(turn, len(self._script)) - 1]
        if isinstance(entry, PlannerError):
            raise entry
        return PlannerResult(entry, self._spent)
