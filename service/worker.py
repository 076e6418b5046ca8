"""A worker: takes runs from the queue and drives them, several at once, until it is told to end.

Whatever ends an attempt but the run itself, the job goes back into the queue: the worker is being stopped, the
database went away, another process holds the run. A worker that dies says nothing; others find its jobs by its
silence. Each run in work has its own lease and fence; the connection is one, for each step of theirs is a whole
transaction.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import httpx
import procrastinate
import psycopg
from procrastinate import JobContext
from procrastinate.exceptions import ConnectorException

from opsleuth.checkpoints.errors import Busy, Lost, NotFound, Unreadable
from opsleuth.checkpoints.jobs import QUEUE, TASK
from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.postgres.db import Database
from opsleuth.checkpoints.postgres.opening import open_database
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.outcome import Outcome, outcome_of
from opsleuth.graph.session import Runner
from opsleuth.graph.wiring import Parts
from opsleuth.service.background import drop_unknown, forever, retain
from opsleuth.service.gate import gated
from opsleuth.service.notices import Target, deliver, tell
from opsleuth.service.pulse import Pulse
from opsleuth.service.queue import Again, RetryUntilRunEnds, queue_of, take_over
from opsleuth.service.settings import Service
from opsleuth.state.clock import Clock
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.outcome import FINISHED, Status, StopReason

log = logging.getLogger("opsleuth.worker")
BUSY_SECONDS = 5.0
"""After so long a run that somebody else holds is looked at again."""
RECONNECT_SECONDS = 1.0


class Harmful(OpsleuthError):
    """A run whose attempts end, again and again, before they get anywhere."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One process. `secrets` are those of the webhooks, by name; `parts` what runs are made of."""

    place: Server
    service: Service
    clock: Clock
    concurrency: int = 4
    parts: Parts = field(default_factory=Parts)
    secrets: Mapping[str, str] = field(default_factory=dict)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    pulse: Pulse = field(init=False)
    _database: list[Database] = field(default_factory=list)

    def __post_init__(self) -> None:
        told = self.service
        pulse = Pulse(self.place, self.clock, told.heartbeat_seconds, told.hung_seconds)
        object.__setattr__(self, "pulse", pulse)

    async def run(self) -> None:
        """Work until `leaving` is set and the runs in work have stopped at a node."""
        with contextlib.closing(self):
            async with self._background_tasks():
                while not self.leaving.is_set():
                    try:
                        await self._work()
                    except (ConnectorException, psycopg.Error, OSError) as error:
                        log.warning("the queue cannot be reached (%s): trying again", type(error).__name__)
                    await self._pause(RECONNECT_SECONDS)

    def close(self) -> None:
        """Close the connection, where there was one."""
        while self._database:
            self._database.pop().close()

    async def _work(self) -> None:
        """One connection to the queue: until the worker is to end, or the connection is lost."""
        app = queue_of(self.place)
        app.task(name=TASK, queue=QUEUE, retry=RetryUntilRunEnds(), pass_context=True)(self.work_on)
        async with app.open_async():
            working = asyncio.create_task(
                app.run_worker_async(
                    queues=[QUEUE],
                    concurrency=self.concurrency,
                    install_signal_handlers=False,
                    delete_jobs="successful",
                    fetch_job_polling_interval=self.service.heartbeat_seconds,
                    update_heartbeat_interval=self.service.heartbeat_seconds,
                    stalled_worker_timeout=self.service.stalled_seconds,
                )
            )
            sweep = forever(
                "looking through the queue", self.service.heartbeat_seconds, partial(self._sweep, app)
            )
            sweeping = asyncio.create_task(sweep)
            leaving = asyncio.create_task(self.leaving.wait())
            try:
                await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                working.cancel()
                await _ended(working, sweeping, leaving)

    async def work_on(self, context: JobContext, run: str, team: str) -> None:
        """A job of the queue."""
        self.pulse.worker = context.job.worker_id
        await self.investigate(run, team)

    async def investigate(self, run: str, team: str) -> None:
        """One attempt of a run. Raises Again where the run has not come to an end or a question by it."""
        log.info("%s of %s begins", run, team)
        with self._store() as store:
            row = store.runs.get(run)
            if row is None:
                return  # it was removed meanwhile
            try:
                outcome = _ended_before(store, row) or await self._go_on(store, run)
            except NotFound:
                return  # it was removed meanwhile
            except Busy as busy:
                if isinstance(busy, Lost):
                    log.warning("%s", busy)
                raise Again(BUSY_SECONDS, str(busy)) from None
            if outcome.status is Status.INTERRUPTED:
                raise Again(0, outcome.detail)
            tell(store, outcome, self.service.webhooks)
        log.info("%s is %s (%s)", run, outcome.status, outcome.stop_reason or "-")

    async def _go_on(self, store: Store, run: str) -> Outcome:
        try:
            return await self._attempt(store, run)
        except (OpsleuthError, Unreadable) as error:
            return self._set_aside(store, run, f"it cannot be worked on: {error}")

    async def _attempt(self, store: Store, run: str) -> Outcome:
        parts = replace(self.parts, around=lambda deciders, own: gated(deciders, own, self.service.model))
        runner = Runner(
            store, clock=self.clock, parts=parts, leaving=self.leaving, held=partial(self._count, store)
        )
        wishes = {wish.kind for wish in store.control.pending(run)}
        for kind in ("terminate", "cancel"):
            if kind in wishes:
                return await runner.end(run, kind)
        return await runner.resume(run, {})

    def _count(self, store: Store, run: str) -> None:
        """An attempt begins, for its run is held: one that somebody else holds is no attempt. Raises Harmful."""
        strikes = store.intake.attempt(run, store.events.count(run, "step.completed"))
        if strikes > self.service.most_strikes:
            raise Harmful(f"{strikes - 1} attempts in a row ended before the next node")

    def _set_aside(self, store: Store, run: str, why: str) -> Outcome:
        """End a run that harms or cannot be read, without touching its graph; `opsleuth resume` may still go on.

        Raises Busy: what somebody works on by now is not set aside; what somebody brought to its end stays so.
        """
        with store.lock(run), store.transaction():
            if ended := _ended_before(store, store.runs.find(run)):
                return ended
            log.error("%s is set aside: %s", run, why)
            store.runs.update(run, status=Status.FAILED, stop_reason=StopReason.INTERNAL_ERROR)
            store.events.append(
                run, "run.failed", {"status": "failed", "stop_reason": "internal_error", "detail": why}
            )
        return outcome_of(store, run, Status.FAILED, StopReason.INTERNAL_ERROR, why)

    @contextlib.contextmanager
    def _store(self) -> Iterator[Store]:
        """A store with fences of its own, over the one connection that all runs of this process use by turns."""
        if not self._database:
            self._database.append(open_database(self.place))
        with Store.over(self._database[0].beside(), self.clock, Redactor()) as store:
            store.database.sound = self.pulse.is_sound
            yield store

    async def _sweep(self, app: procrastinate.App) -> None:
        """Take over from workers that fell silent; put runs in line whose job was lost."""
        if taken := await take_over(app, self.service.stalled_seconds):
            log.warning("%d runs of silent workers are taken over", taken)
        with self._store() as store:
            store.jobs.put_lost()

    @contextlib.asynccontextmanager
    async def _background_tasks(self) -> AsyncIterator[None]:
        """What goes on whether the queue is connected or not: messages to others, and removal of old runs."""
        async with httpx.AsyncClient(follow_redirects=False) as client:
            loops = [
                forever("removing old runs", 3_600, partial(asyncio.to_thread, self._clean_up)),
                *(
                    forever(f"telling {name}", 1, partial(self._deliver, name, client))
                    for name in self.service.webhooks
                ),
            ]
            tasks = [asyncio.create_task(loop) for loop in (*loops, self._come_round())]
            try:
                with self.pulse.beating():
                    yield
            finally:
                await _ended(*tasks)

    async def _come_round(self) -> None:
        while True:
            self.pulse.came_round()
            await asyncio.sleep(0.2)

    async def _deliver(self, name: str, client: httpx.AsyncClient) -> None:
        target = Target(name, self.service.webhooks[name].url, self.secrets[name])
        with self._store() as store:
            await deliver(store, target, self.clock, client)

    def _clean_up(self) -> None:
        """In a thread and over a connection of its own: it takes its time, and runs must not wait for it."""
        with Store.open(self.place, self.clock, Redactor()) as store:
            retain(store, self.clock, self.service.retention_days, self.leaving.is_set)
            drop_unknown(store, self.clock, self.service.webhooks)

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until the worker is to end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.leaving.wait(), seconds)


def _ended_before(store: Store, row: RunRow) -> Outcome | None:
    """The end of a run that is over: only a person resumes it, but whoever ended it may have died before it was told."""
    return outcome_of(store, row.id, row.status, row.stop_reason) if row.status in FINISHED else None


async def _ended(*tasks: "asyncio.Task[object]") -> None:
    """End them, whatever they end with."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.warning("%s: %s", type(result).__name__, result)
