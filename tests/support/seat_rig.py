"""The command line's own way of running, over a world of `loop_rig`: for real terminals, signals and exit codes.

`seat_rig.py WORLD start|resume [--no-input] [--json]`, or `seat_rig.py WORLD cli WORDS` for any other command. A file `stuck` in the world makes the planner hang once (it says so
on stderr), a file `broken` makes it raise what nobody foresaw.
"""

import asyncio
import sys
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from loop_rig import SINCE, UNTIL, World

from opsleuth import cli
from opsleuth.console import run_settings, running
from opsleuth.console.options import Options
from opsleuth.graph.outcome import Outcome
from opsleuth.graph.prepare import StartRequest
from opsleuth.graph.session import Runner
from opsleuth.graph.wiring import Parts
from opsleuth.models.planner import Decided, PlannerView
from opsleuth.models.scripted import ScriptedPlanner

RUN = "inv-20240501-seat"
STUCK = "the planner hangs"


class Moody(ScriptedPlanner):
    """A scripted planner that may hang or break."""

    folder: Path

    async def decide(self, view: PlannerView) -> Decided:
        if (self.folder / "broken").exists():
            raise RuntimeError("the planner fell over")
        if (self.folder / "stuck").exists():
            (self.folder / "stuck").unlink()
            sys.stderr.write(f"{STUCK}\n")
            sys.stderr.flush()
            await asyncio.Event().wait()
        return await super().decide(view)


def parts_of(folder: Path) -> Parts:
    world = World(folder)

    def planner(_: str) -> Moody:
        made = Moody(world.planner()._script)
        made.folder = folder
        return made

    return replace(world.parts(), planner=planner)


def main(folder: str, verb: str, *flags: str) -> int:
    run_settings.parts = lambda *_: parts_of(Path(folder))
    if verb == "cli":
        cli.main(["--db", str(Path(folder) / "store.db"), *flags])
    options = Options(db=Path(folder) / "store.db", json="--json" in flags, no_input="--no-input" in flags)

    def work(runner: Runner) -> Coroutine[Any, Any, Outcome]:
        if verb == "resume":
            return runner.resume(RUN, {})
        return runner.start(StartRequest(run=RUN, question="what is the matter", since=SINCE, until=UNTIL))

    return running.attempt(options, work)


if __name__ == "__main__":
    from opsleuth.console.failure import told

    try:
        code = main(*sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # noqa: BLE001 - as the command line does
        code = told(error)
    sys.exit(code)
