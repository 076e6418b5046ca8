"""One event of the trace as a line: for a terminal, for a pipe, spoken (`--plain`), or as JSON.

An event is a mapping as the store keeps it: `seq, ts, run, attempt, turn, node, step, type, data`. What a
type's `data` holds is read with defaults, so that an event of a newer version still has a line.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from opsleuth.console import terminal_text as texts
from opsleuth.console.screen import Line, LinePart, Screen, Style
from opsleuth.console.time_formats import TimeDisplay, format_elapsed
from opsleuth.state.conclusion_words import HELD, claim_label
from opsleuth.state.json_types import JSON
from opsleuth.state.plurals import format_count

Event = Mapping[str, Any]
Data = Mapping[str, Any]

LAST = frozenset(
    {
        "run.completed",
        "run.waiting",
        "run.paused",
        "run.failed",
        "run.interrupted",
        "run.canceled",
        "run.terminated",
    }
)
"""The types of which exactly one ends an attempt's stream."""

_FIRST = frozenset({"run.started", "run.resumed", "run.forked"})

_DETAILS = frozenset({"step.started", "step.completed", "tool.requested", "tool.started"})
"""What the live view leaves out unless it is asked to be verbose: another line tells the same."""

_WIDE = 100
"""Cells from which a line has room for a sparkline."""

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class EventSummary:
    """What a line says. `detail` gives way first on a narrow screen, then `result`."""

    subject: str = ""
    detail: str = ""
    evidence: str = ""
    result: str = ""
    spark: str = ""
    ms: float | None = None
    style: Style = ""


def write_json(stream: TextIO, document: JSON) -> None:
    """One JSON value as one line, flushed; control and bidi characters escaped, all of ASCII if need be."""
    ascii_only = (stream.encoding or "ascii").lower().replace("_", "-") not in ("utf-8", "utf8")
    stream.write(escape_json_text(json.dumps(document, ensure_ascii=ascii_only)) + "\n")
    stream.flush()


def escape_json_text(text: str) -> str:
    """JSON text that means the same and holds no character that acts on a terminal."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def is_shown_live(event: Event, *, verbose: bool = False) -> bool:
    """Whether the live view has a line for this event."""
    return verbose or event.get("type") not in _DETAILS


def format_event_line(event: Event, screen: Screen) -> Line:
    """The event as one line of the live view."""
    entry = summarize_event(event, screen.times)
    if screen.plain:
        return [_format_spoken_event(event, entry, screen)]
    return _format_event_columns(event, entry, screen)


def summarize_event(event: Event, times: TimeDisplay) -> EventSummary:
    """What the event's line says, whatever its type."""
    data = event.get("data") or {}
    if event.get("type") in _FIRST:
        return _summarize_run_start(data, times)
    return _SUMMARIES.get(str(event.get("type")), _summarize_unknown_event)(data)


def format_event_summary(event: Event, times: TimeDisplay) -> str:
    """The event's line without turn and node, for the log."""
    entry = summarize_event(event, times)
    seconds = format_elapsed(entry.ms) if entry.ms is not None else ""
    said = (entry.subject, entry.detail, entry.evidence, entry.result, entry.spark, seconds)
    return "  ".join(part for part in said if part)


def format_arguments(values: Mapping[str, Any]) -> str:
    """A call's arguments in a few words: `service=orders-api metric=latency_p95`."""
    return " ".join(
        f"{name}={_format_argument_value(value)}"
        for name, value in values.items()
        if value not in (None, "", [], {})
    )


