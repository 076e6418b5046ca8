"""A whole run with a scripted planner and two small tools, in this process or as a program of its own.

The world is a folder: `script.json` holds the decisions, `looked.log` and `done.log` a line for every time a
tool really ran, `store.db` the store. So what happened can be counted from outside, whatever was killed.
As a program: `loop_rig.py WORLD start|resume RUN [KILL_AFTER]` prints the outcome as one JSON line; with
KILL_AFTER it dies when so many calls have been completed.
"""

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import OpenedSources, StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models.planner import MalformedReplyError, ModelUnavailableError, PlannerError
from opsleuth.models.scripted_planner import ScriptedPlanner
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.clock import Clock, SystemClock
from opsleuth.state.decision import Decision
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import (
    Arguments,
    ToolContext,
    ToolResult,
    ToolSpec,
    TransientError,
    UnavailableError,
)
from opsleuth.tools.subprocesses import run_command

SINCE, UNTIL = datetime(2024, 5, 1, 14, tzinfo=UTC), datetime(2024, 5, 1, 15, tzinfo=UTC)
ERRORS: Mapping[str, type[PlannerError]] = {
    "malformed": MalformedReplyError,
    "unavailable": ModelUnavailableError,
}

Behaviour = Literal[
    "ok",
    "none",
    "missing",
    "boom",
    "reset",
    "reset_once",
    "down",
    "down_once",
    "hang",
    "hang_once",
    "command_once",
    "big",
    "huge",
    "kill_once",
]


COMMAND = "sleep 300 & echo $$ > commands; wait"
"""Says the id of its process group to the FIFO `commands`, and has a child of its own."""


HUGE = 50_000_000
"""Characters that a look at something huge gives."""
HUGE_LINE = "2024-05-01T12:00:00Z GET /orders 200 12 ms, and nothing else to tell of it\n"


class Look(Arguments):
    thing: str
    behave: Behaviour = "ok"
    limit: int = 10


class Change(Arguments):
    thing: str
    behave: Literal["ok", "kill_once", "hang_once"] = "ok"
    command: str | None = None


