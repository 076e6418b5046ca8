"""`opsleuth fork`: a separate run that goes on from a checkpoint of another one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opsleuth.console.argument_help import CHECKPOINT_HELP
from opsleuth.console.branching import make_branch
from opsleuth.console.options import CliCommand, current_options
from opsleuth.state.errors import UsageError
from opsleuth.state.state_paths import parse_typed_value

if TYPE_CHECKING:
    from opsleuth.graph.stepping.edits import StateEdit


@click.command("fork", cls=CliCommand, help=f"Start a separate run from a checkpoint.\n\n{CHECKPOINT_HELP}")
@click.argument("address", metavar="RUN@C")
@click.option("--set", "edits", multiple=True, metavar="PATH=JSON", help="Change the state in the branch.")
@click.option("--name", help="A name for the branch, for you to recognise it.")
@click.option("--run", "go_on", is_flag=True, help="Start it at once.")
def fork_run(address: str, edits: tuple[str, ...], name: str | None, *, go_on: bool) -> int:
    return make_branch(current_options(), address, parse_edits(edits), name, go_on=go_on)


def parse_edits(texts: Sequence[str]) -> "list[StateEdit]":
    """`PATH=JSON` as edits. Raises UsageError."""
    from opsleuth.graph.stepping.edits import StateEdit

    edits = []
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write PATH=JSON")
        edits.append(StateEdit(path, parse_typed_value(value)))
    return edits