def _format_argument_value(value: JSON) -> str:
    if isinstance(value, str):
        return f'"{value}"' if " " in value else value
    if isinstance(value, list):
        return "+".join(_format_argument_value(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _format_event_columns(event: Event, entry: EventSummary, screen: Screen) -> Line:
    head = f"{event.get('turn') or '':>2} {screen.clean(event.get('node') or 'run'):<8} "
    seconds = format_elapsed(entry.ms) if entry.ms is not None else ""
    if not entry.subject:
        said = "  ".join(part for part in (entry.detail, entry.result) if part)
        return [LinePart(head, "dim"), LinePart(said, entry.style)]
    subject = texts.pad_to_width(screen.clean(entry.subject), 19) + " "
    evidence = f"{entry.evidence:<4} " if entry.evidence else ""
    detail, result = screen.clean(entry.detail), _result_with_sparkline(entry, screen)
    if screen.width is None:
        return [
            LinePart(head, "dim"),
            subject,
            f"{detail}  ",
            LinePart(evidence, "id"),
            LinePart(result, entry.style),
            f"  {seconds}",
        ]
    room = screen.width - sum(map(texts.measure_width, (head, subject, evidence))) - 8
    detail, result = _fit_detail_and_result(detail, result, max(room, 12), screen)
    return [
        LinePart(head, "dim"),
        subject,
        detail,
        LinePart(evidence, "id"),
        LinePart(result, entry.style),
        f" {seconds:>6}",
    ]


def _fit_detail_and_result(detail: str, result: str, room: int, screen: Screen) -> tuple[str, str]:
    """Both texts padded so that together they fill `room` cells; the detail gets a third, more if it is free."""
    mark = screen.clean(texts.ELLIPSIS)
    wanted = min(texts.measure_width(result), room * 2 // 3)
    left = min(max(room // 3, room - wanted), texts.measure_width(detail) + 1, room) if detail else 0
    left = max(left, room // 3) if detail else 0
    shown = texts.pad_to_width(texts.cut_to_width(detail, left - 1, mark), left) if left else ""
    return shown, texts.pad_to_width(texts.cut_to_width(result, room - left, mark), room - left)


def _result_with_sparkline(entry: EventSummary, screen: Screen) -> str:
    spark = entry.spark if screen.width is None or screen.width >= _WIDE else ""
    return "  ".join(screen.clean(part) for part in (spark, entry.result) if part)


def _format_spoken_event(event: Event, entry: EventSummary, screen: Screen) -> str:
    turn = f"turn {event['turn']}" if event.get("turn") else ""
    subject = f"tool {entry.subject}" if str(event.get("type")).startswith("tool.") else entry.subject
    evidence = f"evidence {entry.evidence}" if entry.evidence else ""
    seconds = f"{entry.ms / 1000:.1f} seconds" if entry.ms is not None else ""
    said = (turn, event.get("node") or "run", subject, entry.detail, evidence, entry.result, seconds)
    return ", ".join(screen.clean(part) for part in said if part)


def _summarize_run_start(data: Data, times: TimeDisplay) -> EventSummary:
    window = data.get("window") or {}
    planner = (data.get("versions") or {}).get("model")
    facts = (
        f"window {times.day(window.get('from'))} {times.span(window.get('from'), window.get('to'))}"
        if window
        else "",
        f"planner {planner}" if planner else "",
        f"turn limit {data['limits'].get('turns')}" if data.get("limits") else "",
        "read-only" if data.get("read_only") else "",
        "REPLAY: nothing is executed" if data.get("replay") else "",
    )
    return EventSummary(detail="  ".join(filter(None, facts)))


def _summarize_decision(data: Data) -> EventSummary:
    ends = "concludes: " if data.get("concludes") else ""
    return EventSummary(detail=f"{ends}{data.get('reason', '')}")


def _summarize_plan(data: Data) -> EventSummary:
    steps = data.get("steps") or []
    active = [str(step.get("text")) for step in steps if step.get("status") == "active"]
    if active:
        return EventSummary(detail=f"next: {'; '.join(active)}")
    if any(step.get("status") == "done" for step in steps):
        return EventSummary(detail="plan done")
    return EventSummary(detail=format_count(len(steps), "step planned", "steps planned"))


def _summarize_hypothesis(data: Data) -> EventSummary:
    status = data.get("status")
    why = f" (not concluded: {data['reason']})" if data.get("reason") else ""
    word, style = _HYPOTHESIS.get(str(status), ("suspect", ""))
    cited = " ".join([*(data.get("for") or []), *(data.get("against") or [])])
    return EventSummary(
        detail=f"{word}: {data.get('text', '')}{why}", result=f"[{cited}]" if cited else "", style=style
    )


_HYPOTHESIS: Mapping[str, tuple[str, Style]] = {
    "supported": ("supported", "good"),
    "refuted": ("ruled out", "dim"),
    "open": ("suspect", ""),
    "not_concluded": ("left open", "dim"),
}


def _summarize_claim(data: Data) -> EventSummary:
    if gaps := data.get("gaps"):
        return EventSummary(detail=f"sent back: {'; '.join(map(str, gaps))}", style="warn")
    problems = "; ".join(map(str, data.get("problems") or []))
    cited = " ".join(map(str, data.get("evidence") or data.get("for") or []))
    style: Style = (
        "bad" if data.get("status") == "unsupported" else "good" if data.get("status") in HELD else ""
    )
    return EventSummary(
        detail=f"{claim_label(data)}: {data.get('text', '')}{f' [{cited}]' if cited else ''}",
        result=problems,
        style=style,
    )


def _summarize_tool_request(data: Data) -> EventSummary:
    return EventSummary(
        subject=str(data.get("tool", "")),
        detail=format_arguments(data.get("args") or {}),
        evidence=str(data.get("evidence") or ""),
        result=str(data.get("why") or ""),
    )


def _summarize_tool_result(data: Data) -> EventSummary:
    failed = data.get("error")
    text = failed.get("message") if isinstance(failed, dict) else failed
    headline = str(data.get("headline") or text or "")
    status = str(data.get("status") or "")
    return EventSummary(
        subject=str(data.get("tool", "")),
        detail=format_arguments(data.get("args") or {}),
        evidence=str(data.get("evidence") or ""),
        result=f"{status}: {headline}" if failed else headline,
        spark=texts.draw_sparkline(list(data.get("spark") or [])),
        ms=data.get("ms"),
        style="bad" if failed else "",
    )


def _summarize_refused_call(data: Data) -> EventSummary:
    called = _summarize_tool_result(data)
    return EventSummary(
        called.subject, called.detail, called.evidence, called.result, ms=called.ms, style="warn"
    )


def _summarize_model_call(data: Data) -> EventSummary:
    cost = f"  ${data['usd']}" if data.get("usd") else ""
    used = f"{data.get('in', 0)} tokens in, {data.get('out', 0)} out{cost}"
    return EventSummary(subject=str(data.get("model", "model")), result=used, ms=data.get("ms"), style="dim")


def _summarize_approval(data: Data) -> EventSummary:
    args = format_arguments(data.get("args") or {})
    what = " ".join(filter(None, (str(data.get("tool") or ""), args, str(data.get("decision") or ""))))
    risk = f"risk {data['risk']}" if data.get("risk") else ""
    return EventSummary(detail=f"approval {data.get('id')}: {what}", result=risk, style="warn")


def _summarize_approval_use(data: Data) -> EventSummary:
    what = data.get("reason") or f"{data.get('tool')} on {data.get('target') or 'nothing named'} begins"
    return EventSummary(detail=f"{data.get('id')}: {what}", style="warn")


def _summarize_effect_check(data: Data) -> EventSummary:
    passed = bool(data.get("passed"))
    word = "check passed" if passed else "CHECK FAILED"
    return EventSummary(
        subject=str(data.get("tool")),
        detail=f"{word}: {data.get('seen', '')}",
        style="good" if passed else "bad",
    )


def _summarize_warning_or_error(data: Data) -> EventSummary:
    text = data.get("message") or data.get("text") or ""
    hint = f" ({data['hint']})" if data.get("hint") else ""
    return EventSummary(detail=f"{data.get('code', 'note')}: {text}{hint}", style="warn")


def _summarize_step_start(_: Data) -> EventSummary:
    return EventSummary(detail="begins", style="dim")


def _summarize_step_end(data: Data) -> EventSummary:
    changed = ", ".join(map(str, data.get("changed") or []))
    return EventSummary(subject="ends", detail=changed, ms=data.get("ms"), style="dim")


def _summarize_run_end(data: Data) -> EventSummary:
    said = (data.get("status"), data.get("stop_reason"), data.get("verdict"))
    detail = data.get("stop_detail") or data.get("detail") or ""
    style: Style = "good" if data.get("exit_code") == 0 else "warn"
    return EventSummary(detail=", ".join(str(s) for s in said if s), result=str(detail), style=style)


def _summarize_unknown_event(data: Data) -> EventSummary:
    return EventSummary(detail=format_arguments(data))


_SUMMARIES: Mapping[str, Callable[[Data], EventSummary]] = {
    "decision.made": _summarize_decision,
    "plan.updated": _summarize_plan,
    "hypothesis.updated": _summarize_hypothesis,
    "claim.checked": _summarize_claim,
    "claim.verified": _summarize_claim,  # as earlier versions stored it
    "tool.requested": _summarize_tool_request,
    "tool.started": _summarize_tool_request,
    "tool.completed": _summarize_tool_result,
    "tool.canceled": _summarize_refused_call,
    "tool.denied": _summarize_refused_call,
    "model.completed": _summarize_model_call,
    "approval.requested": _summarize_approval,
    "approval.answered": _summarize_approval,
    "approval.used": _summarize_approval_use,
    "approval.stale": _summarize_approval_use,
    "effect.started": _summarize_approval_use,
    "effect.checked": _summarize_effect_check,
    "limit.near": _summarize_warning_or_error,
    "warning": _summarize_warning_or_error,
    "step.started": _summarize_step_start,
    "step.completed": _summarize_step_end,
    **dict.fromkeys(LAST, _summarize_run_end),
}
