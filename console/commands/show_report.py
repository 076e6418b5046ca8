"""`opsleuth report`: what a run found, as text, Markdown, JSON or one HTML file."""

import sys
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import click

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.store import Store
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import write_note
from opsleuth.console.output_file import open_output_path
from opsleuth.console.report_output import write_report
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.errors import UsageError

FORMAT_BY_SUFFIX = {".md": "md", ".json": "json", ".html": "html", ".htm": "html"}
"""What `-o FILE` means without `--format`; a name without one of these or of `_TEXT_SUFFIXES` is refused."""
_TEXT_SUFFIXES = ("", ".txt", ".text", ".log", ".out")


@click.command("report", cls=CliCommand, help=f"What a run found.\n\n{RUN_HELP}")
@click.argument("run_id", metavar="RUN", default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "md", "html"]),
    help="Default: text, with --json json.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to a file."
)
@click.option("--full", is_flag=True, help="With all claims, hypotheses and sources.")
def show_report(run_id: str, form: str | None, output: Path | None, *, full: bool) -> int:
    options = current_options()
    if output and not form:
        form = _format_for_file(output)
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        document = store.reports.get(run.id)
        if document is None:
            raise NotFoundError(
                f"{run.id} has no report yet: it is {status_to_show(run)} in turn {run.turn}. "
                f"See `opsleuth show {run.id}`, or go on with `opsleuth resume {run.id}`"
            )
        page = render_html_page(store, run.id, document, options) if form == "html" else None

    def write(stream: Any) -> None:  # noqa: ANN401 - a text stream
        if page is not None:
            stream.write(page)
        else:
            write_report(document, options, form=form, full=full, stream=stream)

    if output is None:
        write(sys.stdout)
        return 0
    with open_output_path(output) as path, path.open("w", encoding="utf-8") as stream:
        write(stream)
    write_note(f"report written to {output}")
    return 0


def _format_for_file(output: Path) -> str:
    """The format that the file's name asks for. Raises UsageError for one that no report has, such as `x.pdf`."""
    suffix = output.suffix.lower()
    if suffix not in FORMAT_BY_SUFFIX and suffix not in _TEXT_SUFFIXES:
        raise UsageError(
            f"cannot write a report as {suffix} ({output}): choose a name that ends in .html, .md, .json or .txt, "
            "or choose its format with --format"
        )
    return FORMAT_BY_SUFFIX.get(suffix, "text")


def render_html_page(store: Store, run: str, document: Mapping[str, Any], options: GlobalOptions) -> str:
    """The report as one HTML file, with the stored bodies of its evidence."""
    from opsleuth.console.html.page import load_report_material, render_report_page

    return render_report_page(load_report_material(store, run, document), TimeDisplay(options.tz or UTC))
