"""Separate threads and stores for slow work, so that one team's storm does not delay other teams' reads.

Each team has one piece of work in a thread at a time, and pieces are short: teams take turns, whatever each of them sends.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from opsleuth.alerts.grouping import ReceivedAlert
from opsleuth.checkpoints.store import Store
from opsleuth.service.alert_placement import PlacedRun
from opsleuth.service.intake import RequestIntake, RequestSender, firing_fingerprints
from opsleuth.service.store_pool import StorePool

ALERTS_AT_ONCE: Final = 10
"""Alerts in one transaction: each of them writes up to ten rows."""

T = TypeVar("T")


@dataclass(slots=True)
class _TeamTurn:
    """The turn of one team, and how many wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class IntakeLanes:
    """What takes requests in, off the threads that others read with."""

    def __init__(self, stores: StorePool) -> None:
        self._stores = stores
        self._turns: dict[str, _TeamTurn] = defaultdict(_TeamTurn)

    async def take_turn(self, team: str, work: Callable[[Store], T]) -> T:
        """What `work` makes of a store, when it is the team's turn. Raises what it raises."""
        async with self._turn_of(team):
            return await self._stores(work)

    async def receive_alerts(
        self, intake: RequestIntake, alerts: Sequence[ReceivedAlert], sender: RequestSender
    ) -> list[PlacedRun]:
        """The run of each alert that fires, all of them committed."""
        firing, placed = firing_fingerprints(alerts), list[PlacedRun]()
        for start in range(0, len(alerts), ALERTS_AT_ONCE):
            batch = alerts[start : start + ALERTS_AT_ONCE]

            def work(store: Store, batch: Sequence[ReceivedAlert] = batch) -> list[PlacedRun]:
                return intake.receive_batch(store, batch, sender, firing)

            placed += await self.take_turn(sender.team, work)
        return placed

    def close(self) -> None:
        """Close the stores and end the threads."""
        self._stores.close()

    @asynccontextmanager
    async def _turn_of(self, team: str) -> AsyncIterator[None]:
        """The team's turn, first come first served; what nobody waits for is forgotten."""
        turn = self._turns[team]
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                self._turns.pop(team, None)
