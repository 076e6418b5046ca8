"""The stepper's conversation: read a line, do it, let the run go as far as was asked, show where it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsleuth.checkpoints.errors import StoreError
from opsleuth.checkpoints.history import END
from opsleuth.console import event_lines
from opsleuth.console.screen import LinePart
from opsleuth.console.stepper import command_words
from opsleuth.console.stepper.commands import COMMANDS, ShellExit
from opsleuth.console.stepper.session import StepperSession
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.stepping.session import StepGoal, SteppingPace, StepStop
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import ExitCode
from opsleuth.state.state_paths import NoSuchPathError

_SILENT = frozenset({"run.started", "run.resumed", "run.paused", "breakpoint.hit", "step.completed"})
"""Events that tell what the stepper shows by itself."""


@dataclass
class StepperShell(StepperSession):
    """Reads lines until the person leaves, and lets the run go in between."""

    def __post_init__(self) -> None:
        self.stepping = SteppingPace(self._hand_over)
        self._last = ""
        self._leaving = False
        self.outcome: AttemptOutcome | None = None

    async def run_session(self) -> int:
        """Run until the person leaves; returns the exit code. Raises the errors of scripted lines."""
        self.open()
        while True:
            goal = await self._converse()
            if goal is not None:
                await self._attempt(goal)
            if self._leaving:
                return int(self.outcome.exit_code) if self.outcome else ExitCode.OK

    async def _converse(self, *, held: bool = False) -> StepGoal | None:
        """Lines until one lets the run go, or leaves it: then None."""
        self.switched = False
        while True:
            line = await self.lines.read(self.prompt())
            if line is None:
                self._leaving = True
                return None
            try:
                done = await self._do(line)
            except (OpsleuthError, StoreError, NoSuchPathError) as error:
                if self.lines.scripted:
                    raise
                self.say(LinePart(f"  {error}", "bad"))
                continue
            if isinstance(done, StepGoal):
                return done
            if done == "leave" or (held and self.switched):
                self._leaving = done == "leave"
                return None

    async def _do(self, line: str) -> StepGoal | ShellExit | None:
        typed = command_words.parse_command_line(line, self._last)
        if typed is None:
            return None
        self._last = typed.name
        return await COMMANDS[typed.name](self, typed.rest)

    async def _hand_over(self, stop: StepStop) -> StepGoal | None:
        self.deps = stop.deps
        self.place.refresh()
        self.show(stop.why)
        return await self._converse(held=True)

    async def _attempt(self, goal: StepGoal) -> None:
        """Let the run go. Raises RunBusyError if another process holds it, UnreadableStoreError for another version's run."""
        run = self.place.row.id
        self.stepping.goal = goal
        runner = Runner(self.store, self._heard, self.clock, self.parts, pace=self.stepping)
        try:
            self.outcome = await runner.resume(run, self.limits)
            self.limits = {}
        except (OpsleuthError, StoreError) as error:
            if self.lines.scripted:
                raise
            self.say(LinePart(f"  {error}", "bad"))
        finally:
            self.deps = None
        if self.place.row.id == run:
            self.place.refresh()
            self._ended()

    def _ended(self) -> None:
        outcome = self.outcome
        if outcome is None or self._leaving:
            return
        if outcome.detail:
            self.say(LinePart(f"  {outcome.status}: {outcome.detail}", "warn"))
        self.show()
        if outcome.report and self.place.head.next == END:
            self.say(LinePart(f"  {outcome.report.get('answer', '')}", "title"))
            self.say(LinePart(f"  whole report: opsleuth report {outcome.run} --full", "dim"))

    def _heard(self, event: Mapping[str, Any]) -> None:
        if event["type"] not in _SILENT and event_lines.is_shown_live(event):
            self.screen.line(*event_lines.format_event_line(event, self.screen))
            self.screen.stream.flush()


def complete_line(shell: StepperShell, text: str) -> Sequence[str]:
    """What the word at the end of `text` may become."""
    words = text.split(" ")
    if len(words) == 1:
        return [name for name in command_words.list_command_names() if name.startswith(words[0])]
    return [path for path in _list_state_paths(shell.place.view.values) if path.startswith(words[-1])]


def _list_state_paths(values: JSON, path: str = "", depth: int = 0) -> list[str]:
    if depth > 3 or not isinstance(values, dict | list):
        return []
    items = values.items() if isinstance(values, dict) else enumerate(values)
    found = []
    for name, item in items:
        label = item["id"] if isinstance(item, dict) and isinstance(item.get("id"), str) else name
        here = f"{path}.{label}".lstrip(".")
        found += [here, *_list_state_paths(item, here, depth + 1)]
    return found
