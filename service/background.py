"""What a worker does beside its runs, again and again. What goes wrong once is logged, and ends nothing."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import NoReturn

from opsleuth.checkpoints.errors import Busy, NotFound
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import Clock
from opsleuth.state.outcome import FINISHED

log = logging.getLogger("opsleuth.worker")
UNKNOWN_FOR = timedelta(days=1)
"""A message to a webhook that no worker knows is dropped when it is overdue for so long."""


async def forever(what: str, seconds: float, work: Callable[[], Awaitable[object]]) -> NoReturn:
    """Do it again and again, with so many seconds in between, until the task is cancelled."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the border: a loop that ends by an error is missed by nobody
            log.warning("%s failed (%s: %s): again in %g s", what, type(error).__name__, error, seconds)
        await asyncio.sleep(seconds)


def retain(store: Store, clock: Clock, days: int, is_over: Callable[[], bool] = lambda: False) -> int:
    """Remove runs that ended and were last changed so many days ago; how many. What runs, waits or queues stays.

    `is_over` is asked before each: whether the program is to end.
    """
    before, removed = clock.now() - timedelta(days=days), 0
    for run in store.prune.candidates(before):
        row = store.runs.get(run)
        if is_over():
            break
        if row is not None and row.status in FINISHED:
            with contextlib.suppress(Busy, NotFound):  # somebody resumes it, or another worker has removed it
                removed += store.prune.remove(run, before)
    if removed:
        store.prune.reclaim()
    return removed


def drop_unknown(store: Store, clock: Clock, known: Collection[str]) -> int:
    """Drop messages to webhooks that left the configuration; how many."""
    dropped = store.notices.drop_unknown(known, clock.now() - UNKNOWN_FOR)
    for target, count in dropped.items():
        log.warning("%d messages to %s are dropped: no worker knows this webhook", count, target)
    return sum(dropped.values())
