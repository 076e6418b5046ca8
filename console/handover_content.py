"""What the next person on call needs to know, and the draft of a postmortem: sections out of stored reports."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console.report_content import ReportSection, list_report_sections
from opsleuth.console.report_headline import compose_headline, describe_recommendation
from opsleuth.console.shown_report import prepare_for_reading
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import FINISHED_STATUSES

Document = Mapping[str, Any]
_TO_FILL_IN = "owner: ____  due: ____"
_FROM_REPORT = (
    "IMPACT",
    "TIMELINE",
    "WHY",
    "ANSWER",
    "CAUSES",
    "RULED OUT",
    "DONE",
    "SEEN BEFORE",
    "NOT CHECKED",
)
"""Sections of a report that a postmortem takes over, in its own order."""


class ShiftRun(NamedTuple):
    """A run of a shift: its row, its report if there is one, the approvals that wait, and a person's word on it."""

    row: RunRow
    report: Document | None
    pending: Sequence[str]
    judged: str


class DraftDocument(NamedTuple):
    """A title and sections, to be written as Markdown or HTML."""

    title: str
    sections: Sequence[ReportSection]


def compose_handover(runs: Sequence[ShiftRun], since: str, until: str, times: TimeDisplay) -> DraftDocument:
    """What happened in a shift: what is open, what was found, what was changed."""
    is_open = [run for run in runs if run.row.resumable or run.pending]
    ended = [run for run in runs if run not in is_open]
    every = (
        ReportSection(
            "OPEN", tuple(describe_open_run(run, times) for run in is_open) or ("nothing is open",), None
        ),
        ReportSection("FOUND", tuple(describe_ended_run(run, times) for run in ended), None),
        ReportSection("CHANGED", tuple(line for run in runs for line in list_changes(run)), None),
        ReportSection("TO DO", tuple(describe_next_step(run, times) for run in ended if run.report), None),
        ReportSection("NOTES", ("____",), None),
    )
    title = f"Handover {times.full(since)} to {times.full(until)}: {format_count(len(runs), 'run')}, {len(is_open)} open"
    return DraftDocument(title, [section for section in every if section.items])


def describe_open_run(run: ShiftRun, times: TimeDisplay) -> str:
    """A run that waits for somebody, with the command that goes on."""
    row = run.row
    if run.pending:
        return (
            f"{row.question}: waits for an answer to {', '.join(run.pending)}: `opsleuth approvals {row.id}`"
        )
    if row.status in FINISHED_STATUSES and run.report is not None:
        headline = compose_headline(prepare_for_reading(run.report), times)
        return f"{row.question} {', '.join(headline.facts)}. {headline.action}"
    return f"{row.question}: {status_to_show(row)} in turn {row.turn}: `opsleuth resume {row.id}`"


def describe_ended_run(run: ShiftRun, times: TimeDisplay) -> str:
    """What an ended run found, and how it was judged."""
    if run.report is None:
        return f"{run.row.question}: {status_to_show(run.row)} without a report (opsleuth show {run.row.id})"
    found = ", ".join(compose_headline(prepare_for_reading(run.report), times).facts)
    judged = f"; judged {run.judged}" if run.judged else ""
    return f"{run.row.question} {found}{judged} (opsleuth report {run.row.id})"


def describe_next_step(run: ShiftRun, times: TimeDisplay) -> str:
    """The first thing to do after a run, with a place for whoever does it."""
    action = compose_headline(run.report or {}, times).action
    return f"{action} ({run.row.id})  {_TO_FILL_IN}"


def list_changes(run: ShiftRun) -> Iterable[str]:
    """The changes that a run made, and whether they were seen to have worked."""
    for effect in (run.report or {}).get("effects") or []:
        seen = {True: "check passed", False: "CHECK FAILED"}.get(effect.get("verified"), "not checked")
        yield f"{effect.get('tool')} of {effect.get('target')}: {effect.get('status')}, {seen} ({run.row.id})"


def compose_postmortem(document: Document, times: TimeDisplay) -> DraftDocument:
    """The draft of a postmortem: what the report knows, and places for what only people know."""
    document = prepare_for_reading(document)
    known = {section.title: section for section in list_report_sections(document, times)}
    found = ", ".join(compose_headline(document, times).facts)
    actions = [
        f"{describe_recommendation(row, document)}  {_TO_FILL_IN}"
        for row in document.get("recommendations") or []
    ]
    every = (
        ReportSection("SUMMARY", (found, "in one sentence for everybody: ____"), None),
        *(known[name] for name in _FROM_REPORT if name in known),
        ReportSection("WHAT WENT WELL", ("____",), None),
        ReportSection("WHAT WENT BADLY", ("____",), None),
        ReportSection("ACTIONS", (*actions, f"____  {_TO_FILL_IN}"), None),
    )
    return DraftDocument(f"Postmortem draft: {document.get('question')} ({document.get('run')})", every)
