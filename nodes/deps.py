"""What a node may use besides the state, and the only thing it may return."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from langgraph.errors import GraphDrained

from opsleuth.analysis.claims import DERIVED, EvidenceView
from opsleuth.checkpoints.store import Store
from opsleuth.models.planner import Observation, Planner, Reviewer
from opsleuth.state.calls import Call
from opsleuth.state.clock import Clock
from opsleuth.state.investigation import Investigation
from opsleuth.tools.executor import Executor
from opsleuth.tools.registry import Toolbox, identity
from opsleuth.tools.spec import EvidenceBody, ToolContext

Redact = Callable[[Any], tuple[Any, int]]
Event = Mapping[str, Any]
T = TypeVar("T")


class Step(NamedTuple):
    """The new state and the node that comes next: the only thing a node may return."""

    state: Investigation
    goto: str


class Place(NamedTuple):
    """Where in the loop something happened; `checkpoint` is the one that the node began from."""

    turn: int = 0
    node: str = ""
    step: int = 0
    checkpoint: str = ""


class Trace:
    """Writes this attempt's events, each with the place in the loop where it happened.

    The borders of nodes wait for the next event and are committed with it: they tell nothing by themselves,
    and a commit costs more than all the rest of a step.
    """

    def __init__(self, store: Store, run: str, attempt: int, on_event: Callable[[Event], None]) -> None:
        self._store, self._run, self._attempt, self._on_event = store, run, attempt, on_event
        self._place = Place()
        self._waiting: list[tuple[Place, str, dict[str, Any]]] = []

    def enter(self, place: Place) -> None:
        """Say where the loop stands: the events that follow carry it."""
        self._place = place

    def emit(self, kind: str, along: Callable[[], object] | None = None, **data: Any) -> None:  # noqa: ANN401 - the event's own fields
        """Store one event and those that waited, then show them to whoever listens.

        `along` writes what the event tells of, in the same transaction.
        """
        self.later(kind, **data)
        with self._store.transaction():
            if along is not None:
                along()
            stored = [self._append(*waiting) for waiting in self._waiting]
        self._waiting.clear()
        for event in stored:
            self._on_event(event)

    def later(self, kind: str, **data: Any) -> None:  # noqa: ANN401 - the event's own fields
        """An event that may wait for the next one."""
        self._waiting.append((self._place, kind, data))

    def _append(self, place: Place, kind: str, data: dict[str, Any]) -> Event:
        return self._store.events.append(self._run, kind, data, attempt=self._attempt, **place._asdict())


class Observed:
    """The run's observations, read once from the store and then kept: a turn costs what is new in it."""

    def __init__(self, store: Store, run: str, signal_of: Callable[[str], str | None]) -> None:
        self._store, self._run, self._signal_of = store, run, signal_of
        self._known: list[Observation] = []
        self._views: list[EvidenceView] = []
        self._answers: dict[str, Observation] = {}

    def upto(self, number: int) -> Sequence[Observation]:
        """Observations `O1` to `O<number>`, in order."""
        if len(self._known) < number:
            for observation in self._store.observations.list(self._run, number)[len(self._known) :]:
                self._keep(observation, identity(observation.tool, observation.arguments, observation.target))
        return self._known[:number]

    def add(self, observation: Observation, digest: str) -> None:
        """Store one observation of a call with this digest; storing it again changes nothing."""
        self._store.observations.add(self._run, observation)
        if observation.number == len(self._known) + 1:
            self._keep(observation, digest)

    def answer(self, digest: str) -> Observation | None:
        """The first successful answer to an identical call, if there is one."""
        return self._answers.get(digest)

    def views(self, number: int) -> Sequence[EvidenceView]:
        """The first `number` observations as the checks of text against evidence see them."""
        self.upto(number)
        return self._views[:number]

    def body(self, evidence: str, upto: int) -> EvidenceBody | None:
        """The stored body of an evidence id among the first `upto`, or None."""
        number = int(evidence[1:]) if evidence[1:].isdigit() else 0
        if not 1 <= number <= upto:
            return None
        seen = self.upto(upto)[number - 1]
        return EvidenceBody(id=evidence, tool=seen.tool, status=seen.status, record=seen.record)

    def _view(self, o: Observation) -> EvidenceView:
        return EvidenceView(
            id=f"E{o.number}",
            tool=o.tool,
            signal=self._signal_of(o.tool) or DERIVED,
            status=o.status,
            record=o.record,
            asked={**o.arguments, "target": o.target},
            tests=o.tests,
        )

    def _keep(self, observation: Observation, digest: str) -> None:
        self._known.append(observation)
        self._views.append(self._view(observation))
        if not observation.status.is_error:
            self._answers.setdefault(digest, observation)


class Stopping:
    """The wish to stop, and the tasks in flight that must hear of it."""

    def __init__(self) -> None:
        self.wished = False
        self._running: set[asyncio.Task[Any]] = set()

    def stop(self) -> None:
        """Cancel what runs; nothing new starts."""
        self.wished = True
        for task in self._running:
            task.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """`work` as a task that `stop` cancels. Raises GraphDrained if it was: the node runs again at resume."""
        if self.wished:
            work.close()
            raise GraphDrained("stopped")
        task = asyncio.ensure_future(work)
        self._running.add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            if self.wished:
                raise GraphDrained("stopped") from None
            raise
        finally:
            self._running.discard(task)
        return result


@dataclass(slots=True)
class Deps:
    """The run's surroundings, one per attempt.

    `halted` reads the run's control rows and returns `pause`, `cancel`, `terminate` or None. `on_failure`
    writes a traceback where only the operator of this machine reads it.
    """

    run: str
    attempt: int
    store: Store
    trace: Trace
    observed: Observed
    planner: Planner
    toolbox: Toolbox
    executor: Executor
    clock: Clock
    context: Callable[[Investigation, Call | None], ToolContext]
    redact: Redact
    on_failure: Callable[[str, BaseException], None]
    halted: Callable[[], str | None] = field(default=lambda: None)
    services: frozenset[str] = frozenset()
    warnings: Callable[[], Sequence[str]] = field(default=tuple)
    stopping: Stopping = field(default_factory=Stopping)
    reviewer: Reviewer | None = None
    step: int = 0
    entered: float = 0.0

    def enter(self, node: str, state: Investigation, checkpoint: str) -> None:
        """A node begins."""
        self.step += 1
        self.entered = self.clock.monotonic()
        turn = state.budget.used.turns + (node == "plan")
        self.trace.enter(Place(turn, node, self.step, checkpoint))
        self.trace.later("step.started")

    def leave(self, before: Investigation, step: Step) -> Investigation:
        """A node has ended: the state with the node's active time, and the trace of what it changed."""
        spent = self.clock.monotonic() - self.entered
        after = step.state.changed(budget=step.state.budget.plus(seconds=spent))
        changed = [name for name in type(after).model_fields if getattr(after, name) != getattr(before, name)]
        self.trace.later("step.completed", changed=changed, ms=round(spent * 1000), goto=step.goto)
        return after

    def active_seconds(self, state: Investigation) -> float:
        """Active time of the run up to this moment, in seconds; the node's own time is not yet in the state."""
        return state.budget.used.seconds + self.clock.monotonic() - self.entered
