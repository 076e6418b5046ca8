"""One event of the trace as a line: for a terminal, for a pipe, spoken (`--plain`), or as JSON.

An event is a mapping as the store keeps it: `seq, ts, run, attempt, turn, node, step, type, data`. What a
type's `data` holds is read with defaults, so that an event of a newer version still has a line.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from opsleuth.console import text as texts
from opsleuth.console.screen import Line, Part, Screen, Style
from opsleuth.console.times import Display, took
from opsleuth.state.words import counted

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

_DETAILS = frozenset({"step.started", "step.completed", "tool.requested", "tool.started", "evidence.added"})
"""What the live view leaves out unless it is asked to be verbose: another line tells the same."""

_WIDE = 100
"""Cells from which a line has room for a sparkline."""

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a line says. `detail` gives way first on a narrow screen, then `result`."""

    subject: str = ""
    detail: str = ""
    evidence: str = ""
    result: str = ""
    spark: str = ""
    ms: float | None = None
    style: Style = ""


def write_json(stream: TextIO, document: Any) -> None:  # noqa: ANN401 - any JSON value
    """One JSON value as one line, flushed; control and bidi characters escaped, all of ASCII if need be."""
    ascii_only = (stream.encoding or "ascii").lower().replace("_", "-") not in ("utf-8", "utf8")
    stream.write(escaped(json.dumps(document, ensure_ascii=ascii_only)) + "\n")
    stream.flush()


def escaped(text: str) -> str:
    """JSON text that means the same and holds no character that acts on a terminal."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_live(event: Event, *, verbose: bool = False) -> bool:
    """Whether the live view has a line for this event."""
    return verbose or event.get("type") not in _DETAILS


def line(event: Event, screen: Screen) -> Line:
    """The event as one line of the live view."""
    entry = entry_of(event, screen.times)
    if screen.plain:
        return [_spoken(event, entry, screen)]
    return _aligned(event, entry, screen)


def entry_of(event: Event, times: Display) -> Entry:
    """What the event's line says, whatever its type."""
    data = event.get("data") or {}
    if event.get("type") in _FIRST:
        return _began(data, times)
    return _ENTRIES.get(str(event.get("type")), _any)(data)


def summary(event: Event, times: Display) -> str:
    """The event's line without turn and node, for the log."""
    entry = entry_of(event, times)
    seconds = took(entry.ms) if entry.ms is not None else ""
    said = (entry.subject, entry.detail, entry.evidence, entry.result, entry.spark, seconds)
    return "  ".join(part for part in said if part)


def arguments(values: Mapping[str, Any]) -> str:
    """A call's arguments in a few words: `service=orders-api metric=latency_p95`."""
    return " ".join(
        f"{name}={_short(value)}" for name, value in values.items() if value not in (None, "", [], {})
    )


