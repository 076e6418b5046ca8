"""Drive the graph until it ends, waits, is stopped or fails, while reacting to signals and requests of other processes."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.types import StateSnapshot

from opsleuth.checkpoints.errors import StoreError
from opsleuth.graph.build import Graph, NodeFailureError
from opsleuth.graph.stepping import by_hand
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Risk
from opsleuth.state.investigation import Investigation
from opsleuth.state.run_status import ExitCode, Status, StopReason

POLL_SECONDS = 0.5
"""How often a busy run looks whether somebody wants it to stop: a call in flight is told within a second."""

AWAY = "the database could not be reached for a moment"
EXIT_OF = {signal.SIGINT: ExitCode.SIGINT, signal.SIGTERM: ExitCode.SIGTERM}


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How the graph was left, where its state does not say it itself."""

    status: Status = Status.COMPLETED
    stop_reason: StopReason | None = None
    detail: str = ""
    signaled: ExitCode | None = None


class StepPace(Protocol):
    """Asked between two nodes whether the run goes on; a stepper waits here for its person.

    `moved` is False the first time: nothing has run yet in this attempt.
    """

    async def __call__(self, snapshot: StateSnapshot, deps: Deps, *, moved: bool) -> bool: ...


Hold = Callable[[str, Sequence[str]], Literal["continue", "retry", "quit"]]
"""Asked after a Ctrl-C, with the run and the tools whose calls were stopped: leave them out, make them again, quit."""


async def drive_graph(
    graph: Graph,
    given: object,
    config: RunnableConfig,
    deps: Deps,
    pace: StepPace | None = None,
    hold: Hold | None = None,
    leaving: asyncio.Event | None = None,
    heard: Callable[[], None] = lambda: None,
) -> AttemptEnd:
    """Run to the end of the attempt. A cancellation goes on to verify, so that a report is left behind.

    With `leaving` the process drives other runs too: signals are its own affair, and the event says when to go.
    Without, `heard` is called the moment a signal comes, before anything is stopped.
    """
    watcher = asyncio.create_task(_watch_for_stop(deps, leaving))
    try:
        while True:
            caught: list[signal.Signals] = []
            try:
                with (
                    _handle_stop_signals(deps, caught, heard) if leaving is None else contextlib.nullcontext()
                ):
                    await _invoke_graph(graph, given, config, deps, pace)
                    return AttemptEnd()
            except GraphDrained:
                if leaving is not None and leaving.is_set():
                    return AttemptEnd(Status.INTERRUPTED, detail="its process is being stopped")
                if caught:
                    if not await _goes_on(graph, config, deps, caught, hold):
                        return _end_after_stop_request(caught)
                elif (wish := deps.halted()) not in ("cancel", "terminate"):
                    return (
                        _end_after_stop_request(caught)
                        if wish
                        else AttemptEnd(Status.INTERRUPTED, detail=AWAY)
                    )
                given = None
                deps.stopping.go_on()
            except PaceStoppedError:
                return AttemptEnd(Status.PAUSED, detail="stopped between two nodes, as asked")
            except NodeFailureError as failure:
                return AttemptEnd(Status.FAILED, StopReason.INTERNAL_ERROR, str(failure))
    finally:
        watcher.cancel()


async def _goes_on(
    graph: Graph,
    config: RunnableConfig,
    deps: Deps,
    caught: list[signal.Signals],
    hold: Hold | None,
) -> bool:
    """Ask whoever pressed Ctrl-C what to do with the calls that were stopped; True to go on."""
    if hold is None or caught[0] is not signal.SIGINT:
        return False
    snapshot = await graph.aget_state(config)
    if not snapshot.values or snapshot.interrupts:
        return False
    state = Investigation.model_validate(snapshot.values)
    stopped = by_hand.calls_without_result(state, deps.store, deps.run) if snapshot.next == ("act",) else []
    reads = [call for call in stopped if call.risk is Risk.READ]
    wish = hold(deps.run, [call.tool for call in reads])
    if wish == "continue":
        for call in reads:
            by_hand.skip_call(deps.store, deps.run, call, "stopped with Ctrl-C")
    return wish != "quit"


class PaceStoppedError(Exception):
    """The pace said stop."""


async def _invoke_graph(
    graph: Graph, given: object, config: RunnableConfig, deps: Deps, pace: StepPace | None
) -> None:
    """Until the graph ends or waits; with a pace one node at a time. Raises PaceStoppedError where that says stop."""
    if pace is None:
        await graph.ainvoke(given, config, context=deps, durability="sync")
        return
    snapshot = await graph.aget_state(config)
    moved = False
    while True:
        if snapshot.next and not await pace(snapshot, deps, moved=moved):
            raise PaceStoppedError
        await graph.ainvoke(given, config, context=deps, durability="sync", interrupt_after="*")
        snapshot = await graph.aget_state(config)
        if not snapshot.next or snapshot.interrupts:
            return
        given, moved = None, True


def _end_after_stop_request(caught: list[signal.Signals]) -> AttemptEnd:
    if caught and caught[0] in EXIT_OF:
        name = caught[0].name
        return AttemptEnd(Status.INTERRUPTED, detail=f"stopped by {name}", signaled=EXIT_OF[caught[0]])
    return AttemptEnd(Status.PAUSED, detail="the terminal was closed" if caught else "on request")


async def _watch_for_stop(deps: Deps, leaving: asyncio.Event | None) -> None:
    """Stop the calls in flight when another process asks for a pause or an end, this one leaves, or the store fails."""
    heard: str | None = None
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if leaving is not None and leaving.is_set():
            deps.stopping.stop()
        try:
            wish = deps.halted()
        except StoreError:  # the next thing that the run wants to store fails with the same words
            deps.stopping.stop()
            return
        if wish != heard:
            heard = wish
            if wish is not None:
                deps.stopping.stop()


@contextlib.contextmanager
def _handle_stop_signals(
    deps: Deps, caught: list[signal.Signals], heard: Callable[[], None]
) -> Iterator[None]:
    """The first signal stops politely; its default comes back, so that a second one ends the process at once."""
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        loop.remove_signal_handler(number)
        heard()
        deps.stopping.stop()

    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        for number in handled:
            loop.add_signal_handler(number, stop, number)
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
