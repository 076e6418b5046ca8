"""`opsleuth step`: step through a run at a terminal, or by a file of commands."""

import os
import sys
from pathlib import Path

import click

from opsleuth.configuration.folders import xdg_folder
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.console.store_access import find_run, open_store_for_writing
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.run_id import new_run_id


@click.command(
    "step",
    cls=CliCommand,
    help="Step through a run: node by node, back and forth, with edits that make branches.\n\n"
    "Works on a run that waits, is paused, was interrupted or has ended. Type ? there for its commands.",
)
@click.argument("run_id", metavar="[RUN|-]", default="-")
@click.option(
    "--commands",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Take the commands from a file, one a line; the first fault ends it.",
)
def step_through_run(run_id: str, commands: Path | None) -> int:
    """Raises UsageError where nobody can type and no commands are given."""
    options = current_options()
    run = find_run(options, run_id)
    if commands is None and (
        options.no_input or options.json or not (sys.stdin.isatty() and sys.stdout.isatty())
    ):
        raise UsageError(
            "step needs a terminal, or a file of commands: --commands FILE (? in the stepper lists them)"
        )
    import asyncio

    from opsleuth.console.run_settings import build_run_parts
    from opsleuth.console.stepper.cursor import StepperCursor
    from opsleuth.console.stepper.line_sources import (
        LineSource,
        PlainInputLines,
        PromptLines,
        read_script_file,
    )
    from opsleuth.console.stepper.shell import StepperShell, complete_line
    from opsleuth.graph.approvals.decisions import local_operator

    clock, screen = SystemClock(), screen_for_options(options)
    with open_store_for_writing(options) as store:
        lines: LineSource = PlainInputLines() if commands is None else read_script_file(commands, screen)
        shell = StepperShell(
            store,
            StepperCursor(store, run.id),
            screen,
            lines,
            lambda: new_run_id(clock.now()),
            clock,
            build_run_parts(options, store.redactor),
            by=local_operator("command").name,
            limits=options.limits,
        )
        if commands is None and not options.plain and os.environ.get("TERM", "dumb") != "dumb":
            history = xdg_folder("XDG_STATE_HOME", ".local/state") / "step-history"
            shell.lines = PromptLines(history, lambda text: complete_line(shell, text))
        return asyncio.run(shell.run_session())