def _short(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return f'"{value}"' if " " in value else value
    if isinstance(value, list):
        return "+".join(_short(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _aligned(event: Event, entry: Entry, screen: Screen) -> Line:
    head = f"{event.get('turn') or '':>2} {screen.clean(event.get('node') or 'run'):<8} "
    seconds = took(entry.ms) if entry.ms is not None else ""
    if not entry.subject:
        said = "  ".join(part for part in (entry.detail, entry.result) if part)
        return [Part(head, "dim"), Part(said, entry.style)]
    subject = texts.pad(screen.clean(entry.subject), 19) + " "
    evidence = f"{entry.evidence:<4} " if entry.evidence else ""
    detail, result = screen.clean(entry.detail), _with_spark(entry, screen)
    if screen.width is None:
        return [
            Part(head, "dim"),
            subject,
            f"{detail}  ",
            Part(evidence, "id"),
            Part(result, entry.style),
            f"  {seconds}",
        ]
    room = screen.width - sum(map(texts.width, (head, subject, evidence))) - 8
    detail, result = _share(detail, result, max(room, 12), screen)
    return [
        Part(head, "dim"),
        subject,
        detail,
        Part(evidence, "id"),
        Part(result, entry.style),
        f" {seconds:>6}",
    ]


def _share(detail: str, result: str, room: int, screen: Screen) -> tuple[str, str]:
    """Both texts padded so that together they fill `room` cells; the detail gets a third, more if it is free."""
    mark = screen.clean(texts.ELLIPSIS)
    wanted = min(texts.width(result), room * 2 // 3)
    left = min(max(room // 3, room - wanted), texts.width(detail) + 1, room) if detail else 0
    left = max(left, room // 3) if detail else 0
    shown = texts.pad(texts.cut(detail, left - 1, mark), left) if left else ""
    return shown, texts.pad(texts.cut(result, room - left, mark), room - left)


def _with_spark(entry: Entry, screen: Screen) -> str:
    spark = entry.spark if screen.width is None or screen.width >= _WIDE else ""
    return "  ".join(screen.clean(part) for part in (spark, entry.result) if part)


def _spoken(event: Event, entry: Entry, screen: Screen) -> str:
    turn = f"turn {event['turn']}" if event.get("turn") else ""
    subject = f"tool {entry.subject}" if str(event.get("type")).startswith("tool.") else entry.subject
    evidence = f"evidence {entry.evidence}" if entry.evidence else ""
    seconds = f"{entry.ms / 1000:.1f} seconds" if entry.ms is not None else ""
    said = (turn, event.get("node") or "run", subject, entry.detail, evidence, entry.result, seconds)
    return ", ".join(screen.clean(part) for part in said if part)


def _began(data: Data, times: Display) -> Entry:
    window = data.get("window") or {}
    planner = (data.get("versions") or {}).get("model")
    facts = (
        f"window {times.day(window.get('from'))} {times.span(window.get('from'), window.get('to'))}"
        if window
        else "",
        f"planner {planner}" if planner else "",
        f"turn limit {data['limits'].get('turns')}" if data.get("limits") else "",
        "read-only" if data.get("read_only") else "",
    )
    return Entry(detail="  ".join(filter(None, facts)))


def _decision(data: Data) -> Entry:
    ends = "concludes: " if data.get("concludes") else ""
    return Entry(detail=f"{ends}{data.get('reason', '')}")


def _plan(data: Data) -> Entry:
    steps = data.get("steps") or []
    done = [str(step.get("id")) for step in steps if step.get("status") == "done"]
    active = [f"{step.get('id')} {step.get('text')}" for step in steps if step.get("status") == "active"]
    said = (f"{', '.join(done)} done" if done else "", f"next {'; '.join(active)}" if active else "")
    return Entry(detail="; ".join(filter(None, said)) or counted(len(steps), "step planned", "steps planned"))


def _hypothesis(data: Data) -> Entry:
    status = data.get("status")
    why = f" (not concluded: {data['reason']})" if data.get("reason") else ""
    mark, style = _HYPOTHESIS.get(str(status), ("?", ""))
    cited = [f"+{e}" for e in data.get("for") or []] + [f"-{e}" for e in data.get("against") or []]
    return Entry(
        detail=f"{data.get('id')} {mark} {data.get('text', '')}{why}", result=" ".join(cited), style=style
    )


_HYPOTHESIS: Mapping[str, tuple[str, Style]] = {
    "supported": ("+", "good"),
    "refuted": ("-", "dim"),
    "open": ("?", ""),
    "not_concluded": ("~", "dim"),
}


def _claim(data: Data) -> Entry:
    if gaps := data.get("gaps"):
        return Entry(detail=f"sent back: {'; '.join(map(str, gaps))}", style="warn")
    problems = "; ".join(map(str, data.get("problems") or []))
    cited = " ".join(map(str, data.get("evidence") or data.get("for") or []))
    style: Style = (
        "bad" if data.get("status") == "unsupported" else "good" if data.get("status") == "verified" else ""
    )
    return Entry(
        detail=f"{data.get('id')} {data.get('status', 'draft')}: {data.get('text', '')}{f' [{cited}]' if cited else ''}",
        result=problems,
        style=style,
    )


def _asked(data: Data) -> Entry:
    return Entry(
        subject=str(data.get("tool", "")),
        detail=arguments(data.get("args") or {}),
        evidence=str(data.get("evidence") or ""),
        result=str(data.get("why") or ""),
    )


def _called(data: Data) -> Entry:
    failed = data.get("error")
    text = failed.get("message") if isinstance(failed, dict) else failed
    headline = str(data.get("headline") or text or "")
    status = str(data.get("status") or "")
    return Entry(
        subject=str(data.get("tool", "")),
        detail=arguments(data.get("args") or {}),
        evidence=str(data.get("evidence") or ""),
        result=f"{status}: {headline}" if failed else headline,
        spark=texts.sparkline(list(data.get("spark") or [])),
        ms=data.get("ms"),
        style="bad" if failed else "",
    )


def _refused(data: Data) -> Entry:
    called = _called(data)
    return Entry(called.subject, called.detail, called.evidence, called.result, ms=called.ms, style="warn")


def _model(data: Data) -> Entry:
    cost = f"  ${data['usd']}" if data.get("usd") else ""
    used = f"{data.get('in', 0)} tokens in, {data.get('out', 0)} out{cost}"
    return Entry(subject=str(data.get("model", "model")), result=used, ms=data.get("ms"), style="dim")


def _approval(data: Data) -> Entry:
    args = arguments(data.get("args") or {})
    what = " ".join(filter(None, (str(data.get("tool") or ""), args, str(data.get("decision") or ""))))
    risk = f"risk {data['risk']}" if data.get("risk") else ""
    return Entry(detail=f"approval {data.get('id')}: {what}", result=risk, style="warn")


def _used(data: Data) -> Entry:
    what = data.get("reason") or f"{data.get('tool')} on {data.get('target') or 'nothing named'} begins"
    return Entry(detail=f"{data.get('id')}: {what}", style="warn")


def _checked(data: Data) -> Entry:
    passed = bool(data.get("passed"))
    word = "check passed" if passed else "CHECK FAILED"
    return Entry(
        subject=str(data.get("tool")),
        detail=f"{word}: {data.get('seen', '')}",
        style="good" if passed else "bad",
    )


def _message(data: Data) -> Entry:
    text = data.get("message") or data.get("text") or ""
    hint = f" ({data['hint']})" if data.get("hint") else ""
    return Entry(detail=f"{data.get('code', 'note')}: {text}{hint}", style="warn")


def _begins(_: Data) -> Entry:
    return Entry(detail="begins", style="dim")


def _ends(data: Data) -> Entry:
    changed = ", ".join(map(str, data.get("changed") or []))
    return Entry(subject="ends", detail=changed, ms=data.get("ms"), style="dim")


def _end(data: Data) -> Entry:
    said = (data.get("status"), data.get("stop_reason"), data.get("verdict"))
    detail = data.get("stop_detail") or data.get("detail") or ""
    style: Style = "good" if data.get("exit_code") == 0 else "warn"
    return Entry(detail=", ".join(str(s) for s in said if s), result=str(detail), style=style)


def _any(data: Data) -> Entry:
    return Entry(detail=arguments(data))


_ENTRIES: Mapping[str, Callable[[Data], Entry]] = {
    "decision.made": _decision,
    "plan.updated": _plan,
    "hypothesis.updated": _hypothesis,
    "claim.added": _claim,
    "claim.verified": _claim,
    "tool.requested": _asked,
    "tool.started": _asked,
    "tool.completed": _called,
    "tool.canceled": _refused,
    "tool.denied": _refused,
    "model.completed": _model,
    "approval.requested": _approval,
    "approval.answered": _approval,
    "approval.used": _used,
    "approval.stale": _used,
    "effect.started": _used,
    "effect.checked": _checked,
    "limit.near": _message,
    "warning": _message,
    "error": _message,
    "step.started": _begins,
    "step.completed": _ends,
    **dict.fromkeys(LAST, _end),
}
