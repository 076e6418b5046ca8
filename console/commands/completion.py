"""`opsleuth completion`: the script by which a shell completes commands and options."""

import sys

import click
from click.shell_completion import get_completion_class

from opsleuth.console.options import COMPLETION_VARIABLE, CliCommand


@click.command(
    "completion",
    cls=CliCommand,
    help='Print the shell completion script.\n\nFor its start-up file: eval "$(opsleuth completion bash)"',
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def print_completion(shell: str) -> int:
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    program = click.get_current_context().find_root().command
    sys.stdout.write(completion(program, {}, "opsleuth", COMPLETION_VARIABLE).source() + "\n")
    return 0
