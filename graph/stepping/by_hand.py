"""What a person does with a pending call instead of the loop: skip it, give its result, or have it made again.

Only the call's row of results is written, marked `operator`; the loop finds it there, as it finds any other.
"""

from collections.abc import Mapping
from typing import Any

from opsleuth.checkpoints.store import Store
from opsleuth.nodes.act.node import act
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, Risk
from opsleuth.state.errors import UsageError
from opsleuth.state.investigation import Investigation
from opsleuth.state.results import CallResult, ResultStatus

SOURCE = "operator"


def find_pending_call(state: Investigation, name: str) -> Call:
    """The pending call `c1`, or the only one of a tool. Raises UsageError with what there is."""
    found = [call for call in state.pending if name in (call.id, short_call_id(call), call.tool)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{short_call_id(call)} {call.tool}" for call in state.pending)
    what = f"{len(found)} pending calls are called {name!r}" if found else f"no pending call {name!r}"
    raise UsageError(f"{what}: there is {there or 'none, the next node plans them'}")


def short_call_id(call: Call) -> str:
    """`c1` of `<run>/t4c1`."""
    return "c" + call.id.rpartition("c")[2]


def skip_call(store: Store, run: str, call: Call, reason: str) -> None:
    """Let the call be answered as canceled. Raises UsageError where something of it is recorded."""
    text = f"skipped by the operator: {reason}" if reason else "skipped by the operator"
    _store_given_result(store, run, call, ResultStatus.CANCELED, {"error": text}, text)


def inject_result(store: Store, run: str, call: Call, record: Mapping[str, Any]) -> None:
    """Supply the call's result. Raises UsageError for a change of the world: that happens or it does not."""
    if call.risk is not Risk.READ:
        raise UsageError(
            f"{call.tool} changes something: its result cannot be given by hand. "
            "Approve or deny it; opsleuth resolve settles one whose outcome is unknown"
        )
    _store_given_result(
        store, run, call, ResultStatus.OK, record, f"given by the operator: {', '.join(record) or 'empty'}"
    )


def discard_result(store: Store, run: str, call: Call) -> None:
    """Drop this run's result of a call, so that it is made again. Raises UsageError for a change of the world."""
    if call.risk is not Risk.READ:
        raise UsageError(f"{call.tool} changes something: it happens once, and is never simply made again")
    store.results.discard(run, call.id)


async def make_call(call: Call, state: Investigation, deps: Deps) -> CallResult | None:
    """Make this one call now, as act would; None if it has to be asked first."""
    await act(state.changed(pending=(call,)), deps)
    return deps.store.results.get(deps.run, call.id, call.digest)


def calls_without_result(state: Investigation, store: Store, run: str) -> list[Call]:
    """Pending calls that have no result yet."""
    return [call for call in state.pending if store.results.get(run, call.id, call.digest) is None]


def _store_given_result(
    store: Store, run: str, call: Call, status: ResultStatus, record: Mapping[str, Any], headline: str
) -> None:
    result = CallResult.not_run(call.id, status, headline, record=dict(record), source=SOURCE)
    if store.effects.of_call(run, call.id) is not None:
        raise UsageError(f"{call.tool} was begun already: the ledger says what became of it")
    with store.transaction():
        if not store.results.put(run, call.id, result, origin="operator", digest=call.digest):
            raise UsageError(
                f"{short_call_id(call)} {call.tool} has a result already: `retry {short_call_id(call)}` drops it"
            )
        store.events.append(
            run,
            "tool.completed" if status is ResultStatus.OK else "tool.canceled",
            {
                "id": call.id,
                "tool": call.tool,
                "args": call.arguments,
                "status": status,
                "evidence": f"E{call.number}",
                "headline": headline,
                "by": SOURCE,
            },
            node="act",
            turn=_turn_of_call(call),
        )


def _turn_of_call(call: Call) -> int:
    """The 4 of `<run>/t4c1`."""
    turn = call.id.rpartition("/t")[2].partition("c")[0]
    return int(turn) if turn.isdecimal() else 0
