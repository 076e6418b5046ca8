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
from opsleuth.console import run_settings
from opsleuth.console.options import GlobalOptions
from opsleuth.console.run_attempt import attempt_run
from opsleuth.graph.lifecycle.first_state import StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models.planner import PlannerResult, PlannerView
from opsleuth.models.scripted_planner import ScriptedPlanner

RUN = "inv-20240501-seat"
STUCK = "the planner hangs"


class Moody(ScriptedPlanner):
    """A scripted planner that may hang or break."""

    folder: Path

    async def decide(self, view: PlannerView) -> PlannerResult:
        if (self.folder / "broken").exists():
            raise RuntimeError("the planner fell over")
        if (self.folder / "stuck").exists():
            (self.folder / "stuck").unlink()
            sys.stderr.write(f"{STUCK}\n")
            sys.stderr.flush()
            await asyncio.Event().wait()
        return await super().decide(view)


def parts_of(folder: Path) -> AttemptParts:
    world = World(folder)

    def planner(_: str) -> Moody:
        made = Moody(world.script())
        made.folder = folder
        return made

    return replace(world.parts(), planner=planner)


def main(folder: str, verb: str, *flags: str) -> int:
    run_settings.build_run_parts = lambda *_: parts_of(Path(folder))
    if verb == "cli":
        cli.main(["--db", str(Path(folder) / "store.db"), *flags])
    options = GlobalOptions(
        db=Path(folder) / "store.db", json="--json" in flags, no_input="--no-input" in flags
    )

    def work(runner: Runner) -> Coroutine[Any, Any, AttemptOutcome]:
        if verb == "resume":
            return runner.resume(RUN, {})
        return runner.start(StartRequest(run=RUN, question="what is the matter", since=SINCE, until=UNTIL))

    return attempt_run(options, work)


if __name__ == "__main__":
    from opsleuth.console.error_reporting import report_error

    try:
        code = main(*sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # noqa: BLE001 - as the command line does
        code = report_error(error)
    sys.exit(code)
