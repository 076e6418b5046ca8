"""A kit for tests of live sources: open one, read from it, ask a tool about it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from tool_rig import context

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.secret_references import Vault
from opsleuth.state.calls import CallRequest
from opsleuth.state.clock import Clock, SystemClock
from opsleuth.state.investigation import Window
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.circuit_breaker import CircuitBreaker
from opsleuth.tools.executor import Executor
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.sources.open_sources import open_live_sources
from opsleuth.tools.sources.source_protocols import RunSources, Source
from opsleuth.tools.sources.targets import separate_by_target
from opsleuth.tools.spec import CallResult

START, END = datetime(2026, 3, 3, 13, tzinfo=UTC), datetime(2026, 3, 3, 14, 30, tzinfo=UTC)
SPAN = TimeRange(START.timestamp(), END.timestamp())

Kind = TypeVar("Kind", bound=LiveSource)


def opened(clock: Clock | None = None, /, **sources: Mapping[str, Any]) -> list[LiveSource]:
    return open_live_sources(sources, Vault(), clock)


def one(clock: Clock | None = None, /, **settings: Any) -> LiveSource:
    """The one source of these settings, called `s`."""
    [source] = opened(clock, s=settings)
    return source


async def ask(
    sources: Iterable[Source], tool: str, *, tries: int = 1, call_seconds: float = 10.0, **arguments: Any
) -> CallResult:
    """What the tool says of these sources, after the executor."""
    clock = SystemClock()
    all_sources = RunSources(separate_by_target(list(sources)))
    toolbox = Toolbox(BUILTIN, all_sources)
    executor = Executor(toolbox, clock, lambda value: (value, 0), CircuitBreaker(clock))
    executor.limits = executor.limits.model_copy(update={"tries": tries, "call_seconds": call_seconds})
    call = toolbox.check(CallRequest(tool=tool, arguments=arguments)).call(
        CallRequest(tool=tool, arguments=arguments), call_id="inv-1/t1c1", number=1
    )
    return await executor.run(call, replace(context(all_sources), window=Window(start=START, end=END)))
