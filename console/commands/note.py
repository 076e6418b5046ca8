"""`opsleuth note`: tell the planner of a run something at its next turn."""

import click

from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import write_note
from opsleuth.console.store_access import open_store_for_writing
from opsleuth.state.errors import UsageError
from opsleuth.state.text_input import read_stdin_text


@click.command("note", cls=CliCommand, help="Leave a note for a run's planner; - reads it from stdin.")
@click.argument("run_id", metavar="RUN")
@click.argument("text", metavar="TEXT|-")
def add_note(run_id: str, text: str) -> int:
    """Raises UsageError for an empty note, and for a run that has concluded."""
    from opsleuth.console.planner_notes import add_planner_note

    options = current_options()
    words = (read_stdin_text("the note") if text == "-" else text).strip()
    if not words:
        raise UsageError("the note is empty")
    with open_store_for_writing(options) as store:
        run = store.runs.find(run_id)
        if not run.resumable:
            raise UsageError(f"{run.id} has ended ({run.stop_reason}): fork it to go on with a note")
        add_planner_note(store, run.id, words)
    write_note(f"noted: the planner of {run.id} reads it at its next turn")
    return 0
