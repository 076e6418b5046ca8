"""The commands that look into a run's states and make branches: `step`, `state`, `fork`, `diff`."""

from pathlib import Path

import click

from opsleuth.console.options import Command, Group, given

POINT = "C is a checkpoint: c4, head, head~2, before:act, or a whole id; without it the newest."


@click.command(
    cls=Command,
    help="Step through a run: node by node, forth and back, with edits that make branches.\n\n"
    "Works on a run that waits, is paused, was interrupted or has ended. Type ? there for its commands.",
)
@click.argument("run_id", metavar="[RUN|-]", default="-")
@click.option(
    "--commands",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Take the commands from a file, one a line; the first fault ends it.",
)
def step(run_id: str, commands: Path | None) -> int:
    from opsleuth.console import stepping

    return stepping.step(given(), run_id, commands)


@click.group("state", cls=Group)
def state() -> None:
    """Look at the state of a run at any checkpoint, and change it in a branch."""


@state.command(help=f"The state, or the value at PATH, as JSON.\n\n{POINT}")
@click.argument("address", metavar="RUN[@C]")
@click.argument("path", metavar="[PATH]", default="")
def get(address: str, path: str) -> int:
    from opsleuth.console import states

    return states.get_value(given(), address, path)


@state.command(
    "set", help=f"Make a branch in which PATH has another VALUE (JSON, or a bare word).\n\n{POINT}"
)
@click.argument("address", metavar="RUN[@C]")
@click.argument("path", metavar="PATH")
@click.argument("value", metavar="VALUE")
def set_value(address: str, path: str, value: str) -> int:
    from opsleuth.console import states

    return states.set_value(given(), address, path, value)


@state.command(help=f"Make a branch with what you write in $EDITOR.\n\n{POINT}")
@click.argument("address", metavar="RUN[@C]")
@click.argument("path", metavar="[PATH]", default="")
def edit(address: str, path: str) -> int:
    from opsleuth.console import states

    return states.edit(given(), address, path)


@state.command("diff", help=f"What a checkpoint changed, or what changed from it to OTHER.\n\n{POINT}")
@click.argument("address", metavar="RUN[@C]")
@click.argument("other", metavar="[OTHER]", required=False)
def state_diff(address: str, other: str | None) -> int:
    from opsleuth.console import states

    return states.changes(given(), address, other)


@click.command(cls=Command, help=f"Make a run of its own that goes on from a checkpoint.\n\n{POINT}")
@click.argument("address", metavar="RUN@C")
@click.option("--set", "edits", multiple=True, metavar="PATH=JSON", help="Change the state in the branch.")
@click.option("--name", help="A name for the branch, for you to recognise it.")
@click.option("--run", "go_on", is_flag=True, help="Let it run at once.")
def fork(address: str, edits: tuple[str, ...], name: str | None, *, go_on: bool) -> int:
    from opsleuth.console import states

    return states.fork(given(), address, states.assigned(edits), name, go_on=go_on)


@click.command(cls=Command, help=f"Where the states of two runs, or of two checkpoints, differ.\n\n{POINT}")
@click.argument("one", metavar="RUN1[@C]")
@click.argument("two", metavar="RUN2[@C]")
def diff(one: str, two: str) -> int:
    from opsleuth.console import states

    return states.compare(given(), one, two)


COMMANDS: tuple[click.Command, ...] = (step, state, fork, diff)
