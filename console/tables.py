"""The screens of `list`, `show`, `log` and `evidence`: what is stored, as lines. Nothing here opens the store."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.processes import is_held, standing
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console import events, findings
from opsleuth.console import text as texts
from opsleuth.console.log_filters import Repeated
from opsleuth.console.screen import Column, Line, Part, Screen, Style, table
from opsleuth.console.times import age
from opsleuth.state.clock import stamp
from opsleuth.state.outcome import Status
from opsleuth.state.words import counted

_STATUS: Mapping[Status, Style] = {
    Status.RUNNING: "good",
    Status.WAITING: "warn",
    Status.PAUSED: "warn",
    Status.INTERRUPTED: "warn",
    Status.FAILED: "bad",
}
LAST_EVENTS = 20
"""Lines of a run's course that `show` ends with."""


@dataclass(frozen=True, slots=True)
class Shown:
    """All that `show` knows of a run. `pending` holds the ids of its open approvals."""

    run: RunRow
    report: Mapping[str, Any] | None
    course: Sequence[events.Event]
    left_out: int
    pending: Sequence[str] = ()


def runs(rows: Sequence[RunRow], screen: Screen, now: datetime, *, tree: bool = False) -> list[Line]:
    """The table of runs and, if the newest can go on, the command for that."""
    columns = (
        Column("RUN"),
        Column("STATUS"),
        Column("VERDICT", drop=1),
        Column("TURN", drop=2),
        Column(f"STARTED ({screen.times.name})", drop=3),
        Column("AGE", right=True, drop=4),
        Column("COST", right=True, drop=5),
        Column("QUESTION"),
    )
    ordered = _as_tree(rows) if tree else [(0, row) for row in rows]
    lines = table(screen, columns, [_run(row, depth, screen, now) for depth, row in ordered])
    resumable = [row for row in rows if row.resumable and not is_held(row)]
    if resumable:
        lines.append([Part(f"next: opsleuth resume {resumable[0].id}", "dim")])
    return lines


def _run(row: RunRow, depth: int, screen: Screen, now: datetime) -> list[Part | str]:
    status = standing(row)
    created = stamp(row.created)
    branch = f"{'  ' * (depth - 1)} └ " if depth else ""
    return [
        Part(f"{branch}{row.id}", "id"),
        Part(status, _STATUS.get(status, "")),
        row.verdict or "-",
        f"{row.turn} {row.node or ''}".strip(),
        screen.times.brief(created),
        age(created, now),
        f"${row.cost:.2f}" if row.cost else "-",
        f"{row.name}: {row.question}" if row.name else row.question,
    ]


def _as_tree(rows: Sequence[RunRow]) -> list[tuple[int, RunRow]]:
    known = {row.id for row in rows}
    children: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.parent in known and row.parent != row.id:
            children.setdefault(str(row.parent), []).append(row)
    ordered: list[tuple[int, RunRow]] = []
    waiting = [(0, row) for row in reversed(rows) if row.parent not in known or row.parent == row.id]
    while waiting:
        depth, row = waiting.pop()
        ordered.append((depth, row))
        waiting += [(depth + 1, child) for child in children.get(row.id, [])]
    return ordered


def show(shown: Shown, screen: Screen) -> list[Line]:
    """How a run stands: its facts, what it found, what it did last, and how to go on."""
    lines = [line for name, value in _facts(shown, screen) if value for line in _fact(name, value, screen)]
    if shown.course:
        lines.append([])
        if shown.left_out:
            lines.append(
                [
                    Part(
                        f"{counted(shown.left_out, 'earlier line')}: opsleuth show {shown.run.id} --full",
                        "dim",
                    )
                ]
            )
        lines += [events.line(event, screen) for event in shown.course]
    lines.append([])
    lines += [[Part(hint, "dim")] for hint in _hints(shown)]
    return lines


def _facts(shown: Shown, screen: Screen) -> Iterable[tuple[str, str]]:
    run, times = shown.run, screen.times
    status = standing(run)
    yield "run", run.id
    yield "name", run.name or ""
    yield "question", run.question
    yield "status", ", ".join(filter(None, (status, run.stop_reason, run.verdict)))
    if shown.pending:
        yield "waiting for", ", ".join(shown.pending)
    if run.parent:
        yield "fork of", f"{run.parent} {run.parent_checkpoint or ''}"
    yield "started", times.full(stamp(run.created))
    yield "changed", times.full(stamp(run.updated))
    if status is Status.RUNNING and run.pid:
        yield "process", f"{run.pid} on {run.host}"
    yield "turn", f"{run.turn} {run.node or ''}"
    yield "attempts", str(run.attempt) if run.attempt > 1 else ""
    yield "tokens", str(run.tokens) if run.tokens else ""
    yield "cost", f"${run.cost:.2f}" if run.cost else ""
    if shown.report and shown.report.get("answer"):
        yield "answer", str(shown.report["answer"])
    for section in findings.sections(shown.report, times) if shown.report else ():
        if section.title == "CAUSES":
            yield "causes", "; ".join(section.items)


