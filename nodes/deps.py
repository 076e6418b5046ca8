"""What a node may use besides the state, and the only thing it may return."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langgraph.errors import GraphDrained

from opsleuth.checkpoints.store import Store
from opsleuth.models.planner import OFFLINE, Planner, Reviewer
from opsleuth.nodes.allowance import SpendingAllowance, SpendingRefusal, UnlimitedAllowance
from opsleuth.nodes.observations import ObservationCache
from opsleuth.nodes.stopping import StopControl
from opsleuth.nodes.trace import TracePosition, TraceWriter
from opsleuth.state.calls import Call, ResultStatus
from opsleuth.state.clock import Clock
from opsleuth.state.investigation import Investigation
from opsleuth.state.limit_caps import NO_CAPS, LimitCaps
from opsleuth.state.results import CallResult
from opsleuth.tools.executor import Executor, Part
from opsleuth.tools.extra_tools import ExtraTools
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.spec import ToolContext

Redact = Callable[[Any], tuple[Any, int]]

_FIGURES = re.compile(r"\d[\d,]*")


class NodeStep(NamedTuple):
    """The new state and the node that comes next: the only thing a node may return."""

    state: Investigation
    goto: str


@dataclass(slots=True)
class Deps:
    """The run's surroundings, one per attempt.

    `halted` reads the run's control rows and returns `pause`, `cancel`, `terminate` or None. `on_failure`
    writes a traceback where only the operator of this machine reads it. `services` are the names that the sources
    know by now.
    """

    run: str
    attempt: int
    store: Store
    trace: TraceWriter
    observed: ObservationCache
    planner: Planner
    toolbox: Toolbox
    executor: Executor
    clock: Clock
    context: Callable[[Investigation, Call | None], ToolContext]
    redact: Redact
    on_failure: Callable[[str, BaseException], None]
    halted: Callable[[], str | None] = field(default=lambda: None)
    services: Callable[[], frozenset[str]] = field(default=frozenset)
    warnings: Callable[[], Sequence[str]] = field(default=tuple)
    added: ExtraTools = field(default_factory=ExtraTools)
    stopping: StopControl = field(default_factory=StopControl)
    allowance: SpendingAllowance = field(default_factory=UnlimitedAllowance)
    caps: LimitCaps = NO_CAPS
    """Upper bounds of the limits; what the state says above them does not count."""
    reviewer: Reviewer | None = None
    reviewer_lost: bool = False
    step: int = 0
    entered: float = 0.0
    warned: set[str] = field(default_factory=set)
    noted: int | None = None
    """The newest note that a decision has heard. It goes when that decision is stored, never before."""

    @property
    def second_opinion(self) -> Reviewer | None:
        """The reviewer while it can be reached, for drafts that a model wrote: the offline planner could not fix its own."""
        return None if self.reviewer_lost or self.planner.name == OFFLINE else self.reviewer

    async def aclose(self) -> None:
        """Close what the planner, the reviewer and the servers of tools hold open."""
        for decider in (self.planner, self.reviewer):
            if close := getattr(decider, "aclose", None):
                await close()
        await self.added.aclose()

    def enter(self, node: str, state: Investigation, checkpoint: str) -> None:
        """A node begins: what the one before has written is stored."""
        self.forget_notes()
        self.step += 1
        self.entered = self.clock.monotonic()
        turn = state.budget.used.turns + (node == "plan")
        self.trace.enter(TracePosition(turn, node, self.step, checkpoint))
        self.trace.later("step.started")

    def forget_notes(self) -> None:
        """Take the notes that were heard off the table."""
        if self.noted is not None:
            self.store.control.clear(self.run, "note", upto=self.noted)
            self.noted = None

    def leave(self, before: Investigation, step: NodeStep) -> Investigation:
        """A node has ended: the state with the node's active time, and the trace of what it changed."""
        spent = self.clock.monotonic() - self.entered
        after = step.state.changed(budget=step.state.budget.plus(seconds=spent))
        changed = [name for name in type(after).model_fields if getattr(after, name) != getattr(before, name)]
        self.trace.later("step.completed", changed=changed, ms=round(spent * 1000), goto=step.goto)
        return after

    def stopwatch(self) -> Callable[[], int]:
        """A function that tells the milliseconds since now."""
        began = self.clock.monotonic()
        return lambda: round(1000 * (self.clock.monotonic() - began))

    def warn(self) -> None:
        """Say what has come to light about the sources' data; the same with other figures is not said again."""
        for text in self.warnings():
            said = _FIGURES.sub("", text)
            if said not in self.warned:
                self.warned.add(said)
                self.trace.emit("warning", code="source", message=text, hint="the rest of the data is used")

    def active_seconds(self, state: Investigation) -> float:
        """Active time of the run up to this moment, in seconds; the node's own time is not yet in the state."""
        return state.budget.used.seconds + self.clock.monotonic() - self.entered

    def seconds_left(self, state: Investigation) -> float:
        """What remains of the run's active time, in seconds; never below 0."""
        limits = self.caps.cut_limits(state.budget.limits)
        return max(limits.seconds - self.active_seconds(state), 0.0)

    def find_spending_refusal(self) -> SpendingRefusal | None:
        """Why no model may be asked now; None where it may, and where deciding costs nothing."""
        return None if self.planner.name == OFFLINE else self.allowance.find_refusal()

    def warn_of_limit(self, name: str, text: str) -> None:
        """Say once in an attempt that a limit is nearly used up."""
        if (mark := f"limit {name}") not in self.warned:
            self.warned.add(mark)
            self.trace.emit("limit.near", code=name, message=text, hint="the run ends when it is used up")

    def cap_limits(self, state: Investigation) -> Investigation:
        """The state under limits that are at most the operator's caps, whatever an edit or an answer wrote there."""
        budget = self.caps.cut_budget(state.budget)
        return state if budget is state.budget else state.changed(budget=budget)

    async def read(self, call: Call, context: ToolContext, left: float, part: Part = "run") -> CallResult:
        """Look at the world, for at most `left` seconds. Raises GraphDrained when the run is to stop meanwhile."""
        result = await self.stopping.run(self.executor.run(call, context, part=part, seconds_left=left))
        if result.status is ResultStatus.CANCELED and self.stopping.wished:
            raise GraphDrained("stopped")
        return result
