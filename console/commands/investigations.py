"""The commands that investigate: `run`, `demo`, `resume`."""

from pathlib import Path

import click

from opsleuth.console.options import Command, given


@click.command(cls=Command)
@click.argument("question", required=False)
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="A recorded incident to look into."
)
@click.option("--alert", metavar="FILE|-|URL", help="The alert, as JSON or as text; a URL is asked for JSON.")
@click.option("--since", metavar="T", help="Start of the window: 2026-11-29T13:40Z, 13:40Z or now-30m.")
@click.option("--until", metavar="T", help="End of the window (default: now).")
@click.option("--name", help="A name for the run, for you to recognise it.")
@click.option(
    "--pause-at",
    type=click.Choice(["approve", "act", "observe", "verify"]),
    metavar="NODE",
    help="Stop before NODE for the first time; opsleuth step goes on from there.",
)
def run(
    question: str | None,
    case: Path | None,
    alert: str | None,
    since: str | None,
    until: str | None,
    name: str | None,
    pause_at: str | None,
) -> int:
    """Investigate QUESTION, an alert, or a recorded incident."""
    from opsleuth.console import running

    asked = running.Asked(
        question=question, case=case, since=since, until=until, name=name, pause_at=pause_at
    )
    return running.run(asked, alert, given())


@click.command(cls=Command)
@click.option(
    "--act", is_flag=True, help="Against a small system that runs: go on to the approval of the fix."
)
def demo(*, act: bool) -> int:
    """Investigate the built-in incident, offline: an orders API that became slow."""
    from opsleuth.console import running

    return running.demo(given(), act=act)


@click.command(cls=Command)
@click.argument("run_id", metavar="[RUN|-]", required=False)
def resume(run_id: str | None) -> int:
    """Go on with a run from its last node; without RUN you are asked which.

    Limits that are given (--max-turns and the like) are new totals.
    """
    from opsleuth.console import running

    return running.resume(run_id, given())


COMMANDS: tuple[click.Command, ...] = (run, demo, resume)
