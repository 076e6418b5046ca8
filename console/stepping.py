"""`step`: sit down at a run."""

import asyncio
import os
import sys
from pathlib import Path

from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.console.options import Options
from opsleuth.console.output import screen_of
from opsleuth.console.reading import found_run
from opsleuth.console.run_settings import parts
from opsleuth.console.stepper.lines import Read, Typed, script
from opsleuth.console.stepper.place import Place
from opsleuth.console.stepper.shell import Lines, Shell, completions
from opsleuth.graph.decisions import operator
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.folders import folder
from opsleuth.state.run_id import new_run_id


def step(options: Options, run_id: str, commands: Path | None) -> int:
    """`step`: raises UsageError where nobody can type and no commands are given."""
    run = found_run(options, run_id)
    clock, screen = SystemClock(), screen_of(options)
    typed = commands is None
    if typed and (options.no_input or options.json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError(
            "step needs a terminal, or a file of commands: --commands FILE (? in the stepper lists them)"
        )
    with Store.open(options.database, clock, Redactor()) as store:
        lines: Lines = Read() if commands is None else script(commands, screen)
        shell = Shell(
            store,
            Place(store, run.id),
            screen,
            lines,
            lambda: new_run_id(clock.now()),
            clock,
            parts(options, store.redactor),
            by=operator("command").name,
            limits=options.limits,
        )
        if typed and not options.plain and os.environ.get("TERM", "dumb") != "dumb":
            history = folder("XDG_STATE_HOME", ".local/state") / "step-history"
            shell.lines = Typed(history, lambda text: completions(shell, text))
        return asyncio.run(shell.sit())
