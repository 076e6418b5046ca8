"""The trace of a run as spans: run, its attempts, their node steps, and the calls inside them.

One trace per run, however many attempts it took: an attempt whose process was killed ends where its last event is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

Event = Mapping[str, Any]
Kind = Literal["run", "attempt", "node", "model", "tool", "approval"]

ENDINGS = frozenset(
    f"run.{how}"
    for how in ("completed", "waiting", "paused", "failed", "interrupted", "canceled", "terminated")
)
_BEGINNINGS = frozenset({"run.started", "run.resumed", "run.forked"})
_TOOL_ENDS = frozenset({"tool.completed", "tool.canceled", "tool.denied"})
RUN = "run"
"""The id of the span of the whole run."""


@dataclass(slots=True)
class RunSpan:
    """A time range. `id` is unique in the run; `data` is what its events said, the last word wins.

    `end` is None while it lasts. `status` is `ok`, or says in one word why not.
    """

    id: str
    parent: str
    kind: Kind
    name: str
    start: datetime
    end: datetime | None = None
    turn: int = 0
    attempt: int = 0
    step: int = 0
    status: str = "ok"
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def ms(self) -> int:
        """How long it took, in milliseconds; 0 while it lasts."""
        return round((self.end - self.start) / timedelta(milliseconds=1)) if self.end else 0


def build_spans(events: Iterable[Event]) -> list[RunSpan]:
    """The spans of a run in the order in which they began; empty without events."""
    reader = _SpanBuilder()
    for event in events:
        reader.read(event)
    return reader.done()


class _SpanBuilder:
    def __init__(self) -> None:
        self._spans: dict[str, RunSpan] = {}
        self._last: Event | None = None

    def read(self, event: Event) -> None:
        kind, data = str(event["type"]), event["data"]
        if self._last is None:
            self._open(event, RUN, "", "run", str(event["run"]), data)
        if kind in _BEGINNINGS:
            self._cut(f"attempt {event['attempt'] - 1}")
            self._open(event, _attempt_span_id(event), RUN, "attempt", _attempt_span_id(event), data)
        elif kind in ENDINGS:
            self._ended(event, kind.removeprefix("run."))
        elif kind == "step.started":
            self._open(event, _step_span_id(event), _attempt_span_id(event), "node", event["node"], data)
        elif kind == "step.completed":
            self._close(_step_span_id(event), event, "ok")
        elif kind == "tool.started":
            self._open(event, _call_span_id(event), _step_span_id(event), "tool", data["tool"], data)
        elif kind in _TOOL_ENDS:
            self._tool(event, "ok" if kind == "tool.completed" else kind.removeprefix("tool."))
        else:
            self._other(event, kind)
        self._last = event

    def done(self) -> list[RunSpan]:
        """What is still open at an ended attempt ends with it; a run that goes on stays open."""
        if self._last is not None and self._last["type"] in ENDINGS:
            self._spans[RUN].end = _event_time(self._last)
        return sorted(self._spans.values(), key=lambda s: (s.start, _DEPTH[s.kind]))

    def _other(self, event: Event, kind: str) -> None:
        data = event["data"]
        if kind == "model.completed":
            name = f"{_step_span_id(event)} model {event['seq']}"
            span = self._open(
                event, name, _step_span_id(event), "model", str(data.get("model", "model")), data
            )
            self._backdated(span, event)
        elif kind == "approval.requested":
            self._open(event, f"approval {data['id']}", RUN, "approval", str(data["id"]), data)
        elif kind == "approval.answered":
            self._close(f"approval {data['id']}", event, "ok")
        elif kind == "decision.made" and (step := self._spans.get(_step_span_id(event))):
            step.data |= {"reason": data.get("reason"), "decided_ms": data.get("ms")}

    def _tool(self, event: Event, status: str) -> None:
        data, name = event["data"], _call_span_id(event)
        span = self._spans.get(name)
        if span is None or span.end is not None:  # refused, or answered from the record: it never started
            span = self._open(event, name, _step_span_id(event), "tool", data["tool"], data)
            span.start = _event_time(event) - timedelta(milliseconds=data.get("ms") or 0)
        answer = str(data.get("status") or "ok")
        self._close(name, event, answer if data.get("error") and status == "ok" else status)

    def _backdated(self, span: RunSpan, event: Event) -> None:
        span.start, span.end = (
            _event_time(event) - timedelta(milliseconds=span.data.get("ms") or 0),
            _event_time(event),
        )

    def _ended(self, event: Event, how: str) -> None:
        self._close(_attempt_span_id(event), event, how)
        for span in self._spans.values():
            if span.end is None and span.attempt == event["attempt"] and span.kind not in ("run", "approval"):
                span.end, span.status = _event_time(event), "stopped"
        self._spans[RUN].status = how
        self._spans[RUN].data |= event["data"]

    def _cut(self, attempt: str) -> None:
        """An attempt that said no last word was killed: it and all in it ended at the last event."""
        span = self._spans.get(attempt)
        if span is None or span.end is not None or self._last is None:
            return
        for other in self._spans.values():
            if other.end is None and other.attempt == span.attempt and other.kind not in ("run", "approval"):
                other.end, other.status = _event_time(self._last), "killed"

    def _open(
        self, event: Event, name: str, parent: str, kind: Kind, title: str, data: Mapping[str, Any]
    ) -> RunSpan:
        span = RunSpan(
            id=name,
            parent=parent,
            kind=kind,
            name=title,
            start=_event_time(event),
            turn=event["turn"],
            attempt=event["attempt"],
            step=event["step"],
            data=dict(data),
        )
        self._spans[name] = span
        return span

    def _close(self, name: str, event: Event, status: str) -> None:
        span = self._spans.get(name)
        if span is not None:
            span.end, span.status = _event_time(event), status
            span.data |= event["data"]


_DEPTH: Mapping[Kind, int] = {"run": 0, "attempt": 1, "node": 2, "model": 3, "tool": 3, "approval": 3}


def _attempt_span_id(event: Event) -> str:
    return f"attempt {event['attempt']}"


def _step_span_id(event: Event) -> str:
    return f"attempt {event['attempt']} step {event['step']}"


def _call_span_id(event: Event) -> str:
    return f"{_step_span_id(event)} {event['data']['id']}"


def _event_time(event: Event) -> datetime:
    return datetime.fromisoformat(event["ts"])
