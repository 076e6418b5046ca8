"""Drive the graph until it ends, waits, is stopped, or fails; signals and other processes' wishes are heard meanwhile."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.errors import GraphDrained
from langgraph.types import StateSnapshot

from opsleuth.graph.build import Graph, NodeFailure
from opsleuth.nodes.deps import Deps
from opsleuth.state.outcome import ExitCode, Status, StopReason

POLL_SECONDS = 0.5
"""How often a busy run looks whether somebody wants it to stop: a call in flight is told within a second."""

EXIT_OF = {signal.SIGINT: ExitCode.SIGINT, signal.SIGTERM: ExitCode.SIGTERM}


@dataclass(frozen=True, slots=True)
class Ended:
    """How the graph was left, where its state does not say it itself."""

    status: Status = Status.COMPLETED
    stop_reason: StopReason | None = None
    detail: str = ""
    signaled: ExitCode | None = None


class Pace(Protocol):
    """Asked between two nodes whether the run goes on; a stepper waits here for its person.

    `moved` is False the first time: nothing has run yet in this attempt.
    """

    async def __call__(self, snapshot: StateSnapshot, deps: Deps, *, moved: bool) -> bool: ...


async def drive(graph: Graph, given: Any, config: Any, deps: Deps, pace: Pace | None = None) -> Ended:  # noqa: ANN401 - the framework's own types
    """Run to the end of the attempt. A cancellation goes on to verify, so that a report is left behind."""
    caught: list[signal.Signals] = []
    watcher = asyncio.create_task(_watch(deps))
    try:
        with _signals(deps, caught):
            while True:
                try:
                    if pace is None:
                        await graph.ainvoke(given, config, context=deps, durability="sync")
                        return Ended()
                    return await _paced(graph, given, config, deps, pace)
                except GraphDrained:
                    if caught or deps.halted() not in ("cancel", "terminate"):
                        return _stopped(caught)
                    given = None
                    deps.stopping.go_on()
                except NodeFailure as failure:
                    return Ended(Status.FAILED, StopReason.INTERNAL_ERROR, str(failure))
    finally:
        watcher.cancel()


async def _paced(graph: Graph, given: Any, config: Any, deps: Deps, pace: Pace) -> Ended:  # noqa: ANN401 - as above
    """One node at a time, until the graph ends or waits, or the pace says stop."""
    snapshot = await graph.aget_state(config)
    moved = False
    while True:
        if snapshot.next and not await pace(snapshot, deps, moved=moved):
            return Ended(Status.PAUSED, detail="left between two nodes")
        await graph.ainvoke(given, config, context=deps, durability="sync", interrupt_after="*")
        snapshot = await graph.aget_state(config)
        if not snapshot.next or snapshot.interrupts:
            return Ended()
        given, moved = None, True


def _stopped(caught: list[signal.Signals]) -> Ended:
    if caught and caught[0] in EXIT_OF:
        name = caught[0].name
        return Ended(Status.INTERRUPTED, detail=f"stopped by {name}", signaled=EXIT_OF[caught[0]])
    return Ended(Status.PAUSED, detail="the terminal was closed" if caught else "on request")


async def _watch(deps: Deps) -> None:
    """Stop the calls in flight as soon as another process asks for a pause or a cancellation."""
    heard: str | None = None
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if (wish := deps.halted()) != heard:
            heard = wish
            deps.stopping.stop()


@contextlib.contextmanager
def _signals(deps: Deps, caught: list[signal.Signals]) -> Iterator[None]:
    """The first signal stops politely; its default comes back, so that a second one ends the process at once."""
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        loop.remove_signal_handler(number)
        deps.stopping.stop()

    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        for number in handled:
            loop.add_signal_handler(number, stop, number)
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
