"""A model that falls back to the offline investigator, for operators who prefer any answer to none."""

from opsleuth.models.planner import ModelUnavailableError, Planner, PlannerResult, PlannerView


class FallbackPlanner:
    """Asks `first`; once it fails for good, `second` goes on from the state as it stands, to the end of the attempt.

    For good is: the endpoint is unavailable after its retries, or only one more malformed decision would end the run.
    """

    def __init__(self, first: Planner, second: Planner) -> None:
        self._first, self._second, self._given_up = first, second, False

    @property
    def name(self) -> str:
        return self._second.name if self._given_up else self._first.name

    async def decide(self, view: PlannerView) -> PlannerResult:
        """The first planner's decision while it can make one, else the second's."""
        if self._given_up:
            return await self._second.decide(view)
        if view.state.malformed and view.state.malformed + 1 >= view.state.budget.limits.malformed:
            return await self._instead(view, f"{view.state.malformed} decisions in a row were not valid")
        try:
            return await self._first.decide(view)
        except ModelUnavailableError as error:
            decided = await self._instead(view, str(error))
            return decided._replace(spent=error.spent, exchanges=error.exchanges)

    async def aclose(self) -> None:
        """Close what either holds open."""
        for planner in (self._first, self._second):
            if close := getattr(planner, "aclose", None):
                await close()

    async def _instead(self, view: PlannerView, why: str) -> PlannerResult:
        self._given_up = True
        told = f"{self._first.name} was given up, the {self._second.name} planner decides: {why}"
        return (await self._second.decide(view))._replace(instead=told)
