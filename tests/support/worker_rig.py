"""Workers as processes of their own, in a made-up world where everything that is really done leaves a line in a file.

The folder's `script.json` holds the decisions. `looked.log` and `done.log` have a line with the run's id for every call.
"""

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from loop_rig import World

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.postgres import lease
from opsleuth.configuration.service_settings import parse_service_settings
from opsleuth.graph.lifecycle.first_state import OpenedSources
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.service.commands.worker import run_until_signal
from opsleuth.service.worker import RunWorker
from opsleuth.state.calls import Risk
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(
    ["worker_rig", "opsleuth.graph.lifecycle.session", "opsleuth.models.offline_planner"]
)
QUICK = {"heartbeat_seconds": 0.5, "stalled_seconds": 2.0}


LEASE_SECONDS = 2.0


class Slowly(Arguments):
    thing: str
    seconds: float = 0.0
    die: bool = False
    hang: bool = False


class Place:
    """The world of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gate = folder / "gate"

    def write(self, *script: Any) -> None:
        """Store the decisions of every run."""
        World(self.folder).write(*script)

    def lines(self, log: str) -> list[str]:
        """What was written to `looked` or `done`, in order: run and thing."""
        path = self.folder / f"{log}.log"
        return path.read_text().splitlines() if path.exists() else []

    def more_than_once(self) -> dict[str, int]:
        """Changes that were made again."""
        return {line: count for line, count in Counter(self.lines("done")).items() if count > 1}

    def parts(self) -> AttemptParts:
        return AttemptParts(
            sources=lambda _: OpenedSources(RunSources()),
            planner=lambda _: World(self.folder).planner(),
            specs=(
                self._spec("look", self._look, Risk.READ),
                self._spec("restart", self._restart, Risk.HIGH),
            ),
        )

    def _spec(self, name: str, run: Any, risk: Risk) -> ToolSpec:
        return ToolSpec(
            name=name,
            purpose="Do something with a thing.",
            not_for="Anything else.",
            arguments=Slowly,
            example={"thing": "a"},
            run=run,
            risk=risk,
            target=lambda arguments: arguments.thing if risk is Risk.HIGH else None,
        )

    async def _look(self, arguments: Slowly, context: ToolContext) -> ToolResult:
        self._log("looked", arguments, context)
        if arguments.die:
            os.kill(os.getpid(), signal.SIGKILL)
        if arguments.hang and len(self.lines("looked")) == 1:
            self.gate.read_bytes()  # the whole loop stands still until somebody opens the other end
        await asyncio.sleep(arguments.seconds)
        return ToolResult(record={"thing": arguments.thing, "value": 7}, headline="it is 7", source="rig")

    async def _restart(self, arguments: Slowly, context: ToolContext) -> ToolResult:
        self._log("done", arguments, context)
        await asyncio.sleep(arguments.seconds)
        return ToolResult(record={"changed": arguments.thing}, headline=f"changed {arguments.thing}")

    def _log(self, log: str, arguments: Slowly, context: ToolContext) -> None:
        line = f"{Path(context.folder or '').name} {arguments.thing}\n"
        with (self.folder / f"{log}.log").open("a") as out:
            out.write(line)


def worker(folder: Path, server: PostgresServer, concurrency: int, table: Mapping[str, Any]) -> RunWorker:
    """A worker in this world."""
    return RunWorker(
        server,
        parse_service_settings({**QUICK, **table}, "the test"),
        SystemClock(),
        concurrency,
        Place(folder).parts(),
    )


def started(folder: Path, server: PostgresServer, concurrency: int = 4, **table: Any) -> ForkServerProcess:
    """A worker as a process of its own, at once: one process has loaded everything, and forks."""
    process = FORKING.Process(target=_work, args=(folder, server.url, concurrency, table), daemon=True)
    process.start()
    return process


def _work(folder: Path, url: str, concurrency: int, table: Mapping[str, Any]) -> None:
    """What it says is added to `worker.log`."""
    lease.SECONDS = LEASE_SECONDS
    with (folder / "worker.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    asyncio.run(run_until_signal(worker(folder, PostgresServer(url, folder), concurrency, table)))
