"""What the stepper shows: plain functions from stored state to lines. Nothing here reads the store or runs anything."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.history import END, Point
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console import events
from opsleuth.console import text as texts
from opsleuth.console.screen import Column, Line, Part, Screen, table
from opsleuth.state.paths import MISSING, Change, differences, shown

LOOP = ("plan", "approve", "act", "observe", "verify", END)
_BRIEF = 6
"""Changes that a stop shows; `diff` shows all."""
_QUIET = ("budget.used", "pending", "schema_version")
"""What a stop does not show as changed: it is shown otherwise, or changes with every node."""


def loop(point: Point, screen: Screen) -> Line:
    """The loop with a star at the node that comes next."""
    arrow = screen.clean("─>")
    names = [f"{name}*" if name == point.next else name for name in LOOP]
    names[1] = names[1] if point.next == "approve" else f"[{names[1]}]"
    here = "the run is over" if point.next == END else f"before {point.next}, turn {point.turn}"
    return [
        f"  {f' {arrow} '.join(names[:4])} {arrow} plan ... {arrow} {f' {arrow} '.join(names[4:])}",
        Part(f"   * {here}", "dim"),
    ]


def pending(values: Mapping[str, Any], results: Mapping[str, str]) -> Iterable[Line]:
    """The calls of this turn; `results` says what came of those that are done, by call id."""
    for call in values.get("pending") or []:
        name = "c" + str(call["id"]).rpartition("c")[2]
        gate = f", {call['gate']}" if call["gate"] != "free" else ""
        done = f"   {results[call['id']]}" if call["id"] in results else ""
        yield [
            Part(f"  {name} ", "id"),
            f"{call['tool']} {events.arguments(call['arguments'])}",
            Part(f"   {call['risk']}{gate}{done}", "dim"),
        ]


def changed(before: Point | None, point: Point) -> Iterable[Line]:
    """What the last node changed, in a few lines."""
    if before is None:
        return
    found = [c for c in differences(before.values, point.values) if not c.path.startswith(_QUIET)]
    for change in found[:_BRIEF]:
        yield ["  changed: ", *_change(change, 60)]
    if len(found) > _BRIEF:
        yield [Part(f"  and {len(found) - _BRIEF} more: diff shows all", "dim")]


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Line]:
    """Every difference of two states."""
    found = differences(_by_call(before), _by_call(after))
    return [["  ", *_change(change, 400)] for change in found] or [["  no difference"]]


def _by_call(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pending calls by their short names, without what follows from the rest."""
    calls = {
        "c" + str(call["id"]).rpartition("c")[2]: {
            name: call[name] for name in ("tool", "arguments", "purpose")
        }
        for call in values.get("pending") or []
    }
    return {**values, "pending": calls} if "pending" in values else values


def _change(change: Change, most: int) -> Line:
    path, before, after = change
    if path == "observations" and isinstance(before, int) and isinstance(after, int) and after > before:
        return ["evidence ", Part("+" + " +".join(f"E{n}" for n in range(before + 1, after + 1)), "id")]
    return [Part(path, "id"), f" {_value(before, most)} -> {_value(after, most)}"]


def _value(value: Any, most: int) -> str:  # noqa: ANN401 - any JSON value
    return "nothing" if value is MISSING else shown(value, most)


def printed(path: str, value: Any, *, pretty: bool) -> Iterable[Line]:  # noqa: ANN401 - any JSON value
    """A value of the state: a line for each of its parts, or indented JSON."""
    if pretty or not isinstance(value, dict | list) or not value:
        text = json.dumps(value, ensure_ascii=False, indent=2 if pretty else None)
        yield from ([f"  {line}"] for line in text.splitlines())
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        label = item["id"] if isinstance(item, dict) and isinstance(item.get("id"), str) else name
        yield ["  ", Part(f"{path}.{label}".lstrip("."), "id"), f" {shown(item, 300)}"]


def history(points: Sequence[Point], view: Point, count: int, screen: Screen) -> list[Line]:
    """The last checkpoints, the one in view marked."""
    columns = (
        Column(""),
        Column("POINT"),
        Column(f"STORED ({screen.times.name})", drop=2),
        Column("TURN", right=True),
        Column("NEXT"),
        Column("CHANGED"),
    )
    rows: list[list[Part | str]] = []
    for point in points[-count:]:
        before = points[point.number - 1] if point.number else None
        names = [] if before is None else [c.path for c in differences(before.values, point.values)]
        told = dict.fromkeys(name.partition(".")[0] for name in names if not name.startswith("budget"))
        mark = ">" if point is view else ""
        row = (mark, Part(point.name, "id"), screen.times.clock(point.at), str(point.turn), point.next)
        rows.append([*row, " ".join(told)])
    return table(screen, columns, rows)


def tree(rows: Sequence[tuple[int, RunRow]], here: str, screen: Screen) -> Iterable[Line]:
    """The branches around a run: `(depth, run)` from the root down."""
    for depth, row in rows:
        branch = f"{'   ' * (depth - 1)}{screen.clean('└─')} " if depth else ""
        origin = f"  from {row.parent_checkpoint}" if row.parent else ""
        name = f"  {row.name}" if row.name else ""
        mark = Part("  < here", "good") if row.id == here else ""
        state = f"  {row.status} {row.verdict or ''}".rstrip()
        yield [f"  {branch}", Part(row.id, "id"), f"{origin}{state}, turn {row.turn}{name}", mark]


def breakpoints(points: Iterable[Any]) -> list[Line]:
    """The breakpoints that are set."""
    found: list[Line] = [[f"  {p.number}  {p.text}", Part("  once" if p.once else "", "dim")] for p in points]
    return found or [["  none: b NODE, b tool:NAME or b change:PATH sets one"]]


def words(rows: Iterable[Any]) -> list[Line]:
    """The help."""
    return [
        [Part(f"  {texts.pad(' '.join((', '.join(word.names), word.usage)), 46)}", "id"), f" {word.meaning}"]
        for word in rows
    ]
