"""The commands that tell of opsleuth itself: `graph`, `exit-codes`, `version`; `dev` for those who work on it."""

from pathlib import Path

import click

from opsleuth.console.options import Command, Group, typed


@click.command(cls=Command)
@click.option("--format", "form", type=click.Choice(["ascii", "mermaid"]), default="ascii", show_default=True)
def graph(form: str) -> int:
    """Draw the loop of an investigation."""
    from opsleuth.console import about

    return about.graph(form)


@click.command("exit-codes", cls=Command)
def exit_codes() -> int:
    """What each exit code means."""
    from opsleuth.console import about

    return about.exit_codes(typed())


@click.command(cls=Command)
def version() -> int:
    """The version of opsleuth and of what it runs on."""
    from opsleuth.console import about

    return about.version(typed())


@click.group(cls=Group)
def dev() -> None:
    """Tools for trying and developing opsleuth."""


@dev.command("model-server")
@click.option(
    "--rule",
    type=click.Choice(["investigator", "looper", "obedient", "confabulator"]),
    default="investigator",
    show_default=True,
    help="How it answers.",
)
@click.option(
    "--script",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Answer by a script instead: a JSON list of entries, the last repeats.",
)
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME[@N]", help="Spoil every answer, or the N-th one."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Default: a free one.")
def model_server(rule: str, script: Path | None, faults: tuple[str, ...], port: int) -> int:
    """A model server on loopback that answers as it is told to, with every fault there is."""
    from opsleuth.console import dev

    return dev.model_server(rule, script, faults, port)


COMMANDS: tuple[click.Command, ...] = (graph, exit_codes, version, dev)
