"""Back-pressure to the model's server: all workers together keep to one rate of requests and of tokens."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import ModelRates
from opsleuth.models.planner import (
    OFFLINE,
    Observation,
    Planner,
    PlannerError,
    PlannerResult,
    PlannerView,
    Reviewer,
    ReviewerResult,
)
from opsleuth.models.planner_selection import PlannerAndReviewer
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation

REQUESTS: Final = "model requests"
TOKENS: Final = "model tokens"
BURST_SECONDS = 2.0
"""Unused rate accumulates for at most this many seconds."""


T = TypeVar("T", PlannerResult, ReviewerResult)


class ModelRateLimiter:
    """One run's way to the model. Tokens are counted when they are known: who comes next waits for them."""

    def __init__(self, store: Store, rates: ModelRates) -> None:
        self._store, self._rates = store, rates

    async def passed(self, asking: Callable[[], Awaitable[T]]) -> T:
        """The answer of a model that is asked as soon as the rates allow it; what it cost is counted, answer or not."""
        await self._wait()
        try:
            answer = await asking()
        except PlannerError as error:
            self._count(error.spent)
            raise
        self._count(answer.spent)
        return answer

    async def _wait(self) -> None:
        """Wait for the next free moment of both rates."""
        waits = [0.0]
        if self._rates.requests_per_minute:
            waits.append(
                self._store.gates.take(REQUESTS, 60 / self._rates.requests_per_minute, BURST_SECONDS)
            )
        if self._rates.tokens_per_minute:
            waits.append(self._store.gates.take(TOKENS, 0.0, BURST_SECONDS))
        await asyncio.sleep(max(waits))

    def _count(self, spent: ModelCallCost) -> None:
        """Take what a call has used."""
        tokens = spent.tokens_in + spent.tokens_out
        if self._rates.tokens_per_minute and tokens:
            self._store.gates.take(TOKENS, tokens * 60 / self._rates.tokens_per_minute, BURST_SECONDS)


class RateLimitedPlanner:
    """A planner whose every decision passes the gate first."""

    def __init__(self, planner: Planner, gate: ModelRateLimiter) -> None:
        self._planner, self._gate = planner, gate

    @property
    def name(self) -> str:
        return self._planner.name

    async def decide(self, view: PlannerView) -> PlannerResult:
        return await self._gate.passed(lambda: self._planner.decide(view))

    async def aclose(self) -> None:
        if close := getattr(self._planner, "aclose", None):
            await close()


class RateLimitedReviewer:
    """A reviewer behind the same gate."""

    def __init__(self, reviewer: Reviewer, gate: ModelRateLimiter) -> None:
        self._reviewer, self._gate = reviewer, gate

    @property
    def name(self) -> str:
        return self._reviewer.name

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> ReviewerResult:
        return await self._gate.passed(lambda: self._reviewer.review(state, draft, cited, findings))

    async def aclose(self) -> None:
        if close := getattr(self._reviewer, "aclose", None):
            await close()


def limit_model_rates(deciders: PlannerAndReviewer, store: Store, rates: ModelRates) -> PlannerAndReviewer:
    """The same deciders, behind the gate; the offline planner needs no gate."""
    if deciders.planner.name == OFFLINE or not (rates.requests_per_minute or rates.tokens_per_minute):
        return deciders
    gate = ModelRateLimiter(store, rates)
    reviewer = RateLimitedReviewer(deciders.reviewer, gate) if deciders.reviewer else None
    return PlannerAndReviewer(RateLimitedPlanner(deciders.planner, gate), reviewer)
