"""The commands that read what is stored: `list`, `show`, `log`, `trace`, `evidence`, `report`."""

from pathlib import Path
from typing import Any

import click

from opsleuth.console.options import Command, given
from opsleuth.state.outcome import Status

RUN = "RUN is a run's id, the beginning of it or of its last part, or - for the newest."


@click.command("list", cls=Command)
@click.option(
    "--status",
    type=click.Choice([s.value for s in Status]),
    metavar="STATUS",
    help="Only runs that stand like this, such as waiting or interrupted.",
)
@click.option(
    "--since", metavar="T", help="Only runs that were started since then: now-7d, 2026-11-29T13:40Z."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=50,
    show_default=True,
    metavar="N",
    help="At most so many.",
)
@click.option("--tree", is_flag=True, help="Forks under the run they were made from.")
def list_runs(status: str | None, since: str | None, limit: int, *, tree: bool) -> int:
    """List runs, newest first."""
    from opsleuth.console import reading

    return reading.runs(given(), status=status, since=since, limit=limit, tree=tree)


@click.command(
    cls=Command,
    help=f"How a run stands, what it found and what it did last; at a checkpoint, the state there.\n\n{RUN}",
)
@click.argument("run_id", metavar="RUN[@C]")
@click.option("--full", is_flag=True, help="All lines of the run's course.")
@click.option("--snapshot", is_flag=True, help="What the model was shown there, and what it said.")
def show(run_id: str, *, full: bool, snapshot: bool) -> int:
    if snapshot or "@" in run_id:
        from opsleuth.console import watch

        return watch.show_point(given(), run_id, snapshot=snapshot)
    from opsleuth.console import reading

    return reading.show(given(), run_id, full=full)


@click.command(cls=Command, help=f"Every event of a run, as it was stored.\n\n{RUN}")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only these, such as tool.completed or tool."
)
@click.option(
    "--after", type=click.IntRange(0, 2**53), default=0, metavar="SEQ", help="Only events after this number."
)
@click.option("--follow", is_flag=True, help="Go on as the run does, to its end.")
@click.option("--verify", is_flag=True, help="Check that no stored event was changed.")
@click.option("--slowest", type=click.IntRange(1), metavar="N", help="The N that took longest.")
@click.option("--costliest", type=click.IntRange(1), metavar="N", help="The N model calls that cost most.")
@click.option("--repeated", is_flag=True, help="Calls that were made again, alike or with other numbers.")
def log(run_id: str, *, follow: bool, verify: bool, repeated: bool, **sifted: Any) -> int:  # noqa: ANN401 - what is asked of the rest
    from opsleuth.console import reading

    if verify:
        return reading.verify(given(), run_id)
    if repeated:
        return reading.repeated(given(), run_id)
    if follow:
        return reading.follow(given(), run_id, types=sifted["types"], after=sifted["after"])
    return reading.log(given(), run_id, **sifted)


@click.command(
    cls=Command, help=f"Where a run's time went: every node, model call and tool call on one axis.\n\n{RUN}"
)
@click.argument("run_id", metavar="RUN", default="-")
@click.option("--otlp", metavar="URL", help="Send it to a collector of OpenTelemetry traces instead.")
@click.option("--content", is_flag=True, help="With --otlp: send what was asked and answered too.")
def trace(run_id: str, otlp: str | None, *, content: bool) -> int:
    from opsleuth.console import reading

    if otlp:
        from opsleuth.console import telemetry

        return telemetry.send(given(), run_id, otlp, content=content)
    return reading.trace(given(), run_id)


@click.command(
    cls=Command, help=f"What lies behind a claim: all evidence of a run, or one piece of it.\n\n{RUN}"
)
@click.argument("run_id", metavar="RUN")
@click.argument("evidence_id", metavar="[E7]", required=False)
@click.option("--raw", is_flag=True, help="The stored bytes alone.")
@click.option("--query", is_flag=True, help="The query alone.")
def evidence(run_id: str, evidence_id: str | None, *, raw: bool, query: bool) -> int:
    from opsleuth.console import reading

    if evidence_id is None:
        return reading.evidence_list(given(), run_id)
    return reading.evidence(given(), run_id, evidence_id, form="raw" if raw else "query" if query else "all")


@click.command(cls=Command, help=f"What a run found.\n\n{RUN}")
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
def report(run_id: str, form: str | None, output: Path | None, *, full: bool) -> int:
    from opsleuth.console import reading

    return reading.report(given(), run_id, form=form, output=output, full=full)


COMMANDS: tuple[click.Command, ...] = (list_runs, show, log, trace, evidence, report)
