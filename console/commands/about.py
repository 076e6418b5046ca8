"""`opsleuth graph`, `exit-codes` and `version`: what opsleuth says about itself."""

import platform
import sys

import click

from opsleuth import __version__
from opsleuth.console.options import CliCommand, typed_options
from opsleuth.state.errors import UsageError
from opsleuth.state.nearest_name import suggest_names
from opsleuth.state.run_status import EXIT_CODE_MEANING

REPORTED_PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "pydantic", "rich")
"""Packages whose versions matter in a report of a fault."""


@click.command("graph", cls=CliCommand)
@click.option("--format", "form", type=click.Choice(["ascii", "mermaid"]), default="ascii", show_default=True)
def draw_graph(form: str) -> int:
    """Draw the loop of an investigation."""
    from opsleuth.graph.drawing import draw_graph

    sys.stdout.write(draw_graph(form))
    return 0


@click.command("exit-codes", cls=CliCommand)
def list_exit_codes() -> int:
    """What each exit code means."""
    if typed_options().json:
        write_document(
            {"exit_codes": [{"code": int(code), "meaning": text} for code, text in EXIT_CODE_MEANING.items()]}
        )
    else:
        sys.stdout.writelines(f"{int(code):>3}  {text}\n" for code, text in EXIT_CODE_MEANING.items())
    return 0


@click.command("help", cls=CliCommand)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
def show_help(words: tuple[str, ...]) -> int:
    """Show the help of a command."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        known = list(group.list_commands(context)) if isinstance(group, click.Group) else []
        if not isinstance(group, click.Group) or word not in known:
            raise UsageError(f"there is no command {' '.join(words)!r} ({suggest_names(word, known)})")
        command = group.commands[word]
        context = click.Context(command, info_name=word, parent=context)
    sys.stdout.write(context.command.get_help(context) + "\n")
    return 0


@click.command("version", cls=CliCommand)
def print_version() -> int:
    """The version of opsleuth and of its environment."""
    options = typed_options()
    if not (options.json or options.verbose):
        sys.stdout.write(f"opsleuth {__version__}\n")
        return 0
    from importlib.metadata import version

    parts = {"opsleuth": __version__, "python": platform.python_version(), "platform": platform.platform()}
    parts |= {name: version(name) for name in REPORTED_PACKAGES}
    if options.json:
        write_document(parts)
    else:
        sys.stdout.writelines(f"{name} {text}\n" for name, text in parts.items())
    return 0


def write_document(document: object) -> None:
    from opsleuth.console.event_lines import write_json  # `version` without --json loads no JSON

    write_json(sys.stdout, document)
