"""`opsleuth export` and `opsleuth import`: a run as one file, for another database."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.checkpoints.transfer import TransferSummary
from opsleuth.console import event_lines
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.output_file import open_output_path
from opsleuth.console.store_access import open_store_for_reading, open_store_for_writing
from opsleuth.state.plurals import format_count

if TYPE_CHECKING:
    from opsleuth.checkpoints.transfer import Settled


@click.command("export", cls=CliCommand, help="Write a run, with the runs it was forked from, into one file.")
@click.argument("run_id", metavar="RUN")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE"
)
@click.option(
    "--with-evidence", is_flag=True, help="With the stored evidence, so that the run can go on there."
)
def export_run(run_id: str, output: Path, *, with_evidence: bool) -> int:
    options = current_options()
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        with open_output_path(output) as path:
            taken = store.transfer.write(run.id, path, with_evidence=with_evidence)
    print_transferred(options, taken, f"exported to {output}")
    return 0


@click.command("import", cls=CliCommand, help="Read a run that was exported.")
@click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_run(source: Path) -> int:
    options = current_options()
    settled = make_local_settings(options)
    with open_store_for_writing(options) as store:
        store.make_checkpoint_tables()
        taken = store.transfer.read(source, settled)
    print_transferred(options, taken, f"imported from {source}")
    return 0


def make_local_settings(options: GlobalOptions) -> "Settled":
    """Gives an imported run what is configured here: what it may reach, run and change is not for a file to decide."""
    from opsleuth.console.configured_sources import read_trusted_sources
    from opsleuth.console.run_settings import build_run_settings

    here = build_run_settings(options, read_trusted_sources(options)).to_json()
    live = {
        name: here[name]
        for name in ("model", "policy", "added_policies", "environment", "sources", "platform")
    }
    recorded = live | {"environment": None, "sources": {}, "platform": None}

    def settle(stored: Mapping[str, Any]) -> Mapping[str, Any]:
        read_only = bool(stored.get("read_only")) or here["read_only"]
        return {**stored, **(recorded if stored.get("case") else live), "read_only": read_only}

    return settle


def print_transferred(options: GlobalOptions, taken: TransferSummary, action: str) -> None:
    """The newest run's id on stdout; how much came with it on stderr."""
    if options.json:
        event_lines.write_json(sys.stdout, taken._asdict())
        return
    newest, *others = taken.runs
    screen_for_options(options).line(newest)
    more = f" with {len(others)} it was forked from" if others else ""
    there = f" ({taken.there:,} of them were here before)" if taken.there else ""
    write_note(f"{newest}{more}, {format_count(taken.rows, 'row')}{there}, {action}")
