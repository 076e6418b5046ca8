"""What the stepper shows: plain functions from stored state to lines. Nothing here reads the store or runs anything."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.history import END, CheckpointPoint
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console import event_lines
from opsleuth.console import terminal_text as texts
from opsleuth.console.screen import Line, LinePart, Screen, TableColumn, lay_out_table
from opsleuth.state.json_types import JSON
from opsleuth.state.state_paths import MISSING, StateDifference, find_differences, format_value_line

LOOP = ("plan", "approve", "act", "observe", "verify", END)
_BRIEF = 6
"""Changes that a stop shows; `diff` shows all."""
_QUIET = ("budget.used", "pending", "schema_version")
"""Paths that a stop does not list as changed: shown elsewhere, or changed by every node."""


def render_loop(point: CheckpointPoint, screen: Screen) -> Line:
    """The loop with a star at the node that comes next."""
    arrow = screen.clean("─>")
    names = [f"{name}*" if name == point.next else name for name in LOOP]
    names[1] = names[1] if point.next == "approve" else f"[{names[1]}]"
    here = "the run is over" if point.next == END else f"before {point.next}, turn {point.turn}"
    return [
        f"  {f' {arrow} '.join(names[:4])} {arrow} plan ... {arrow} {f' {arrow} '.join(names[4:])}",
        LinePart(f"   * {here}", "dim"),
    ]


def render_pending_calls(values: Mapping[str, Any], results: Mapping[str, str]) -> Iterable[Line]:
    """The calls of this turn; `results` holds the result of those that are done, by call id."""
    for call in values.get("pending") or []:
        name = "c" + str(call["id"]).rpartition("c")[2]
        gate = f", {call['gate']}" if call["gate"] != "free" else ""
        done = f"   {results[call['id']]}" if call["id"] in results else ""
        yield [
            LinePart(f"  {name} ", "id"),
            f"{call['tool']} {event_lines.format_arguments(call['arguments'])}",
            LinePart(f"   {call['risk']}{gate}{done}", "dim"),
        ]


def render_last_changes(before: CheckpointPoint | None, point: CheckpointPoint) -> Iterable[Line]:
    """What the last node changed, in a few lines."""
    if before is None:
        return
    found = [c for c in find_differences(before.values, point.values) if not c.path.startswith(_QUIET)]
    for change in found[:_BRIEF]:
        yield ["  changed: ", *_render_change(change, 60)]
    if len(found) > _BRIEF:
        yield [LinePart(f"  and {len(found) - _BRIEF} more: diff shows all", "dim")]


def render_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Line]:
    """Every difference of two states."""
    found = find_differences(_key_calls_by_name(before), _key_calls_by_name(after))
    return [["  ", *_render_change(change, 400)] for change in found] or [["  no difference"]]


def _key_calls_by_name(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pending calls by their short names, without what follows from the rest."""
    calls = {
        "c" + str(call["id"]).rpartition("c")[2]: {
            name: call[name] for name in ("tool", "arguments", "purpose")
        }
        for call in values.get("pending") or []
    }
    return {**values, "pending": calls} if "pending" in values else values


def _render_change(change: StateDifference, most: int) -> Line:
    path, before, after = change
    if path == "observations" and isinstance(before, int) and isinstance(after, int) and after > before:
        return ["evidence ", LinePart("+" + " +".join(f"E{n}" for n in range(before + 1, after + 1)), "id")]
    return [
        LinePart(path, "id"),
        f" {_format_changed_value(before, most)} -> {_format_changed_value(after, most)}",
    ]


def _format_changed_value(value: JSON, most: int) -> str:
    return "nothing" if value is MISSING else format_value_line(value, most)


def render_value(path: str, value: JSON, *, pretty: bool) -> Iterable[Line]:
    """A value of the state: a line for each of its parts, or indented JSON."""
    if pretty or not isinstance(value, dict | list) or not value:
        text = json.dumps(value, ensure_ascii=False, indent=2 if pretty else None)
        yield from ([f"  {line}"] for line in text.splitlines())
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        label = item["id"] if isinstance(item, dict) and isinstance(item.get("id"), str) else name
        yield ["  ", LinePart(f"{path}.{label}".lstrip("."), "id"), f" {format_value_line(item, 300)}"]


def render_history(
    points: Sequence[CheckpointPoint], view: CheckpointPoint, count: int, screen: Screen
) -> list[Line]:
    """The last checkpoints, the one in view marked."""
    columns = (
        TableColumn(""),
        TableColumn("POINT"),
        TableColumn(f"STORED ({screen.times.name})", drop=2),
        TableColumn("TURN", right=True),
        TableColumn("NEXT"),
        TableColumn("CHANGED"),
    )
    rows: list[list[LinePart | str]] = []
    for point in points[-count:]:
        before = points[point.number - 1] if point.number else None
        names = [] if before is None else [c.path for c in find_differences(before.values, point.values)]
        told = dict.fromkeys(name.partition(".")[0] for name in names if not name.startswith("budget"))
        mark = ">" if point is view else ""
        row = (mark, LinePart(point.name, "id"), screen.times.clock(point.at), str(point.turn), point.next)
        rows.append([*row, " ".join(told)])
    return lay_out_table(screen, columns, rows)


def render_branch_tree(rows: Sequence[tuple[int, RunRow]], here: str, screen: Screen) -> Iterable[Line]:
    """The branches around a run: `(depth, run)` from the root down."""
    for depth, row in rows:
        branch = f"{'   ' * (depth - 1)}{screen.clean('└─')} " if depth else ""
        origin = f"  from {row.parent_checkpoint}" if row.parent else ""
        name = f"  {row.name}" if row.name else ""
        mark = LinePart("  < here", "good") if row.id == here else ""
        state = f"  {row.status} {row.verdict or ''}".rstrip()
        yield [f"  {branch}", LinePart(row.id, "id"), f"{origin}{state}, turn {row.turn}{name}", mark]


def render_breakpoints(points: Iterable[Any]) -> list[Line]:
    """The breakpoints that are set."""
    found: list[Line] = [
        [f"  {p.number}  {p.text}", LinePart("  once" if p.once else "", "dim")] for p in points
    ]
    return found or [["  none: b NODE, b tool:NAME or b change:PATH sets one"]]


def render_help(rows: Iterable[Any]) -> list[Line]:
    """The help."""
    return [
        [
            LinePart(f"  {texts.pad_to_width(' '.join((', '.join(word.names), word.usage)), 46)}", "id"),
            f" {word.meaning}",
        ]
        for word in rows
    ]
