"""The screens of `list`, `show`, `log` and `evidence`: what is stored, as lines. Nothing here opens the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.processes import is_held, status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console import event_lines, report_content
from opsleuth.console import terminal_text as texts
from opsleuth.console.log_filters import RepeatedCall
from opsleuth.console.record_lines import render_record_lines
from opsleuth.console.row_json import is_replay
from opsleuth.console.screen import Line, LinePart, Screen, Style, TableColumn, lay_out_table
from opsleuth.console.time_formats import format_age
from opsleuth.state.clock import format_timestamp
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import Status

_STATUS: Mapping[Status, Style] = {
    Status.RUNNING: "good",
    Status.WAITING: "warn",
    Status.PAUSED: "warn",
    Status.INTERRUPTED: "warn",
    Status.FAILED: "bad",
}
LAST_EVENTS = 20
"""Number of events that `show` ends with."""


@dataclass(frozen=True, slots=True)
class RunOverview:
    """All that `show` knows of a run.

    `pending` holds the ids of its open approvals, `questions` what was asked about it since, `judged` a person's word on it.
    """

    run: RunRow
    report: Mapping[str, Any] | None
    course: Sequence[event_lines.Event]
    left_out: int
    pending: Sequence[str] = ()
    questions: Sequence["AskedQuestion"] = ()
    judged: str = ""


class AskedQuestion(NamedTuple):
    """A question on a run, the run that answers it, and the answer as far as there is one."""

    run: str
    question: str
    answer: str


def render_runs_table(
    rows: Sequence[RunRow], screen: Screen, now: datetime, *, tree: bool = False
) -> list[Line]:
    """The table of runs and, if the newest can go on, the command for that."""
    columns = (
        TableColumn("RUN"),
        TableColumn("STATUS"),
        TableColumn("VERDICT", drop=1),
        TableColumn("TURN", drop=2),
        TableColumn(f"STARTED ({screen.times.name})", drop=3),
        TableColumn("AGE", right=True, drop=4),
        TableColumn("COST", right=True, drop=5),
        TableColumn("QUESTION"),
    )
    ordered = _order_as_tree(rows) if tree else [(0, row) for row in rows]
    lines = lay_out_table(
        screen, columns, [_render_run_row(row, depth, screen, now) for depth, row in ordered]
    )
    resumable = [row for row in rows if row.resumable and not is_held(row)]
    if resumable:
        lines.append([LinePart(f"next: opsleuth resume {resumable[0].id}", "dim")])
    return lines


def _render_run_row(row: RunRow, depth: int, screen: Screen, now: datetime) -> list[LinePart | str]:
    status = status_to_show(row)
    created = format_timestamp(row.created)
    branch = f"{'  ' * (depth - 1)} └ " if depth else ""
    return [
        LinePart(f"{branch}{row.id}", "id"),
        LinePart(status, _STATUS.get(status, "")),
        row.verdict or "-",
        f"{row.turn} {row.node or ''}".strip(),
        screen.times.brief(created),
        format_age(created, now),
        f"${row.cost:.2f}" if row.cost else "-",
        f"{'[replay] ' if is_replay(row) else ''}{f'{row.name}: ' if row.name else ''}{row.question}",
    ]


def _order_as_tree(rows: Sequence[RunRow]) -> list[tuple[int, RunRow]]:
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


def render_run_overview(shown: RunOverview, screen: Screen) -> list[Line]:
    """The status of a run: its facts, what it found, what it did last, and how to go on."""
    lines = [
        line
        for name, value in _list_run_facts(shown, screen)
        if value
        for line in _render_fact(name, value, screen)
    ]
    if shown.course:
        lines.append([])
        if shown.left_out:
            lines.append(
                [
                    LinePart(
                        f"{format_count(shown.left_out, 'earlier line')}: opsleuth show {shown.run.id} --full",
                        "dim",
                    )
                ]
            )
        lines += [event_lines.format_event_line(event, screen) for event in shown.course]
    lines.append([])
    lines += [[LinePart(hint, "dim")] for hint in _list_hints(shown)]
    return lines


def _list_run_facts(shown: RunOverview, screen: Screen) -> Iterable[tuple[str, str]]:
    run, times = shown.run, screen.times
    status = status_to_show(run)
    yield "run", run.id
    yield "name", run.name or ""
    yield "question", run.question
    yield "replay", "of a recording: nothing was executed" if is_replay(run) else ""
    yield "status", ", ".join(filter(None, (status, run.stop_reason, run.verdict)))
    if shown.pending:
        yield "waiting for", ", ".join(shown.pending)
    if run.parent:
        yield "fork of", f"{run.parent} {run.parent_checkpoint or ''}"
    yield "started", times.full(format_timestamp(run.created))
    yield "changed", times.full(format_timestamp(run.updated))
    if status is Status.RUNNING and run.pid:
        yield "process", f"{run.pid} on {run.host}"
    yield "turn", f"{run.turn} {run.node or ''}"
    yield "attempts", str(run.attempt) if run.attempt > 1 else ""
    yield "tokens", str(run.tokens) if run.tokens else ""
    yield "cost", f"${run.cost:.2f}" if run.cost else ""
    if shown.report and shown.report.get("answer"):
        yield "answer", str(shown.report["answer"])
    for section in report_content.list_report_sections(shown.report, times) if shown.report else ():
        if section.title == "CAUSES":
            yield "causes", "; ".join(section.items)
    yield "judged", shown.judged
    for asked in shown.questions:
        answer = asked.answer.partition("\n")[0] or f"not answered yet: opsleuth resume {asked.run}"
        yield "asked", f"{asked.question} {answer} (opsleuth report {asked.run})"


def _render_fact(name: str, value: str, screen: Screen) -> Iterable[Line]:
    if screen.plain:
        yield [f"{name} {screen.clean(value)}"]
        return
    clean = screen.clean(value)
    first, *rest = texts.wrap_to_width(clean, max(20, screen.width - 12)) if screen.width else [clean]
    yield [LinePart(texts.pad_to_width(name, 12), "dim"), first]
    yield from ([" " * 12 + line] for line in rest)


def _list_hints(shown: RunOverview) -> Iterable[str]:
    run = shown.run
    if shown.report:
        yield f"report: opsleuth report {run.id}"
    if run.resumable and not is_held(run):
        yield f"next: opsleuth resume {run.id}"
    yield f"every event: opsleuth log {run.id}"


def render_log_lines(rows: Iterable[event_lines.Event], screen: Screen) -> Iterable[Line]:
    """One line for each event, in fixed columns, so that a long log needs no second pass."""
    for event in rows:
        turn, node = str(event.get("turn") or ""), str(event.get("node") or "")
        at = screen.times.clock(str(event.get("ts")))
        said = event_lines.format_event_summary(event, screen.times)
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
        first, *rest = texts.wrap_to_width(screen.clean(said), room) if room else [said]
        yield [LinePart(head, "dim"), kind, first]
        yield from ([" " * len(head + kind) + piece] for piece in rest)


def render_repeated_calls(found: Sequence[RepeatedCall], screen: Screen) -> list[Line]:
    """Questions that were asked again: how often, in which turns, with which evidence."""
    columns = (
        TableColumn("TIMES", right=True),
        TableColumn("TOOL"),
        TableColumn("TURNS", drop=2),
        TableColumn("EVIDENCE", drop=3),
        TableColumn("ARGUMENTS"),
    )
    cells: list[list[LinePart | str]] = []
    for one in found:
        kinds = ", other numbers" if one.drifts else ""
        turns = " ".join(dict.fromkeys(str(e.get("turn")) for e in one.events))
        cited = " ".join(dict.fromkeys(str(e["data"].get("evidence")) for e in one.events))
        args = event_lines.format_arguments(one.events[0]["data"].get("args") or {})
        cells.append([str(len(one.events)), one.tool, turns, LinePart(cited, "id"), f"{args}{kinds}"])
    return lay_out_table(screen, columns, cells)


def repeated_call_to_json(one: RepeatedCall) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "tool": one.tool,
        "times": len(one.events),
        "drifts": one.drifts,
        "args": one.events[0]["data"].get("args") or {},
        "events": [e["seq"] for e in one.events],
    }


def render_evidence_table(rows: Sequence[EvidenceRow], screen: Screen) -> list[Line]:
    """All evidence of a run."""
    columns = (
        TableColumn("ID"),
        TableColumn("TOOL"),
        TableColumn("STATUS", drop=3),
        TableColumn("SOURCE", drop=2),
        TableColumn(f"FETCHED ({screen.times.name})", drop=4),
        TableColumn("BYTES", right=True, drop=5),
        TableColumn("WHAT IT SAYS"),
    )
    cells: list[list[LinePart | str]] = [
        [
            LinePart(r.id, "id"),
            r.tool,
            r.status,
            r.source,
            screen.times.brief(r.fetched),
            str(r.size),
            r.headline,
        ]
        for r in rows
    ]
    return lay_out_table(screen, columns, cells)


def render_evidence_piece(row: EvidenceRow, record: Mapping[str, Any], screen: Screen) -> Iterable[Line]:
    """One piece of evidence: where it comes from, then its stored body, barred off as data."""
    facts = (
        ("evidence", row.id),
        ("tool", row.tool),
        ("arguments", event_lines.format_arguments(row.arguments)),
        ("source", row.source),
        ("target", row.target or ""),
        ("query", row.query),
        ("status", row.status),
        ("says", row.headline),
        (
            "searched",
            f"{row.matched} of {format_count(row.scanned, 'row matched', 'rows matched')}"
            if row.scanned is not None
            else "",
        ),
        ("fetched", screen.times.full(row.fetched)),
        ("sha256", row.sha256),
        ("stored", f"{format_count(row.size, 'byte')}, {row.stored} compressed"),
        ("left out", f"{format_count(row.left_out, 'character')} in the middle" if row.left_out else ""),
        ("redacted", format_count(row.redactions, "secret") if row.redactions else ""),
    )
    for name, value in facts:
        if value:
            yield from _render_fact(name, value, screen)
    yield [LinePart("untrusted, as the source gave it:", "warn")]
    bar = "" if screen.plain else "│ "
    room = screen.width - len(bar) if screen.width else None
    for line in render_record_lines(record, room, screen.encoding):
        for piece in _fold_evidence_line(line, screen, len(bar)):
            yield [LinePart(bar, "warn"), piece]


def _fold_evidence_line(line: str, screen: Screen, used: int) -> list[str]:
    """A long line goes on in the next one: evidence is shown complete."""
    clean = " ".join(texts.clean_lines(line, screen.encoding))
    if screen.width is None or texts.measure_width(clean) + used <= screen.width:
        return [clean]
    indent = " " * (len(clean) - len(clean.lstrip()) + 2)
    first, *rest = texts.wrap_to_width(clean, max(20, screen.width - used - len(indent)))
    return [indent[2:] + first, *(indent + piece for piece in rest)]
