"""`opsleuth handover`: what the next person on call needs to know, or the draft of a postmortem of one run."""

import sys
from datetime import UTC
from pathlib import Path

import click

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.follow_up_rows import is_follow_up
from opsleuth.checkpoints.store import Store
from opsleuth.console import event_lines
from opsleuth.console.draft_output import format_draft_markdown, render_draft_page
from opsleuth.console.handover_content import DraftDocument, ShiftRun, compose_handover, compose_postmortem
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import parse_time_option, write_note
from opsleuth.console.output_file import open_output_path
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.clock import SystemClock, format_timestamp
from opsleuth.state.errors import UsageError

MOST_RUNS = 200
HELP = """Hand over a shift, or draft the postmortem of a run.

Without RUN: what is open, what was found, what was changed since then, and what is to be done. With RUN: its timeline, impact, causes
and actions, with places for what only people know. Markdown, or HTML with -o FILE.html.

\b
opsleuth handover --since 8h
opsleuth handover inv-20261129-7k3f -o postmortem.html
"""


@click.command("handover", cls=CliCommand, help=HELP)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--since",
    metavar="T",
    default="8h",
    show_default=True,
    help="The beginning of the shift: 8h, 2026-11-29T13:40Z.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to a file: .md or .html.",
)
def hand_over(run_id: str | None, since: str, output: Path | None) -> int:
    options = current_options()
    form = check_output_name(output)
    times = TimeDisplay(options.tz or UTC)
    with open_store_for_reading(options) as store:
        draft = read_postmortem(store, run_id, times) if run_id else read_handover(store, since, times)
    if options.json:
        sections = {
            section.title.lower().replace(" ", "_"): list(section.items) for section in draft.sections
        }
        event_lines.write_json(sys.stdout, {"title": draft.title, **sections})
        return 0
    text = render_draft_page(draft) if form == "html" else format_draft_markdown(draft)
    if output is None:
        sys.stdout.write(text)
        return 0
    with open_output_path(output) as path:
        path.write_text(text, "utf-8")
    write_note(f"draft written to {output}")
    return 0


def check_output_name(output: Path | None) -> str:
    """The form that a file's name asks for. Raises UsageError."""
    suffix = output.suffix.lower() if output else ".md"
    if suffix not in (".md", ".html", ".htm"):
        raise UsageError(
            f"cannot write a draft as {suffix or 'a file without an ending'} ({output}): choose a name that ends in .md or .html"
        )
    return "md" if suffix == ".md" else "html"


def read_handover(store: Store, since: str, times: TimeDisplay) -> DraftDocument:
    """The handover of the runs that were started since then."""
    after = parse_time_option(since, "--since")
    rows = [row for row in store.runs.list(since=after, limit=MOST_RUNS) if not is_follow_up(row)]
    runs = []
    for row in rows:
        kept = store.incidents.get(row.id)
        pending = [asked.id for asked in store.approvals.list(row.id, "pending")]
        runs.append(ShiftRun(row, store.reports.get(row.id), pending, str(kept.judged or "") if kept else ""))
    begun = format_timestamp(after) if after else ""
    return compose_handover(runs, begun, format_timestamp(SystemClock().now()), times)


def read_postmortem(store: Store, run_id: str, times: TimeDisplay) -> DraftDocument:
    """The draft of a run's postmortem. Raises NotFoundError for a run without a report."""
    run = store.runs.find(run_id)
    document = store.reports.get(run.id)
    if document is None:
        raise NotFoundError(f"{run.id} has no report yet: see `opsleuth show {run.id}`")
    return compose_postmortem(document, times)
