"""`opsleuth evidence`: all evidence of a run, or one stored piece of it."""

import sys

import click

from opsleuth.console import event_lines, run_tables
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.row_json import evidence_to_json
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.canonical_json import to_canonical_json


@click.command(
    "evidence",
    cls=CliCommand,
    help=f"The evidence behind a claim: all of a run, or one piece of it.\n\n{RUN_HELP}",
)
@click.argument("run_id", metavar="RUN")
@click.argument("evidence_id", metavar="[E7]", required=False)
@click.option("--raw", is_flag=True, help="The stored bytes alone.")
@click.option("--query", is_flag=True, help="The query alone.")
def show_evidence(run_id: str, evidence_id: str | None, *, raw: bool, query: bool) -> int:
    if evidence_id is None:
        return print_evidence_list(current_options(), run_id)
    return print_evidence(current_options(), run_id, evidence_id, raw=raw, query=query)


def print_evidence_list(options: GlobalOptions, run_id: str) -> int:
    """One line for each piece."""
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        rows = store.evidence.list(run.id)
    if options.json:
        event_lines.write_json(
            sys.stdout, {"run": run.id, "evidence": [evidence_to_json(row) for row in rows]}
        )
        return 0
    screen = screen_for_options(options)
    if rows:
        screen.lines(run_tables.render_evidence_table(rows, screen))
    else:
        write_note(f"{run.id} has no evidence yet")
    return 0


def print_evidence(options: GlobalOptions, run_id: str, evidence_id: str, *, raw: bool, query: bool) -> int:
    """The stored piece; with `raw` the very bytes that its sha256 is of."""
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        row = store.evidence.get(run.id, evidence_id.upper())
        record = store.evidence.record(run.id, row.id)
    screen = screen_for_options(options)
    if raw:
        _write_raw_text(to_canonical_json(record))
    elif query:
        screen.line(row.query)
    elif options.json:
        event_lines.write_json(sys.stdout, evidence_to_json(row) | {"record": record})
    else:
        screen.lines(run_tables.render_evidence_piece(row, record, screen))
    return 0


def _write_raw_text(text: str) -> None:
    """The exact bytes into a pipe or file; on a terminal what could act on it is escaped."""
    if sys.stdout.isatty():
        sys.stdout.write(event_lines.escape_json_text(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
