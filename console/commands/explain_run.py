"""`opsleuth why`: the chain from cause to symptom, what lost against it, and what would change the mind."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.processes import status_to_show
from opsleuth.console import event_lines
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.console.report_chain import explain_document, list_cause_names
from opsleuth.console.report_text import SHORT, format_section_lines
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.errors import UsageError
from opsleuth.state.nearest_name import suggest_names


@click.command("why", cls=CliCommand, help=f"Why a run blames what it blames.\n\n{RUN_HELP}\n\nCAUSE is a service or its place in the report, such as 2; default: the first.\n\n\b\nopsleuth why\nopsleuth why inv-20261129-7k3f orders-db\nopsleuth why --all | less")  # fmt: skip
@click.argument("run_id", metavar="RUN", default="-")
@click.argument("cause", metavar="[CAUSE]", required=False)
@click.option(
    "--all", "whole", is_flag=True, help="Every fact and every moment, in full; by default one screen."
)
def explain_run(run_id: str, cause: str | None, *, whole: bool) -> int:
    options = current_options()
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        document = store.reports.get(run.id)
        if document is None:
            raise NotFoundError(
                f"{run.id} has no conclusion yet: it is {status_to_show(run)} in turn {run.turn}. "
                f"Go on with it: opsleuth resume {run.id}"
            )
    chosen = choose_cause(document, cause)
    screen = screen_for_options(options)
    sections = explain_document(document, chosen, screen.times)
    if options.json:
        shown = {section.title.lower().replace(" ", "_"): list(section.items) for section in sections}
        event_lines.write_json(sys.stdout, {"run": run.id, **shown})
        return 0
    lines = format_section_lines(sections, screen)
    if not whole and len(lines) > SHORT:
        brief = explain_document(document, chosen, screen.times, whole=False)
        lines = format_section_lines(brief, screen, SHORT)
    screen.lines(lines)
    return 0


def choose_cause(document: Mapping[str, Any], named: str | None) -> int:
    """The place of the cause that was asked about, 0 by default. Raises UsageError with the causes there are."""
    names = list_cause_names(document)
    if named is None:
        return 0
    if named.isdecimal() and 0 < int(named) <= len(names):
        return int(named) - 1
    if named in names:
        return names.index(named)
    known = suggest_names(named, names) if names else "it names none"
    raise UsageError(f"the report blames no {named!r} ({known})")
