"""Small made-up rows for the tests of platform, messages, statements and changes. Times are seconds from 0."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.analysis.records import (
    AlertFacts,
    LogLine,
    ObjectState,
    PlatformEvent,
    Recording,
    TimeRange,
)

START, ONSET, END = 36_000.0, 42_000.0, 43_200.0


def recording(
    service: str | None = "web", text: str = "web is not well", onset: float | None = ONSET, **rows: Any
) -> Recording:
    return Recording(
        alert=AlertFacts(text, service, onset=onset, fired=END), window=TimeRange(START, END), **rows
    )


def event(obj: str, reason: str, message: str = "", **fields: Any) -> PlatformEvent:
    row = {"time": END - 60.0, "source": "kubernetes", "type": "Warning", **fields}
    return PlatformEvent(object=obj, reason=reason, message=message, **row)


def pod(name: str, **container: Any) -> ObjectState:
    """A pod of one container; ready and running for days unless `container` says otherwise."""
    facts = {"name": "main", "ready": True, "restart_count": 0, "state": {"running": True}, **container}
    status = {
        "phase": "Running",
        "node_name": "node-1",
        "containers": [facts],
        "start_time": "1970-01-01T00:00:00Z",
    }
    return ObjectState(time=END, kind="Pod", name=name, status=status)


def crashing(name: str, reason: str = "CrashLoopBackOff", **container: Any) -> ObjectState:
    return pod(
        name,
        **{"ready": False, "restart_count": 7, "state": {"waiting": True, "reason": reason}, **container},
    )


def row(kind: str, name: str, **cells: str) -> ObjectState:
    """One row of `kubectl get`; the cells in lower case."""
    status: Mapping[str, Any] = {cell.upper(): value for cell, value in cells.items()}
    return ObjectState(time=END, kind=kind, name=name, status=status)


def lines(
    service: str, messages: Sequence[str], first: float | None = END - 600.0, step: float = 1.0
) -> list[LogLine]:
    times = [None if first is None else first + step * number for number in range(len(messages))]
    return [LogLine(time, service, message) for time, message in zip(times, messages, strict=True)]
