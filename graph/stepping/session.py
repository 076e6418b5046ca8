"""Stepping: a run that is let go for one node, one call, one turn, or until something happens.

`Stepping` is a pace: between two nodes the loop asks it whether to go on. Where the run stops it hands over to
whoever steps, and is told how far to go next. All of it is one attempt, under one lock.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from langgraph.types import StateSnapshot

from opsleuth.graph.stepping import by_hand
from opsleuth.graph.stepping.breakpoints import Breakpoint, NodeBoundary
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.trace import TracePosition
from opsleuth.state.calls import Call
from opsleuth.state.investigation import Investigation

How = Literal["next", "into", "retry", "continue", "until", "finish"]


class StepGoal(NamedTuple):
    """How far to go: `until` a node, `retry` a call by its name; `into` makes one call of act."""

    how: How
    what: str = ""


NEXT = StepGoal("next")


class StepStop(NamedTuple):
    """Where a stepped run stands, why it stopped, and its surroundings."""

    state: Investigation
    next: str
    checkpoint: str
    why: str
    deps: Deps


HandOver = Callable[[StepStop], Awaitable[StepGoal | None]]
"""Waits for the person; None means to leave the run where it is."""


@dataclass(slots=True)
class SteppingPace:
    """The pace of one stepped run. `goal` is set before the run is let go."""

    hand_over: HandOver
    goal: StepGoal = NEXT
    breakpoints: list[Breakpoint] = field(default_factory=list)
    _before: Mapping[str, Any] | None = None

    async def __call__(self, snapshot: StateSnapshot, deps: Deps, *, moved: bool) -> bool:
        state = Investigation.model_validate(snapshot.values)
        if moved:
            why = self._reached(snapshot, deps)
        else:  # before anything has run it goes on, unless a single call is meant
            self._before = snapshot.values
            why = await self._into(state, snapshot.next[0], deps)
        while why is not None:
            checkpoint = str((snapshot.config.get("configurable") or {}).get("checkpoint_id", ""))
            goal = await self.hand_over(StepStop(state, snapshot.next[0], checkpoint, why, deps))
            if goal is None:
                return False
            self.goal, self._before = goal, snapshot.values
            why = await self._into(state, snapshot.next[0], deps)
        return True

    def _reached(self, snapshot: StateSnapshot, deps: Deps) -> str | None:
        """Why the run stops here, or None."""
        border = NodeBoundary(snapshot.next[0], snapshot.values, self._before or snapshot.values)
        if self.goal.how != "next":
            for point in [p for p in self.breakpoints if p.hit(border)]:
                if point.once:
                    self.breakpoints.remove(point)
                deps.trace.emit("breakpoint.hit", number=point.number, text=point.text)
                return f"breakpoint {point.number}: {point.text}"
        return self._goal_reached(border)

    def _goal_reached(self, border: NodeBoundary) -> str | None:
        how, what = self.goal
        if how in ("next", "into", "retry"):
            return ""
        if how == "until":
            return "" if border.next == what else None
        if how == "finish":
            return "" if border.next == "plan" else None
        return None

    async def _into(self, state: Investigation, node: str, deps: Deps) -> str | None:
        """Make one call of the node that comes next, if that is what is wanted; then the run stops again."""
        call = self._call(state, node, deps)
        if call is None:
            return None
        deps.trace.enter(TracePosition(state.budget.used.turns, node, deps.step + 1))
        deps.entered = deps.clock.monotonic()
        result = await by_hand.make_call(call, state, deps)
        left = len(by_hand.calls_without_result(state, deps.store, deps.run))
        what = f"{by_hand.short_call_id(call)} {call.tool}"
        return f"{what}: {result.status}, {left} left" if result else f"{what} has to be asked first"

    def _call(self, state: Investigation, node: str, deps: Deps) -> Call | None:
        if node != "act":
            return None
        if self.goal.how == "retry":
            call = by_hand.find_pending_call(state, self.goal.what)
            by_hand.discard_result(deps.store, deps.run, call)
            return call
        missing = by_hand.calls_without_result(state, deps.store, deps.run)
        return missing[0] if self.goal.how == "into" and missing else None


class PauseAtNode:
    """The pace of a run that stops before the first time a node would run."""

    def __init__(self, node: str) -> None:
        self.node = node

    async def __call__(self, snapshot: StateSnapshot, deps: Deps, *, moved: bool) -> bool:  # noqa: ARG002 - as a pace
        return not moved or snapshot.next[0] != self.node
