"""`opsleuth diff`: where the states of two runs, or of two checkpoints, differ."""

import click

from opsleuth.console.argument_help import CHECKPOINT_HELP
from opsleuth.console.branching import find_checkpoint, print_differences
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.store_access import open_store_for_reading


@click.command(
    "diff",
    cls=CliCommand,
    help=f"Where the states of two runs, or of two checkpoints, differ.\n\n{CHECKPOINT_HELP}",
)
@click.argument("one", metavar="RUN1[@C]")
@click.argument("two", metavar="RUN2[@C]")
def compare_runs(one: str, two: str) -> int:
    options = current_options()
    with open_store_for_reading(options) as store:
        before, after = find_checkpoint(store, one), find_checkpoint(store, two)
    return print_differences(options, before, after)
