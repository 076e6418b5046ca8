"""`opsleuth approvals`: what waits for a person, in the words that the person answers to."""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from opsleuth.checkpoints.approvals import SHORTEST_DIGEST, Approval
from opsleuth.console import event_lines
from opsleuth.console.approval_questions import format_question_row, render_question
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.screen import Line, Screen, TableColumn, lay_out_table
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.console.time_formats import format_age
from opsleuth.state.clock import SystemClock

COLUMNS = (
    TableColumn("RUN"),
    TableColumn("ID"),
    TableColumn("DIGEST"),
    TableColumn("TOOL"),
    TableColumn("TARGET", drop=2),
    TableColumn("RISK", drop=3),
    TableColumn("STATUS", drop=4),
    TableColumn("AGE", right=True, drop=1),
    TableColumn("BY", drop=5),
)


@click.command("approvals", cls=CliCommand)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--all", "every", is_flag=True, help="Include answered ones.")
def list_approvals(run_id: str | None, *, every: bool) -> int:
    """What waits for a person: calls to confirm, and effects whose outcome nobody saw."""
    options = current_options()
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id).id if run_id else None
        found = store.approvals.list(run, None if every else "pending")
    if options.json:
        event_lines.write_json(sys.stdout, {"approvals": [approval_to_json(row) for row in found]})
        return 0
    screen = screen_for_options(options)
    if run is None or every:
        if found:
            screen.lines(render_questions_table(found[::-1], screen, SystemClock().now()))
        if found and not every:
            write_note(f"in full, and how to answer: opsleuth approvals {found[-1].run}")
    else:
        for row in found:
            print_question(row, screen)
    if not found:
        write_note("nothing waits for an answer")
    return 0


def render_questions_table(questions: Sequence[Approval], screen: Screen, now: datetime) -> list[Line]:
    """One line a question, newest first as given; what an answer needs is never cut."""
    rows = [
        [*cells[:-1], format_age(question.requested, now), cells[-1] or "-"]
        for question in questions
        for cells in (format_question_row(question),)
    ]
    return lay_out_table(screen, COLUMNS, rows)


def print_question(question: Approval, screen: Screen) -> None:
    """The whole question, and the commands that answer it."""
    for line in render_question(question, screen.width or 100, screen.encoding):
        screen.stream.write(line + "\n")
    screen.stream.write(f"  {render_answer_commands(question)}\n\n")


def render_answer_commands(question: Approval) -> str:
    address = f"{question.run} {question.id}"
    if question.about == "effect":
        return f"answer: opsleuth resolve {address} --happened|--absent --reason TEXT"
    return (
        f"answer: opsleuth approve {address} --digest {question.digest[:SHORTEST_DIGEST]}   or   "
        f"opsleuth deny {address} --reason TEXT"
    )


def approval_to_json(row: Approval) -> Mapping[str, Any]:
    return {
        name: getattr(row, name)
        for name in (
            "run", "id", "about", "subject", "status", "digest", "policy_version", "requested", "answered",
            "expires", "answered_by", "via", "reason", "used", "document",
        )
    }  # fmt: skip
