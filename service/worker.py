"""A worker: takes runs from the queue and drives them, several at once, until it is told to end.

Whatever ends an attempt but the run itself, the job returns to the queue: the worker is being stopped, the
database went away, another process holds the run. A worker that dies says nothing; others find its jobs by its
silence. Each run in progress has its own lease and fence; the connection is one, for each step of theirs is a whole
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

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import NotFoundError, RunBusyError, RunLostError, UnreadableStoreError
from opsleuth.checkpoints.postgres.database import PostgresDatabase
from opsleuth.checkpoints.postgres.migration import open_database
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.jobs import QUEUE, TASK
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.verification import note_end
from opsleuth.configuration.service_settings import ServiceSettings
from opsleuth.graph.lifecycle.breaker_memory import SharedBreakers
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.graph.lifecycle.outcome import AttemptOutcome, attempt_outcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.background_tasks import (
    deny_unanswered_calls,
    drop_notices_to_unknown,
    forget_old_receipts,
    remove_old_runs,
    repeat_forever,
)
from opsleuth.service.heartbeat import WorkerHeartbeat
from opsleuth.service.intake import RequestIntake
from opsleuth.service.model_rate_limit import limit_model_rates
from opsleuth.service.notices import NoticeTarget, deliver_due_notices, queue_notices
from opsleuth.service.queue import (
    RetryLaterError,
    RetryUntilRunEnds,
    build_queue_app,
    retry_stalled_jobs,
)
from opsleuth.service.team_budgets import allow_spending
from opsleuth.state.clock import Clock, format_timestamp
from opsleuth.state.errors import ConfigError, OpsleuthError, UsageError
from opsleuth.state.run_status import FINISHED_STATUSES, Status, StopReason

log = logging.getLogger("opsleuth.worker")
BUSY_SECONDS = 5.0
"""After this long a run that another process holds is checked again."""
RECONNECT_SECONDS = 1.0
TIDY_SECONDS = 60.0


class TooManyStrikesError(OpsleuthError):
    """A run whose attempts end, again and again, before they get anywhere."""


@dataclass(frozen=True, slots=True)
class RunWorker:
    """One process. `secrets` are those of the webhooks, by name; `parts` what runs are made of."""

    place: PostgresServer
    service: ServiceSettings
    clock: Clock
    concurrency: int = 4
    parts: AttemptParts = field(default_factory=AttemptParts)
    breakers: SharedBreakers = field(default_factory=SharedBreakers, kw_only=True)
    secrets: Mapping[str, str] = field(default_factory=dict)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    pulse: WorkerHeartbeat = field(init=False)
    _database: list[PostgresDatabase] = field(default_factory=list)

    def __post_init__(self) -> None:
        told = self.service
        pulse = WorkerHeartbeat(self.place, self.clock, told.heartbeat_seconds, told.hung_seconds)
        object.__setattr__(self, "pulse", pulse)

    async def run(self) -> None:
        """Work until `leaving` is set and the runs in progress have stopped at a node."""
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
        app = build_queue_app(self.place)
        app.task(name=TASK, queue=QUEUE, retry=RetryUntilRunEnds(), pass_context=True)(self.run_job)
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
            sweep = repeat_forever(
                "looking through the queue", self.service.heartbeat_seconds, partial(self._sweep, app)
            )
            sweeping = asyncio.create_task(sweep)
            leaving = asyncio.create_task(self.leaving.wait())
            try:
                await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                working.cancel()
                await _cancel_tasks(working, sweeping, leaving)

    async def run_job(self, context: JobContext, run: str, team: str) -> None:
        """A job of the queue."""
        self.pulse.worker = context.job.worker_id
        await self.investigate(run, team)

    async def investigate(self, run: str, team: str) -> None:
        """One attempt of a run. Raises RetryLaterError where the run has not come to an end or a question by it."""
        log.info("%s of %s begins", run, team)
        with self._store() as store:
            row = store.runs.get(run)
            if row is None:
                return  # it was removed meanwhile
            try:
                outcome = _outcome_if_finished(store, row) or await self._go_on(store, run)
            except NotFoundError:
                return  # it was removed meanwhile
            except RunBusyError as busy:
                if isinstance(busy, RunLostError):
                    log.warning("%s", busy)
                raise RetryLaterError(BUSY_SECONDS, str(busy)) from None
            if outcome.status is Status.INTERRUPTED:
                raise RetryLaterError(0, outcome.detail)
            queue_notices(store, outcome, self.service.webhooks)
            if outcome.status in FINISHED_STATUSES:
                self._follow_unheard_alerts(store, run)
            head, problem = note_end(store.database, run, format_timestamp(self.clock.now()))
        if problem:
            log.warning("%s", problem)
        log.info("%s is %s (%s); log head %s", run, outcome.status, outcome.stop_reason or "-", head)

    async def _go_on(self, store: Store, run: str) -> AttemptOutcome:
        try:
            return await self._attempt(store, run)
        except (UsageError, ConfigError, TooManyStrikesError, UnreadableStoreError) as error:
            return self._set_aside(store, run, f"it cannot be worked on: {error}")

    async def _attempt(self, store: Store, run: str) -> AttemptOutcome:
        parts = replace(
            self.parts,
            around=lambda deciders, own: limit_model_rates(deciders, own, self.service.model),
            allowance=lambda own, row: allow_spending(own, row, self.service),
            breaker=self.breakers.breaker_for,
        )
        runner = Runner(
            store, clock=self.clock, parts=parts, leaving=self.leaving, held=partial(self._count, store)
        )
        wishes = {wish.kind for wish in store.control.pending(run)}
        for kind in ("terminate", "cancel"):
            if kind in wishes:
                return await runner.end(run, kind)
        return await runner.resume(run, {})

    def _follow_unheard_alerts(self, store: Store, run: str) -> None:
        """Start another run for alerts that joined this one too late to be considered."""
        row = store.runs.find(run)
        settings = replace(RunSettings.of(row.settings), rules=None, services=())
        intake = RequestIntake(
            settings, lambda own, taken: own.jobs.put_all(taken), self.clock, webhooks=self.service.webhooks
        )
        for placed in intake.follow_unheard(store, run, row.project):
            log.info("%s ended before it received an alert: %s follows it", run, placed.run)

    def _count(self, store: Store, run: str) -> None:
        """Begin an attempt on a run that is held by this worker; a run held elsewhere does not count. Raises TooManyStrikesError."""
        strikes = store.intake.attempt(run, store.events.count(run, "step.completed"))
        if strikes > self.service.most_strikes:
            raise TooManyStrikesError(f"{strikes - 1} attempts in a row ended before the next node")

    def _set_aside(self, store: Store, run: str, why: str) -> AttemptOutcome:
        """End a run that harms or cannot be read, without touching its graph; `opsleuth resume` may still go on.

        Raises RunBusyError: what somebody works on by now is not set aside; what somebody brought to its end stays so.
        """
        with store.lock(run), store.transaction():
            if ended := _outcome_if_finished(store, store.runs.find(run)):
                return ended
            log.error("%s is set aside: %s", run, why)
            store.runs.update(run, status=Status.FAILED, stop_reason=StopReason.INTERNAL_ERROR)
            store.events.append(
                run, "run.failed", {"status": "failed", "stop_reason": "internal_error", "detail": why}
            )
        return attempt_outcome(store, run, Status.FAILED, StopReason.INTERNAL_ERROR, why)

    @contextlib.contextmanager
    def _store(self) -> Iterator[Store]:
        """A store with fences of its own, over the one connection that all runs of this process use in turns."""
        if not self._database:
            self._database.append(open_database(self.place))
        with Store.over(self._database[0].beside(), self.clock, Redactor()) as store:
            store.database.sound = self.pulse.is_responsive
            yield store

    async def _sweep(self, app: procrastinate.App) -> None:
        """Take over from workers that fell silent; put runs in line whose job was lost."""
        if taken := await retry_stalled_jobs(app, self.service.stalled_seconds):
            log.warning("%d runs of silent workers are taken over", taken)
        with self._store() as store:
            store.jobs.put_lost()

    @contextlib.asynccontextmanager
    async def _background_tasks(self) -> AsyncIterator[None]:
        """Tasks that run whether or not the queue is connected: sending notices and removing old runs."""
        async with httpx.AsyncClient(follow_redirects=False) as client:
            loops = [
                repeat_forever("removing old runs", 3_600, partial(asyncio.to_thread, self._clean_up)),
                repeat_forever("tidying up", TIDY_SECONDS, partial(asyncio.to_thread, self._tidy_up)),
                *(
                    repeat_forever(f"telling {name}", 1, partial(self._deliver, name, client))
                    for name in self.service.webhooks
                ),
            ]
            tasks = [asyncio.create_task(loop) for loop in (*loops, self._come_round())]
            try:
                with self.pulse.keep_beating():
                    yield
            finally:
                await _cancel_tasks(*tasks)

    async def _come_round(self) -> None:
        while True:
            self.pulse.record_loop_turn()
            await asyncio.sleep(0.2)

    async def _deliver(self, name: str, client: httpx.AsyncClient) -> None:
        target = NoticeTarget(name, self.service.webhooks[name].url, self.secrets[name])
        with self._store() as store:
            await deliver_due_notices(store, target, self.clock, client)

    def _clean_up(self) -> None:
        """In a thread and over a connection of its own: it takes its time, and runs must not wait for it."""
        with Store.open(self.place, self.clock, Redactor()) as store:
            remove_old_runs(store, self.clock, self.service.retention_days, self.leaving.is_set)
            forget_old_receipts(store, self.clock, self.service.retention_days)
            drop_notices_to_unknown(store, self.clock, self.service.webhooks)

    def _tidy_up(self) -> None:
        """As above, and quick: counts are combined, and calls that nobody answers are given up."""
        with Store.open(self.place, self.clock, Redactor()) as store:
            store.runs.merge_counts()
            deny_unanswered_calls(store, self.clock, self.service.approval_days, store.jobs.put)

    async def _pause(self, seconds: float) -> None:
        """Wait this long, or until the worker is to end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.leaving.wait(), seconds)


def _outcome_if_finished(store: Store, row: RunRow) -> AttemptOutcome | None:
    """The end of a run that is over: only a person resumes it, but whoever ended it may have died before it was told."""
    return (
        attempt_outcome(store, row.id, row.status, row.stop_reason)
        if row.status in FINISHED_STATUSES
        else None
    )


async def _cancel_tasks(*tasks: "asyncio.Task[object]") -> None:
    """End them, whatever they end with."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.warning("%s: %s", type(result).__name__, result)
