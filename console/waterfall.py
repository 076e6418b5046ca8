"""A run's trace as a waterfall: every node, model call and tool call where it lies in time, and how long it took.

The axis is active time: what lies between two attempts is left out of it and told in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from opsleuth.checkpoints.trace.spans import RUN, RunSpan
from opsleuth.console import terminal_text as texts
from opsleuth.console.screen import Line, LinePart, Screen, Style
from opsleuth.console.time_formats import format_elapsed

NAME, LEAST_BAR = 30, 12
"""Cells of the column of names, and of the narrowest bar."""

_BLOCK = "█"
_DEPTH = {"attempt": 0, "approval": 0, "node": 0, "model": 1, "tool": 1}
_STYLE: Mapping[str, Style] = {
    "node": "dim",
    "model": "id",
    "tool": "good",
    "attempt": "title",
    "approval": "warn",
}


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One line of the waterfall. `start` and `ms` in milliseconds of active time; `share` says what it is of all."""

    span: RunSpan
    depth: int
    start: float
    ms: int
    detail: str


def list_waterfall_rows(spans: Sequence[RunSpan]) -> list[WaterfallRow]:
    """The waterfall's lines; an attempt has a line of its own only where there are several."""
    axis = _ActiveTimeAxis(spans)
    several = sum(span.kind == "attempt" for span in spans) > 1
    return [
        WaterfallRow(span, _DEPTH[span.kind], axis.at(span.start), span.ms, _describe_span(span))
        for span in spans
        if span.kind in _DEPTH and (several or span.kind != "attempt")
    ]


def render_waterfall(spans: Sequence[RunSpan], trace: str, screen: Screen) -> Iterable[Line]:
    """The whole screen: a head, one line for each span, and where the time went."""
    run = next(span for span in spans if span.id == RUN)
    drawn = list_waterfall_rows(spans)
    length = max((row.start + row.ms for row in drawn), default=0.0)
    attempts = sum(span.kind == "attempt" for span in spans)
    facts = (f"run {run.name}", f"trace {trace}", f"{attempts} attempts" if attempts > 1 else "", run.status)
    yield [LinePart("  ".join(fact for fact in facts if fact), "title")]
    for row in drawn:
        yield [_format_spoken_row(row)] if screen.plain else _render_row(row, length, screen)
    yield []
    yield from ([LinePart(text, "dim")] for text in _format_totals(spans, length))


class _ActiveTimeAxis:
    """Active time: the stretches of the attempts, one by one."""

    def __init__(self, spans: Sequence[RunSpan]) -> None:
        self._pieces: list[tuple[datetime, float]] = []
        offset = 0.0
        for span in spans:
            if span.kind == "attempt":
                self._pieces.append((span.start, offset))
                offset += span.ms

    def at(self, moment: datetime) -> float:
        before = [(start, offset) for start, offset in self._pieces if start <= moment]
        start, offset = before[-1] if before else (moment, 0.0)
        return offset + (moment - start) / timedelta(milliseconds=1)


def _render_row(row: WaterfallRow, length: float, screen: Screen) -> Line:
    name = texts.pad_to_width(
        "  " * row.depth + texts.cut_to_width(screen.clean(row.span.name), NAME - 3), NAME
    )
    time = (
        f"{_format_milliseconds(row.start):>8} {_format_milliseconds(row.ms) if row.span.end else 'runs':>8} "
    )
    head = f"{row.span.turn or '':>3} "
    room = (screen.width or 120) - len(head) - NAME - len(time)
    bar = max(LEAST_BAR, room // 2)
    left, cells = _locate_bar(row, length, bar)
    style: Style = _STYLE[row.span.kind] if row.span.status in ("ok", "completed") else "bad"
    drawing = texts.pad_to_width(" " * left + _BLOCK * cells, bar) + " "
    return [
        LinePart(head, "dim"),
        name,
        LinePart(time, "dim"),
        LinePart(drawing, style),
        screen.clean(row.detail),
    ]


def _format_milliseconds(ms: float) -> str:
    return format_elapsed(ms) if ms >= 1000 else f"{ms:.0f} ms"


def _locate_bar(row: WaterfallRow, length: float, bar: int) -> tuple[int, int]:
    """Where the bar begins and how many cells it has: at least one, never beyond the axis."""
    if not length:
        return 0, 1
    left = min(bar - 1, int(bar * row.start / length))
    return left, max(1, min(bar - left, round(bar * row.ms / length)))


def _format_spoken_row(row: WaterfallRow) -> str:
    turn = f"turn {row.span.turn}" if row.span.turn else ""
    kind = "" if row.span.kind == "node" else row.span.kind
    lasted = f"took {_format_milliseconds(row.ms)}" if row.span.end else "still running"
    said = (
        turn,
        f"{kind} {row.span.name}".strip(),
        f"began at {_format_milliseconds(row.start)}",
        lasted,
        row.detail,
    )
    return ", ".join(part for part in said if part)


def _describe_span(span: RunSpan) -> str:
    data, status = span.data, span.status if span.status not in ("ok", "completed") else ""
    if span.kind == "tool":
        return "  ".join(
            filter(None, (status, str(data.get("evidence") or ""), str(data.get("headline") or "")))
        )
    if span.kind == "model":
        cost = f"${data['usd']}" if data.get("usd") not in (None, "", "0") else ""
        return "  ".join(filter(None, (f"{data.get('in', 0)} in, {data.get('out', 0)} out", cost)))
    if span.kind == "attempt":
        return status or "ended"
    return "  ".join(filter(None, (status, str(data.get("reason") or ""))))


def _format_totals(spans: Sequence[RunSpan], length: float) -> Iterable[str]:
    """Where the time went: parallel calls count each, so that the parts can be more than the whole."""
    by_kind: dict[str, int] = {}
    for span in spans:
        by_kind[span.kind] = by_kind.get(span.kind, 0) + span.ms
    parts = [f"{name} {_format_milliseconds(by_kind[kind])}" for kind, name in _NAMES if by_kind.get(kind)]
    yield f"{_format_milliseconds(length)} of active time: {', '.join(parts)}"
    slow = sorted((s for s in spans if s.kind in ("tool", "model")), key=lambda s: -s.ms)[:3]
    if slow:
        yield "slowest: " + ", ".join(f"{s.name} {_format_milliseconds(s.ms)} (turn {s.turn})" for s in slow)


_NAMES = (("model", "models"), ("tool", "tools"), ("approval", "waiting for people"))


def waterfall_to_json(spans: Sequence[RunSpan]) -> list[dict[str, Any]]:
    """The waterfall's lines as JSON: what a drawing of another kind needs."""
    return [
        {
            "id": row.span.id,
            "parent": row.span.parent,
            "kind": row.span.kind,
            "name": row.span.name,
            "turn": row.span.turn,
            "attempt": row.span.attempt,
            "start_ms": round(row.start),
            "ms": row.ms,
            "status": row.span.status,
            "detail": row.detail,
        }
        for row in list_waterfall_rows(spans)
    ]
