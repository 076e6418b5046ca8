"""A small world to step in: a scripted planner, a clock that stands still, ids that are counted.

As a program: `step_rig.py WORLD [COMMANDS]` begins a run that stops before its first act, then sits down at it,
with the commands of a file or at the terminal.
"""

import asyncio
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loop_rig import Loop, concludes, looks

from opsleuth.console.screen import open_screen
from opsleuth.console.stepper.cursor import StepperCursor
from opsleuth.console.stepper.line_sources import LineSource, PromptLines, read_script_file
from opsleuth.console.stepper.shell import StepperShell, complete_line
from opsleuth.graph.stepping.session import PauseAtNode
from opsleuth.state.clock import FakeClock

RUN = "inv-20240501-test"
OPENS: Mapping[str, Any] = {
    "reason": "a may be broken",
    "plan": [{"text": "look at a and b"}],
    "hypotheses": [{"text": "a is broken", "service": "a"}],
    "calls": [
        {"tool": "look", "arguments": {"thing": "a"}, "tests": "H1"},
        {"tool": "look", "arguments": {"thing": "b"}},
    ],
}
SCRIPT: Sequence[Any] = (
    OPENS,
    {**looks("订单服务"), "hypotheses": [{"id": "H1", "status": "supported", "supporting": ["E1"]}]},
    concludes("a is 13277057", "E1"),
)


def begun(folder: Path, *entries: Any, node: str = "act") -> Loop:
    """A run that stands before the first `node`."""
    loop = Loop(folder, FakeClock(datetime(2024, 5, 1, 15, tzinfo=UTC)))
    runner = loop.runner
    loop.runner = replace(runner, pace=PauseAtNode(node))
    loop.start(*(entries or SCRIPT), run=RUN)
    loop.runner = runner
    return loop


def counted() -> Callable[[], str]:
    """Ids in order, from inv-20240501-b002 on."""
    numbers = itertools.count(2)
    return lambda: f"inv-20240501-b{next(numbers):03}"


def shell_of(loop: Loop, lines: LineSource, screen: Any) -> StepperShell:
    """The stepper at that run."""
    parts = loop.world.parts()
    return StepperShell(
        loop.store,
        StepperCursor(loop.store, RUN),
        screen,
        lines,
        counted(),
        loop.clock,
        parts,
        by="an operator",
    )


def main(folder: str, *commands: str) -> int:
    loop = begun(Path(folder))
    screen = open_screen(sys.stdout)
    if commands:
        return asyncio.run(shell_of(loop, read_script_file(Path(commands[0]), screen), screen).run_session())
    shell: StepperShell
    typed = PromptLines(Path(folder) / "history", lambda text: complete_line(shell, text))
    shell = shell_of(loop, typed, screen)
    return asyncio.run(shell.run_session())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
