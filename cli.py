"""The command line: parse, call, exit code. No logic, and nothing heavy is imported before it is needed.

The commands lie in `console/commands`, one file for each thing that they are about.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from opsleuth import __version__
from opsleuth.console.commands import (
    about,
    approvals,
    database,
    evaluation,
    investigations,
    lab,
    reading,
    sources,
    states,
    upkeep,
)
from opsleuth.console.options import Top
from opsleuth.service import commands as service
from opsleuth.state.outcome import ExitCode

ROOMS = {
    "Investigate": investigations,
    "Sources": sources,
    "Look at a run": reading,
    "Step through it, change it": states,
    "Decide and steer": approvals,
    "Keep and configure": upkeep,
    "Database": database,
    "Serve": service,
    "Measure": evaluation,
    "Try it on a system that runs": lab,
    "About opsleuth": about,
}
"""Where the commands are, by the titles under which the help lists them."""


@click.group(cls=Top, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="opsleuth %(version)s")
def cli() -> None:
    """Investigate incidents: every step is kept, and every claim points at stored evidence.

    \b
    opsleuth demo                            try it on the built-in incident
    opsleuth init                            find your own systems, then:
    opsleuth run "orders are slow since 14:00Z"
    opsleuth run --case DIR                  a recorded incident
    opsleuth resume -                        go on with the newest run
    """  # noqa: D301 - the sign by which click keeps lines as they are


for title, room in ROOMS.items():
    cli.add_section(title, room.COMMANDS)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with one of the documented codes."""
    _open_streams()
    if asked := os.environ.get(upkeep.COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(cli, {}, "opsleuth", upkeep.COMPLETE, asked))
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _open_streams() -> None:
    """A closed stdout or stderr leads nowhere, and never into a file that is opened later; no character is an error."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _newest(argument: str) -> str:
    """`-@c4` begins like an option: `@c4` means the same checkpoint of the newest run."""
    return argument[1:] if argument.startswith("-@") else argument


def _guarded(arguments: Sequence[str]) -> int:
    """The exit code of a command, whatever it ends with: the outermost border of errors."""
    try:
        with cli.make_context("opsleuth", [_newest(a) for a in arguments]) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.SIGINT
    except Exception as error:  # noqa: BLE001 - nothing may end in a traceback on the screen
        from opsleuth.console.failure import told

        return told(error)
    return int(code)
