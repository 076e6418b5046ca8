"""A small kit for the tests of the tools: a tool whose behaviour is given, a context without sources."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from opsleuth.state.calls import Call, CallRequest, Risk
from opsleuth.state.clock import FakeClock
from opsleuth.state.investigation import Window
from opsleuth.tools.circuit_breaker import CircuitBreaker
from opsleuth.tools.executor import Executor
from opsleuth.tools.policy import Policy
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import Arguments, EvidenceBody, ToolContext, ToolResult, ToolSpec

START = datetime(2024, 5, 1, 14, 0, tzinfo=UTC)


class Orders(Arguments):
    order_id: Annotated[str, Field(min_length=1, description="the order")]
    limit: Annotated[int, Field(ge=1, le=200, description="rows, 1 to 200")] = 20
    share: Annotated[float, Field(ge=0, le=1, description="fraction, 0 to 1")] = 0.5


Behaviour = Callable[[Any, ToolContext], Awaitable[ToolResult]]


async def answers(_: Orders, __: ToolContext) -> ToolResult:
    return ToolResult(record={"rows": 3}, headline="3 rows", source="fake")


def orders(run: Behaviour = answers, *, risk: Risk = Risk.READ, timeout: float | None = None) -> ToolSpec:
    return ToolSpec(
        name="orders_find",
        purpose="Find orders.",
        not_for="Anything else.",
        arguments=Orders,
        example={"order_id": "o-1"},
        run=run,
        risk=risk,
        timeout=timeout,
    )


def context(
    sources: RunSources | None = None, evidence: dict[str, EvidenceBody] | None = None
) -> ToolContext:
    stored = evidence or {}
    return ToolContext(
        window=Window(start=START, end=START.replace(hour=15)),
        clock=FakeClock(START),
        sources=sources or RunSources(),
        evidence=stored.get,
    )


class Sleeper:
    """Takes the place of asyncio.sleep: moves the clock at once and remembers the seconds."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)


class Rig:
    """A toolbox with one tool, and its executor on a fake clock."""

    def __init__(self, spec: ToolSpec, policy: Policy | None = None) -> None:
        self.clock = FakeClock(START)
        self.sleeper = Sleeper(self.clock)
        self.toolbox = Toolbox([spec], RunSources(), policy)
        self.executor = Executor(
            toolbox=self.toolbox,
            clock=self.clock,
            redact=lambda value: (value, 0),
            breaker=CircuitBreaker(self.clock),
            sleep=self.sleeper,
            jitter=lambda: 0.5,
        )

    def call(self, number: int = 1, **arguments: Any) -> Call:
        request = CallRequest(tool=self.toolbox.specs[0].name, arguments={"order_id": "o-1", **arguments})
        return self.toolbox.check(request).call(request, call_id=f"inv-1/t1c{number}", number=number)

    def with_limits(self, **limits: Any) -> "Rig":
        self.executor = replace(self.executor, limits=self.executor.limits.model_copy(update=limits))
        return self
