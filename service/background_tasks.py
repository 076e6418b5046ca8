"""What a worker does beside its runs, again and again. What goes wrong once is logged, and ends nothing."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import NoReturn

from opsleuth.checkpoints.errors import AlreadyDecidedError, NotFoundError, RunBusyError
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.approvals.decisions import AnsweringPerson, OperatorReply, record_answer
from opsleuth.state.clock import Clock

log = logging.getLogger("opsleuth.worker")
REMOVED_AT_ONCE = 100
"""Runs that one look for old ones finds; each is removed in a transaction of its own."""
RECEIPTS_AT_ONCE = 1_000
APPROVALS_AT_ONCE = 200
UNKNOWN_FOR = timedelta(days=1)
"""A message to a webhook that no worker knows is dropped when it is overdue for this long."""


async def repeat_forever(what: str, seconds: float, work: Callable[[], Awaitable[object]]) -> NoReturn:
    """Do it again and again, with this many seconds in between, until the task is cancelled."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the border: no caller would notice that this loop has ended
            log.warning("%s failed (%s: %s): again in %g s", what, type(error).__name__, error, seconds)
        await asyncio.sleep(seconds)


def remove_old_runs(
    store: Store, clock: Clock, days: int, is_over: Callable[[], bool] = lambda: False
) -> int:
    """Remove runs that ended and were last changed this many days ago; returns how many. What runs, waits or queues stays.

    `is_over` is asked before each: whether the program is to end.
    """
    before, removed = clock.now() - timedelta(days=days), 0
    while not is_over() and (found := store.prune.list_ended(before, REMOVED_AT_ONCE)):
        count = sum(_remove_run(store, run, before) for run in found if not is_over())
        removed += count
        if not count:  # all of them are held: the next look may find them free
            break
    if removed:
        store.prune.reclaim()
    return removed


def _remove_run(store: Store, run: str, before: datetime) -> int:
    with contextlib.suppress(
        RunBusyError, NotFoundError
    ):  # somebody resumes it, or another worker has removed it
        return store.prune.remove(run, before)
    return 0


def forget_old_receipts(store: Store, clock: Clock, days: int) -> int:
    """Remove the records of alerts that were received this many days ago, and what teams spent then; returns how many rows."""
    before, removed = clock.now() - timedelta(days=days), 0
    while count := store.receipts.forget_before(before, RECEIPTS_AT_ONCE):
        removed += count
    return removed + store.spending.forget_days_before(before)


def deny_unanswered_calls(store: Store, clock: Clock, days: int, requeue: Callable[[IntakeRow], None]) -> int:
    """Deny calls of the service's runs that nobody has answered for this many days, and let their runs go on without them; returns how many."""
    person, expired = AnsweringPerson("opsleuth", "none"), 0
    reply = OperatorReply("denied", reason=f"nobody answered within {days} days")
    for asked in store.approvals.list_unanswered(clock.now() - timedelta(days=days), APPROVALS_AT_ONCE):
        with contextlib.suppress(AlreadyDecidedError), store.transaction():
            record_answer(store, asked.run, asked.id, reply, person)
            requeue(store.intake.find(asked.run))
            expired += 1
    return expired


def drop_notices_to_unknown(store: Store, clock: Clock, known: Collection[str]) -> int:
    """Drop messages to webhooks that left the configuration; returns how many."""
    dropped = store.notices.drop_unknown(known, clock.now() - UNKNOWN_FOR)
    for target, count in dropped.items():
        log.warning("%d messages to %s are dropped: no worker knows this webhook", count, target)
    return sum(dropped.values())