def _fact(name: str, value: str, screen: Screen) -> Iterable[Line]:
    if screen.plain:
        yield [f"{name} {screen.clean(value)}"]
        return
    clean = screen.clean(value)
    first, *rest = texts.wrap(clean, max(20, screen.width - 12)) if screen.width else [clean]
    yield [Part(texts.pad(name, 12), "dim"), first]
    yield from ([" " * 12 + line] for line in rest)


def _hints(shown: Shown) -> Iterable[str]:
    run = shown.run
    if shown.report:
        yield f"report: opsleuth report {run.id}"
    if run.resumable and not is_held(run):
        yield f"next: opsleuth resume {run.id}"
    yield f"every event: opsleuth log {run.id}"


def log(rows: Iterable[events.Event], screen: Screen) -> Iterable[Line]:
    """One line for each event, in fixed columns, so that a long log needs no second pass."""
    for event in rows:
        turn, node = str(event.get("turn") or ""), str(event.get("node") or "")
        at = screen.times.clock(str(event.get("ts")))
        said = events.summary(event, screen.times)
        if screen.plain:
            facts = (
                f"event {event.get('seq')}",
                at,
                f"turn {turn}" if turn else "",
                node,
                str(event.get("type")),
                said,
            )
            yield [", ".join(fact for fact in facts if fact)]
            continue
        head = f"{event.get('seq'):>5}  {at}  {turn:>3} {screen.clean(node):<8} "
        kind = f"{screen.clean(event.get('type')):<19} "
        room = max(20, screen.width - len(head + kind)) if screen.width else None
        first, *rest = texts.wrap(screen.clean(said), room) if room else [said]
        yield [Part(head, "dim"), kind, first]
        yield from ([" " * len(head + kind) + piece] for piece in rest)


def repeated(found: Sequence[Repeated], screen: Screen) -> list[Line]:
    """Questions that were asked again: how often, in which turns, with which evidence."""
    columns = (
        Column("TIMES", right=True),
        Column("TOOL"),
        Column("TURNS", drop=2),
        Column("EVIDENCE", drop=3),
        Column("ARGUMENTS"),
    )
    cells: list[list[Part | str]] = []
    for one in found:
        kinds = ", other numbers" if one.drifts else ""
        turns = " ".join(dict.fromkeys(str(e.get("turn")) for e in one.events))
        cited = " ".join(dict.fromkeys(str(e["data"].get("evidence")) for e in one.events))
        args = events.arguments(one.events[0]["data"].get("args") or {})
        cells.append([str(len(one.events)), one.tool, turns, Part(cited, "id"), f"{args}{kinds}"])
    return table(screen, columns, cells)


def repeated_json(one: Repeated) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "tool": one.tool,
        "times": len(one.events),
        "drifts": one.drifts,
        "args": one.events[0]["data"].get("args") or {},
        "events": [e["seq"] for e in one.events],
    }


def evidence_list(rows: Sequence[EvidenceRow], screen: Screen) -> list[Line]:
    """All evidence of a run."""
    columns = (
        Column("ID"),
        Column("TOOL"),
        Column("STATUS", drop=3),
        Column("SOURCE", drop=2),
        Column(f"FETCHED ({screen.times.name})", drop=4),
        Column("BYTES", right=True, drop=5),
        Column("WHAT IT SAYS"),
    )
    cells: list[list[Part | str]] = [
        [Part(r.id, "id"), r.tool, r.status, r.source, screen.times.brief(r.fetched), str(r.size), r.headline]
        for r in rows
    ]
    return table(screen, columns, cells)


def evidence(row: EvidenceRow, record: Mapping[str, Any], screen: Screen) -> Iterable[Line]:
    """One piece of evidence: where it comes from, then its stored body, barred off as data."""
    facts = (
        ("evidence", row.id),
        ("tool", row.tool),
        ("arguments", events.arguments(row.arguments)),
        ("source", row.source),
        ("target", row.target or ""),
        ("query", row.query),
        ("status", row.status),
        ("says", row.headline),
        (
            "searched",
            f"{row.matched} of {counted(row.scanned, 'row matched', 'rows matched')}"
            if row.scanned is not None
            else "",
        ),
        ("fetched", screen.times.full(row.fetched)),
        ("sha256", row.sha256),
        ("stored", f"{counted(row.size, 'byte')}, {row.stored} compressed"),
        ("left out", f"{counted(row.left_out, 'character')} in the middle" if row.left_out else ""),
        ("redacted", counted(row.redactions, "secret") if row.redactions else ""),
    )
    for name, value in facts:
        if value:
            yield from _fact(name, value, screen)
    yield [Part("untrusted, as the source gave it:", "warn")]
    bar = "" if screen.plain else "│ "
    for line in json.dumps(record, indent=2, ensure_ascii=False).splitlines():
        for piece in _folded(line, screen, len(bar)):
            yield [Part(bar, "warn"), piece]


def _folded(line: str, screen: Screen, used: int) -> list[str]:
    """A long line goes on in the next one: evidence is shown complete."""
    clean = " ".join(texts.clean_lines(line, screen.encoding))
    if screen.width is None or texts.width(clean) + used <= screen.width:
        return [clean]
    indent = " " * (len(clean) - len(clean.lstrip()) + 2)
    first, *rest = texts.wrap(clean, max(20, screen.width - used - len(indent)))
    return [indent[2:] + first, *(indent + piece for piece in rest)]
