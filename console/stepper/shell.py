"""The stepper's conversation: read a line, do it, let the run go as far as was asked, show where it stands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.errors import StoreError
from opsleuth.checkpoints.history import END
from opsleuth.checkpoints.store import Store
from opsleuth.console import events
from opsleuth.console.questions import hashed, panel
from opsleuth.console.screen import Part, Screen
from opsleuth.console.stepper import language, views
from opsleuth.console.stepper.commands import COMMANDS, Leave
from opsleuth.console.stepper.place import Place
from opsleuth.graph.edits import Check
from opsleuth.graph.fork import checking
from opsleuth.graph.outcome import Outcome
from opsleuth.graph.session import Runner
from opsleuth.graph.stepping import Goal, Stepping, Stop
from opsleuth.graph.wiring import Parts
from opsleuth.nodes.deps import Deps
from opsleuth.state.clock import Clock
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.outcome import ExitCode
from opsleuth.state.paths import NoSuchPath, get, shown

_SILENT = frozenset({"run.started", "run.resumed", "run.paused", "breakpoint.hit", "step.completed"})
"""Events that tell what the stepper shows by itself."""


class Lines(Protocol):
    """Where the lines come from; None at their end. `scripted` ones end at the first fault."""

    scripted: bool

    async def read(self, prompt: str) -> str | None: ...


@dataclass
class Shell:
    """One sitting at one run, and at the branches that are made of it."""

    store: Store
    place: Place
    screen: Screen
    lines: Lines
    new_id: Callable[[], str]
    clock: Clock
    parts: Parts = field(default_factory=Parts)
    by: str = "operator"
    limits: Mapping[str, Any] = field(default_factory=dict)
    """New totals for the first attempt."""
    watches: list[str] = field(default_factory=list)
    deps: Deps | None = field(default=None, init=False)
    """The surroundings of the run while it is held between two nodes."""

    def __post_init__(self) -> None:
        self.stepping = Stepping(self._hand_over)
        self._last = ""
        self._leaving = False
        self._switched = False
        self.outcome: Outcome | None = None
        self.numbered = 0

    async def sit(self) -> int:
        """Until the person leaves; returns the exit code. Raises what a scripted line raises."""
        self._open()
        while True:
            goal = await self._converse()
            if goal is not None:
                await self._attempt(goal)
            if self._leaving:
                return int(self.outcome.exit_code) if self.outcome else ExitCode.OK

    def check(self) -> Check:
        """What validates an edited call, with the tools of this run."""
        return checking(self.parts, self.place.row)

    def say(self, *parts: Part | str) -> None:
        """One line."""
        self.screen.line(*parts)

    def switch(self, run: str) -> None:
        """Go on in a branch; the run that is held now is left paused."""
        self.place.enter(run)
        self._switched, self.deps = True, None
        self._open()

    def show(self, why: str = "") -> None:
        """Where the run stands: the loop, the calls, what changed, what is watched."""
        place, screen = self.place, self.screen
        self.say(Part(self._title(), "title"), Part(f"  {why}" if why else "", "warn"))
        screen.line(*views.loop(place.view, screen))
        screen.lines(views.pending(place.view.values, place.results()))
        screen.lines(views.changed(place.before, place.view))
        for path in self.watches:
            self.say("  watch ", Part(path, "id"), f" {self._watched(path)}")
        for asked in self.store.approvals.list(place.row.id, "pending"):
            for line in panel(asked, screen.width or 100, screen.encoding):
                self.say(line)
            self.say(Part(f"  {_how(asked)}", "warn"))

    def prompt(self) -> str:
        """`step> `, or where the view is if it is not at the head."""
        place = self.place
        staged = f" +{len(place.staged)} staged" if place.staged else ""
        return (
            f"step{staged}> "
            if place.at_head
            else f"view {place.view.name} (head {place.head.name}){staged}> "
        )

    async def _converse(self, *, held: bool = False) -> Goal | None:
        """Lines until one lets the run go, or leaves it: then None."""
        self._switched = False
        while True:
            line = await self.lines.read(self.prompt())
            if line is None:
                self._leaving = True
                return None
            try:
                done = await self._do(line)
            except (OpsleuthError, StoreError, NoSuchPath) as error:
                if self.lines.scripted:
                    raise
                self.say(Part(f"  {error}", "bad"))
                continue
            if isinstance(done, Goal):
                return done
            if done is Leave.NOW or (held and self._switched):
                self._leaving = done is Leave.NOW
                return None

    async def _do(self, line: str) -> Goal | Leave | None:
        typed = language.read(line, self._last)
        if typed is None:
            return None
        self._last = typed.name
        return await COMMANDS[typed.name](self, typed.rest)

    async def _hand_over(self, stop: Stop) -> Goal | None:
        self.deps = stop.deps
        self.place.refresh()
        self.show(stop.why)
        return await self._converse(held=True)

    async def _attempt(self, goal: Goal) -> None:
        """Let the run go. Raises Busy if another process holds it, Unreadable for another version's run."""
        run = self.place.row.id
        self.stepping.goal = goal
        runner = Runner(self.store, self._heard, self.clock, self.parts, pace=self.stepping)
        try:
            self.outcome = await runner.resume(run, self.limits)
            self.limits = {}
        except (OpsleuthError, StoreError) as error:
            if self.lines.scripted:
                raise
            self.say(Part(f"  {error}", "bad"))
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
            self.say(Part(f"  {outcome.status}: {outcome.detail}", "warn"))
        self.show()
        if outcome.report and self.place.head.next == END:
            self.say(Part(f"  {outcome.report.get('answer', '')}", "title"))
            self.say(Part(f"  whole report: opsleuth report {outcome.run} --full", "dim"))

    def _open(self) -> None:
        row = self.place.row
        self.say(Part(f"run {row.id}  {row.question}", "title"))
        self.show()
        if self.place.alive and self.deps is None:
            self.say(
                Part(
                    f"  process {row.pid} on {row.host} works on it: `pause` asks it to stop, then step here",
                    "warn",
                )
            )

    def _title(self) -> str:
        place = self.place
        where = "" if place.at_head else f" of {place.head.name}"
        held = "held here" if self.deps is not None else str(place.row.status)
        return f"({place.row.id} {place.view.name}{where} | next: {place.view.next})  {held}"

    def _watched(self, path: str) -> str:
        try:
            return shown(get(self.place.view.values, path))
        except NoSuchPath as error:
            return str(error)

    def _heard(self, event: Any) -> None:  # noqa: ANN401 - an event of the trace
        if event["type"] not in _SILENT and events.shown_live(event):
            self.screen.line(*events.line(event, self.screen))
            self.screen.stream.flush()


def _how(asked: Approval) -> str:
    """What answers it here."""
    if asked.about == "effect":
        return f"resolve {asked.id} happened|absent REASON"
    return f"approve {asked.id} --hash {hashed(asked.digest)}   or   deny {asked.id} REASON"


def completions(shell: Shell, text: str) -> Sequence[str]:
    """What the word at the end of `text` may become."""
    words = text.split(" ")
    if len(words) == 1:
        return [name for name in language.names() if name.startswith(words[0])]
    return [path for path in _paths(shell.place.view.values) if path.startswith(words[-1])]


def _paths(values: Any, path: str = "", depth: int = 0) -> list[str]:  # noqa: ANN401 - any JSON value
    if depth > 3 or not isinstance(values, dict | list):
        return []
    items = values.items() if isinstance(values, dict) else enumerate(values)
    found = []
    for name, item in items:
        label = item["id"] if isinstance(item, dict) and isinstance(item.get("id"), str) else name
        here = f"{path}.{label}".lstrip(".")
        found += [here, *_paths(item, here, depth + 1)]
    return found