class World:
    """The folder of one world."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spent: ModelCallCost | None = None

    def write(self, *script: Any) -> None:
        """Store the script: decisions as JSON, or `{"error": KIND, "text": …}`."""
        (self.folder / "script.json").write_text(json.dumps(script))

    def script(self) -> list[Decision | PlannerError]:
        """The stored script."""
        return [_entry(entry) for entry in json.loads((self.folder / "script.json").read_text())]

    def planner(self) -> ScriptedPlanner:
        return ScriptedPlanner(self.script(), self.spent)

    def lines(self, log: str) -> list[str]:
        """What was written to `looked` or `done`, in order."""
        path = self.folder / f"{log}.log"
        return path.read_text().splitlines() if path.exists() else []

    def specs(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec(
                name="look",
                purpose="Look at a thing.",
                not_for="Changing it.",
                arguments=Look,
                example={"thing": "a"},
                run=self._look,
            ),
            ToolSpec(
                name="change",
                purpose="Change a thing.",
                not_for="Looking at it.",
                arguments=Change,
                example={"thing": "a"},
                run=self._change,
                risk=Risk.LOW,
                target=lambda arguments: arguments.thing,
            ),
            ToolSpec(
                name="restart",
                purpose="Restart a thing.",
                not_for="Looking at it.",
                arguments=Change,
                example={"thing": "a"},
                run=self._change,
                risk=Risk.HIGH,
                target=lambda arguments: arguments.thing,
            ),
        )

    def parts(self) -> AttemptParts:
        return AttemptParts(
            sources=lambda _: OpenedSources(RunSources()),
            planner=lambda _: self.planner(),
            specs=self.specs(),
        )

    async def _look(self, arguments: Look, _: ToolContext) -> ToolResult:
        self._log("looked", arguments.thing)
        await self._misbehave(arguments.behave, arguments.thing)
        status = {"none": ResultStatus.NONE_MATCHED, "missing": ResultStatus.NOT_RECORDED}.get(
            arguments.behave, ResultStatus.OK
        )
        value = int(hashlib.sha256(arguments.thing.encode()).hexdigest()[:6], 16)
        record: dict[str, Any] = {"thing": arguments.thing, "value": value}
        if arguments.behave == "big":
            record["text"] = value.to_bytes(8).hex() * 3_000
        if arguments.behave == "huge":
            record["text"] = f"first line\n{HUGE_LINE * (HUGE // len(HUGE_LINE))}last line"
        if status is not ResultStatus.OK:
            record |= {"scanned": 14_200 if status is ResultStatus.NONE_MATCHED else 0, "matched": 0}
        return ToolResult(
            record=record, headline=f"{arguments.thing} is {value}", status=status, source="rig"
        )

    async def _change(self, arguments: Change, _: ToolContext) -> ToolResult:
        self._log("done", arguments.thing)
        await self._misbehave(arguments.behave, arguments.thing)
        return ToolResult(record={"changed": arguments.thing}, headline=f"changed {arguments.thing}")

    async def _misbehave(self, behave: str, thing: str) -> None:
        if behave == "boom":
            raise RuntimeError(f"{thing} fell over")
        if behave == "down" or (behave == "down_once" and self._first(f"down-{thing}")):
            raise UnavailableError(f"{thing} is down")
        if behave == "reset" or (behave == "reset_once" and self._first(f"reset-{thing}")):
            raise TransientError(f"{thing}: connection reset")
        if behave == "hang" or (behave == "hang_once" and self._first(f"hung-{thing}")):
            await asyncio.Event().wait()
        if behave == "command_once" and self._first(f"ran-{thing}"):
            await run_command(["sh", "-c", COMMAND], seconds=300.0, folder=self.folder)
        if behave == "kill_once" and self._first(f"killed-{thing}"):
            os.kill(os.getpid(), signal.SIGKILL)

    def _first(self, marker: str) -> bool:
        path = self.folder / marker
        if path.exists():
            return False
        path.touch()
        return True

    def _log(self, log: str, line: str) -> None:
        with (self.folder / f"{log}.log").open("a") as out:
            out.write(line + "\n")


def _entry(entry: Mapping[str, Any]) -> Decision | PlannerError:
    if "error" in entry:
        return ERRORS[entry["error"]](entry.get("text", "no reason given"))
    return Decision.model_validate(entry)


def looks(*things: str | Mapping[str, Any], tool: str = "look") -> dict[str, Any]:
    """A decision that calls the tool once for each thing."""
    arguments = [{"thing": t} if isinstance(t, str) else dict(t) for t in things]
    return {"reason": "look", "calls": [{"tool": tool, "arguments": a} for a in arguments]}


def concludes(text: str, *evidence: str, **more: Any) -> dict[str, Any]:
    """A decision that concludes with one claim on this evidence."""
    claims = [{"id": "C1", "text": text, "evidence": list(evidence)}] if evidence else []
    conclusion = {"verdict": "answered" if evidence else "inconclusive", "answer": text, "claims": claims}
    return {"reason": "enough", "conclusion": conclusion | more}


class Loop:
    """Runs of one world in this process."""

    def __init__(self, folder: Path, clock: Clock | None = None, place: Place | None = None) -> None:
        self.world = World(folder)
        self.clock = clock or SystemClock()
        self.store = Store.open(place or folder / "store.db", self.clock, Redactor())
        self.events: list[Mapping[str, Any]] = []
        self.listen(self.events.append)

    def listen(self, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        """Let this function hear the events of what is run from now on."""
        self.runner = Runner(self.store, on_event, self.clock, self.world.parts())

    def start(self, *script: Any, run: str = "inv-20240501-test", **limits: Any) -> AttemptOutcome:
        if script:
            self.world.write(*script)
        request = StartRequest(
            run=run, question="what is the matter", since=SINCE, until=UNTIL, limits=limits
        )
        return asyncio.run(self.runner.start(request))

    def resume(self, run: str = "inv-20240501-test", **limits: Any) -> AttemptOutcome:
        return asyncio.run(self.runner.resume(run, limits))

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def _deadly(calls: int) -> Callable[[Mapping[str, Any]], None]:
    heard: list[str] = []

    def hear(event: Mapping[str, Any]) -> None:
        heard.append(event["type"])
        if heard.count("tool.completed") == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    return hear


def main(arguments: Sequence[str]) -> int:
    folder, verb, run, *rest = arguments
    loop = Loop(Path(folder))
    if rest:
        loop.listen(_deadly(int(rest[0])))
    act: Callable[..., AttemptOutcome] = loop.start if verb == "start" else loop.resume
    outcome = act(run=run)
    answer = (outcome.report or {}).get("answer")
    print(json.dumps({"status": outcome.status, "reason": outcome.stop_reason, "answer": answer}))
    return int(outcome.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
