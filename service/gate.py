"""Back-pressure to the model's server: all workers together keep to one rate of requests and of tokens."""

import asyncio
from collections.abc import Sequence
from typing import Final

from opsleuth.checkpoints.store import Store
from opsleuth.models.choose import Deciders
from opsleuth.models.planner import (
    OFFLINE,
    Decided,
    Observation,
    Planner,
    PlannerError,
    PlannerView,
    Reviewed,
    Reviewer,
)
from opsleuth.service.settings import ModelRates
from opsleuth.state.budget import Spent
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation

REQUESTS: Final = "model requests"
TOKENS: Final = "model tokens"
BURST_SECONDS = 2.0
"""Unused rate accumulates for at most this many seconds."""


class Gate:
    """One run's way to the model. Tokens are counted when they are known: who comes next waits for them."""

    def __init__(self, store: Store, rates: ModelRates) -> None:
        self._store, self._rates = store, rates

    async def enter(self) -> None:
        """Wait for the next free moment of both rates."""
        waits = [0.0]
        if self._rates.requests_per_minute:
            waits.append(
                self._store.gates.take(REQUESTS, 60 / self._rates.requests_per_minute, BURST_SECONDS)
            )
        if self._rates.tokens_per_minute:
            waits.append(self._store.gates.take(TOKENS, 0.0, BURST_SECONDS))
        await asyncio.sleep(max(waits))

    def spent(self, spent: Spent) -> None:
        """Take what a call has used."""
        tokens = spent.tokens_in + spent.tokens_out
        if self._rates.tokens_per_minute and tokens:
            self._store.gates.take(TOKENS, tokens * 60 / self._rates.tokens_per_minute, BURST_SECONDS)


class GatedPlanner:
    """A planner whose every decision passes the gate first."""

    def __init__(self, planner: Planner, gate: Gate) -> None:
        self._planner, self._gate = planner, gate

    @property
    def name(self) -> str:
        return self._planner.name

    async def decide(self, view: PlannerView) -> Decided:
        await self._gate.enter()
        try:
            decided = await self._planner.decide(view)
        except PlannerError as error:
            self._gate.spent(error.spent)
            raise
        self._gate.spent(decided.spent)
        return decided

    async def aclose(self) -> None:
        if close := getattr(self._planner, "aclose", None):
            await close()


class GatedReviewer:
    """A reviewer behind the same gate."""

    def __init__(self, reviewer: Reviewer, gate: Gate) -> None:
        self._reviewer, self._gate = reviewer, gate

    @property
    def name(self) -> str:
        return self._reviewer.name

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> Reviewed:
        await self._gate.enter()
        try:
            reviewed = await self._reviewer.review(state, draft, cited, findings)
        except PlannerError as error:
            self._gate.spent(error.spent)
            raise
        self._gate.spent(reviewed.spent)
        return reviewed

    async def aclose(self) -> None:
        if close := getattr(self._reviewer, "aclose", None):
            await close()


def gated(deciders: Deciders, store: Store, rates: ModelRates) -> Deciders:
    """The same deciders, behind the gate; the offline planner needs no gate."""
    if deciders.planner.name == OFFLINE or not (rates.requests_per_minute or rates.tokens_per_minute):
        return deciders
    gate = Gate(store, rates)
    reviewer = GatedReviewer(deciders.reviewer, gate) if deciders.reviewer else None
    return Deciders(GatedPlanner(deciders.planner, gate), reviewer)
