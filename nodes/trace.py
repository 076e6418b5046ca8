"""The trace of one attempt: what happened, and where in the loop."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.trace.events import PendingEvent
from opsleuth.state.investigation import Hypothesis

Event = Mapping[str, Any]


class TracePosition(NamedTuple):
    """Where in the loop something happened; `checkpoint` is the one that the node began from."""

    turn: int = 0
    node: str = ""
    step: int = 0
    checkpoint: str = ""


class TraceWriter:
    """Writes this attempt's events, each with the place in the loop where it happened.

    The borders of nodes wait for the next event and are committed with it: they tell nothing by themselves,
    and a commit costs more than all the rest of a step.
    """

    def __init__(self, store: Store, run: str, attempt: int, on_event: Callable[[Event], None]) -> None:
        self._store, self._run, self._attempt, self._on_event = store, run, attempt, on_event
        self._place = TracePosition()
        self._waiting: list[PendingEvent] = []

    def enter(self, place: TracePosition) -> None:
        """Say where the loop stands: the events that follow carry it."""
        self._place = place

    def emit(self, kind: str, along: Callable[[], object] | None = None, **data: object) -> None:
        """Store one event and those that waited, then show them to whoever listens.

        `along` writes what the event reports, in the same transaction.
        """
        self.later(kind, **data)
        with ExitStack() as undoing:
            undoing.callback(self._waiting.pop)  # what it reports did not happen
            with self._store.transaction():
                if along is not None:
                    along()
                stored = self._store.events.append_all(self._run, self._waiting)
            undoing.pop_all()
        self._waiting.clear()
        for event in stored:
            self._on_event(event)

    def later(self, kind: str, **data: object) -> None:
        """An event that may wait for the next one; it keeps the time at which it happened."""
        at = self._store.events.now()
        self._waiting.append(PendingEvent(kind, data, self._attempt, **self._place._asdict(), at=at))


def trace_hypothesis_changes(
    before: Iterable[Hypothesis], after: Iterable[Hypothesis], trace: TraceWriter
) -> None:
    """An event, that may wait, for each hypothesis that is new or changed."""
    known = set(before)
    for h in after:
        if h not in known:
            cited = {"for": list(h.supporting), "against": list(h.contradicting)}
            why = {"reason": h.reason} if h.reason else {}
            trace.later("hypothesis.updated", id=h.id, text=h.text, status=h.status, **cited, **why)
