"""The executor: runs one checked call and turns whatever happens into a `CallResult`.

In order: breaker, deadline, run (with bounded retries for reads), classify, redact, bound. Nothing leaves
`run` as an exception, not even a cancellation: a call that vanished from a task group would leave its turn
without a result.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from opsleuth.state.backoff import Backoff
from opsleuth.state.budget import RunLimits
from opsleuth.state.calls import Call, ResultStatus, Risk
from opsleuth.state.clock import Clock
from opsleuth.tools.circuit_breaker import CircuitBreaker, Key
from opsleuth.tools.cut_redaction import redacting_cuts
from opsleuth.tools.fair_waiting import LONGEST_FACTOR, wait_fairly
from opsleuth.tools.registry import Toolbox, parse_arguments
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import (
    Arguments,
    CallResult,
    CallTrail,
    InvalidArgumentsError,
    Run,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    TransientError,
)
from opsleuth.tools.truncation import bound_record, cut_text

Redact = Callable[[Any], tuple[Any, int]]
Part = Literal["run", "precheck", "probe", "postcondition"]

BOUNDED_WORK_FACTOR = 30.0
"""A tool whose work is limited in lines and bytes may take this many times as long: load on the machine must not end it."""
RETRIED = frozenset({ResultStatus.TRANSIENT, ResultStatus.TIMEOUT})
RETRIES = Backoff(first=0.2, longest=5.0)
# A cancelled tool that does not end within these seconds is left behind; a command needs TERM, 1 s, KILL.
LEAVE_AFTER = 1.8


class _AttemptOutcome(NamedTuple):
    """One attempt: its result, or its error class and text; `wait` in seconds is what the backend asked for, `cut` that it was ended."""

    status: ResultStatus
    text: str = ""
    result: ToolResult | None = None
    wait: float = 0.0
    foreseen: bool = True
    cut: bool = False


class _RunDeadline(NamedTuple):
    """When the run's time is over, on the executor's monotonic clock."""

    clock: Clock
    at: float | None

    def left(self) -> float:
        return float("inf") if self.at is None else self.at - self.clock.monotonic()


@dataclass(slots=True)
class Executor:
    """Runs calls with the tools of a run. `redact` gives a value without its secrets, and how many it took out.

    `sleep`, `jitter` (0 to 1) and `cpu_seconds` (of this process) are injected, so that tests neither wait nor guess.
    """

    toolbox: Toolbox
    clock: Clock
    redact: Redact
    breaker: CircuitBreaker
    limits: RunLimits = field(default_factory=RunLimits)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    cpu_seconds: Callable[[], float] = time.process_time

    @property
    def is_replaying(self) -> bool:
        """Whether results come from a recording, and no tool is run."""
        return False

    async def run(
        self, call: Call, context: ToolContext, *, part: Part = "run", seconds_left: float | None = None
    ) -> CallResult:
        """The outcome of `call`; never raises. `seconds_left` is what remains of the run's active time.

        `part` is what of the tool to run: the call itself, or one of an effect's reads (`precheck`, `probe`,
        `postcondition`). A cancellation becomes a result too, so give each call a task of its own.
        """
        if part != "run":
            call = call.model_copy(update={"risk": Risk.READ})
        began = self.clock.monotonic()
        deadline = _RunDeadline(self.clock, None if seconds_left is None else began + seconds_left)
        try:
            tries, outcome = await self._guarded(call, context, deadline, part)
            outcome = _add_trail(_mark_unknown_effect(call, outcome), context.trail)
            return self._result(call, outcome, tries, _elapsed_ms(self.clock, began))
        except asyncio.CancelledError:
            lost = _AttemptOutcome(ResultStatus.CANCELED, "canceled before it had ended", foreseen=False)
        except Exception as error:  # noqa: BLE001 - the border: nothing that a tool does may end the run
            # The text of the error is left out: it has not passed the redaction.
            what = f"the tool's record cannot be used ({type(error).__name__}): this is a defect of the tool"
            lost = _AttemptOutcome(ResultStatus.INTERNAL, what, foreseen=False)
        return _failed_result(call, _mark_unknown_effect(call, lost), 1, _elapsed_ms(self.clock, began), 0)

    async def pause(self, seconds: float) -> None:
        """Wait between two readings of the same thing."""
        await self.sleep(seconds)

    async def _guarded(
        self, call: Call, context: ToolContext, deadline: _RunDeadline, part: Part
    ) -> tuple[int, _AttemptOutcome]:
        try:
            spec = _spec_for_part(self.toolbox.spec(call.tool), part)
            arguments = parse_arguments(spec, call.arguments)
        except ToolError as error:
            return 0, _AttemptOutcome(error.status, str(error))
        key = breaker_key(spec, context.sources)
        if refusal := self.breaker.refuses(key):
            return 0, _AttemptOutcome(
                ResultStatus.UNAVAILABLE, f"{spec.name} was not called: {refusal}. Use another way."
            )
        tries, outcome = 1, _AttemptOutcome(ResultStatus.CANCELED)
        try:
            tries, outcome = await self._tries(spec, arguments, context, deadline)
        finally:
            # Redacted before it is cut: half a secret would pass the redaction of whoever is refused later.
            self.breaker.record(key, outcome.status, cut_text(self.redact(outcome.text)[0], 200))
        return tries, outcome

    async def _tries(
        self, spec: ToolSpec, arguments: Arguments, context: ToolContext, deadline: _RunDeadline
    ) -> tuple[int, _AttemptOutcome]:
        tries = 0
        while True:
            tries += 1
            outcome = await self._attempt(spec, arguments, context, deadline.left())
            pause = self._pause(spec, outcome, tries, deadline)
            if pause is None:
                return tries, outcome
            await self.sleep(pause)

    async def _attempt(
        self, spec: ToolSpec, arguments: Arguments, context: ToolContext, left: float
    ) -> _AttemptOutcome:
        if left <= 0:
            return _AttemptOutcome(ResultStatus.TIMEOUT, "not started: the run's time is used up")
        own = spec.timeout or self.limits.call_seconds
        # A change may be given more time than a look: cutting it short leaves it unknown.
        seconds = min(left, own if spec.risk is not Risk.READ else min(own, self.limits.call_seconds))
        if spec.bounded_work or _reads_substitute(spec, context):
            seconds = min(left, BOUNDED_WORK_FACTOR * self.limits.call_seconds)
        context.trail.asked.clear()
        context.trail.missed.clear()
        with redacting_cuts(self.redact):  # the task keeps what is set while it is made
            task = asyncio.ensure_future(spec.run(arguments, context))
        try:
            await self._wait_for_task(task, spec, seconds, left)
            if task.done():
                return _outcome_of_task(task)
        finally:
            await _cancel_task(task)
        return _AttemptOutcome(
            ResultStatus.TIMEOUT, f"no answer within {seconds:g} s", foreseen=False, cut=True
        )

    async def _wait_for_task(
        self, task: "asyncio.Future[ToolResult]", spec: ToolSpec, seconds: float, left: float
    ) -> None:
        """Until the task is done or its time is up: a read has its seconds in CPU, a change by the clock."""
        stretched = seconds * LONGEST_FACTOR if spec.risk is Risk.READ and not spec.bounded_work else seconds
        await wait_fairly(task, seconds, min(left, stretched), self.cpu_seconds)

    def _pause(
        self, spec: ToolSpec, outcome: _AttemptOutcome, tries: int, deadline: _RunDeadline
    ) -> float | None:
        """Seconds before the next attempt, or None if there is none."""
        if spec.risk is not Risk.READ or outcome.status not in RETRIED or tries >= self.limits.tries:
            return None
        if outcome.cut:  # the same work takes as long again
            return None
        pause = RETRIES.seconds_as_asked(tries, outcome.wait, self.jitter())
        return pause if pause is not None and pause < deadline.left() else None

    def _result(self, call: Call, outcome: _AttemptOutcome, tries: int, ms: int) -> CallResult:
        result = outcome.result
        if result is None:
            text, redactions = self.redact(outcome.text)
            return _failed_result(call, outcome._replace(text=text), tries, ms, redactions)
        shown = {"record": result.record, "headline": result.headline, "query": result.query}
        clean, redactions = self.redact(shown)
        return CallResult(
            call_id=call.id,
            status=result.status,
            record=bound_record(clean["record"], self.toolbox.spec(call.tool).max_record_bytes),
            headline=cut_text(clean["headline"], 300),
            source=result.source,
            query=cut_text(clean["query"], 2_000),
            scanned=result.scanned,
            matched=result.matched,
            spark=result.spark[:60],
            tries=tries,
            ms=ms,
            redactions=redactions,
        )


def _spec_for_part(spec: ToolSpec, part: Part) -> ToolSpec:
    """The tool as a read of its own that runs only this part. Raises InvalidArgumentsError if it has none."""
    if part == "run":
        return spec
    run: Run | None = getattr(spec, part)
    if run is None:
        raise InvalidArgumentsError(f"{spec.name} has no {part}")
    return replace(spec, name=f"{spec.name}.{part}", run=run, risk=Risk.READ)


def _failed_result(call: Call, outcome: _AttemptOutcome, tries: int, ms: int, redactions: int) -> CallResult:
    text = cut_text(outcome.text, 4_000) + (f" (after {tries} tries)" if tries > 1 else "")
    return CallResult(
        call_id=call.id,
        status=outcome.status,
        record={"error": text},
        headline=cut_text(text, 300),
        tries=tries,
        ms=ms,
        redactions=redactions,
    )


def _outcome_of_task(task: "asyncio.Future[ToolResult]") -> _AttemptOutcome:
    """The outcome of a task that has ended, by error class."""
    if task.cancelled():
        return _AttemptOutcome(ResultStatus.INTERNAL, "the tool cancelled itself", foreseen=False)
    error = task.exception()
    if error is None:
        result = task.result()
        return _AttemptOutcome(result.status, result.headline, result)
    if isinstance(error, ToolError):
        wait = error.retry_after if isinstance(error, TransientError) else None
        return _AttemptOutcome(error.status, str(error), wait=wait or 0.0)
    return _AttemptOutcome(_status_from_error(error), _error_text(error), foreseen=False)


def _status_from_error(error: BaseException) -> ResultStatus:
    if isinstance(error, TimeoutError):
        return ResultStatus.TIMEOUT
    if isinstance(error, ConnectionError):
        return ResultStatus.TRANSIENT
    return ResultStatus.UNAVAILABLE if isinstance(error, OSError) else ResultStatus.INTERNAL


def _reads_substitute(spec: ToolSpec, context: ToolContext) -> bool:
    """Whether all that the tool can read are log lines, of which it reads a bounded number."""
    sources = context.sources
    return (
        spec.substitute == "logs"
        and spec.capability is not None
        and not sources.serving(spec.capability)
        and bool(sources.serving("logs"))
    )


def _mark_unknown_effect(call: Call, outcome: _AttemptOutcome) -> _AttemptOutcome:
    """What a tool that changes things left open is unknown, never failed: the change may have been made."""
    if call.risk is Risk.READ or outcome.foreseen or outcome.status is ResultStatus.INVALID_ARGUMENTS:
        return outcome
    text = f"it is not known whether the change was made: {outcome.text}"
    return outcome._replace(status=ResultStatus.UNKNOWN, text=text)


def _add_trail(outcome: _AttemptOutcome, trail: CallTrail) -> _AttemptOutcome:
    """The result with the requests behind it; where a source was missed, nothing found says nothing about what is there."""
    result = outcome.result
    if result is None or not (trail.asked or trail.missed):
        return outcome
    query = "\n".join(filter(None, [result.query, *dict.fromkeys(trail.asked)]))
    if not trail.missed:
        return outcome._replace(result=replace(result, query=query))
    absent = result.status is ResultStatus.NONE_MATCHED
    changed = replace(
        result,
        query=query,
        record={**result.record, "not_read": dict(trail.missed)},
        headline=f"{result.headline} (not read: {', '.join(trail.missed)})",
        status=ResultStatus.NOT_RECORDED if absent else result.status,
    )
    return outcome._replace(result=changed, status=changed.status)


def _elapsed_ms(clock: Clock, began: float) -> int:
    return max(0, round((clock.monotonic() - began) * 1000))


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def breaker_key(spec: ToolSpec, sources: RunSources) -> Key:
    """What fails together: the tool, with the sources that serve it."""
    if spec.capability is None:
        return spec.name, ""
    return spec.name, "+".join(source.name for source in sources.serving(spec.capability))


async def _cancel_task(task: "asyncio.Future[ToolResult]") -> None:
    """Cancel the task if it still runs, and give it a moment to clean up; one that will not end is left behind."""
    if task.done():
        return
    task.cancel()
    task.add_done_callback(_retrieve_exception)
    await asyncio.wait({task}, timeout=LEAVE_AFTER)


def _retrieve_exception(task: "asyncio.Future[ToolResult]") -> None:
    if not task.cancelled():
        task.exception()
