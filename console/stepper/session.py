"""A session at a run: what the stepper's commands use and change, and how it is shown."""

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.store import Store
from opsleuth.console.approval_questions import format_digest, render_question
from opsleuth.console.screen import Line, LinePart, Screen
from opsleuth.console.stepper import views
from opsleuth.console.stepper.cursor import StepperCursor
from opsleuth.console.stepper.line_sources import LineSource
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.graph.stepping.edits import Check
from opsleuth.graph.stepping.fork import call_checker_for
from opsleuth.graph.stepping.session import SteppingPace
from opsleuth.nodes.deps import Deps
from opsleuth.state.clock import Clock
from opsleuth.state.state_paths import NoSuchPathError, format_value_line, get_at_path


@dataclass
class StepperSession:
    """One session at one run, and at the branches that are made of it."""

    store: Store
    place: StepperCursor
    screen: Screen
    lines: LineSource
    new_id: Callable[[], str]
    clock: Clock
    parts: AttemptParts = field(default_factory=AttemptParts)
    by: str = "operator"
    limits: Mapping[str, Any] = field(default_factory=dict)
    """New totals for the first attempt."""
    watches: list[str] = field(default_factory=list)
    deps: Deps | None = field(default=None, init=False)
    """The surroundings of the run while it is held between two nodes."""
    stepping: SteppingPace = field(init=False)
    switched: bool = field(default=False, init=False)
    """Whether the last line went on to another run."""
    numbered: int = field(default=0, init=False)
    """The breakpoints so far: each has a number of its own."""

    def check(self) -> Check:
        """What validates an edited call, with the tools of this run."""
        return call_checker_for(self.parts, self.place.row)

    def say(self, *parts: LinePart | str) -> None:
        """One line."""
        self.screen.line(*parts)

    def show_whole(self, lines: Iterable[Line]) -> None:
        """Lines that nothing may be cut from, wrapped; at a terminal that they do not fit, in its pager."""
        wrapped = [line for parts in lines for line in self.screen.wrap_line(parts)]
        height = shutil.get_terminal_size().lines
        if self.screen.live and not self.lines.scripted and len(wrapped) > height - 2:
            click.echo_via_pager("\n".join(wrapped) + "\n")
            return
        self.screen.lines([line] for line in wrapped)

    def switch(self, run: str) -> None:
        """Go on in a branch; the run that is held now is left paused."""
        self.place.enter(run)
        self.switched, self.deps = True, None
        self.open()

    def show(self, why: str = "") -> None:
        """Where the run is: the loop, the calls, what changed, what is watched."""
        place, screen = self.place, self.screen
        self.say(LinePart(self._title(), "title"), LinePart(f"  {why}" if why else "", "warn"))
        screen.line(*views.render_loop(place.view, screen))
        screen.lines(views.render_pending_calls(place.view.values, place.results()))
        screen.lines(views.render_last_changes(place.before, place.view))
        for path in self.watches:
            self.say("  watch ", LinePart(path, "id"), f" {self._watched(path)}")
        for asked in self.store.approvals.list(place.row.id, "pending"):
            for line in render_question(asked, screen.width or 100, screen.encoding):
                self.say(line)
            self.say(LinePart(f"  {_format_answer_hint(asked)}", "warn"))

    def prompt(self) -> str:
        """`step> `, or where the view is if it is not at the head."""
        place = self.place
        staged = f" +{len(place.staged)} staged" if place.staged else ""
        return (
            f"step{staged}> "
            if place.at_head
            else f"view {place.view.name} (head {place.head.name}){staged}> "
        )

    def open(self) -> None:
        row = self.place.row
        self.say(LinePart(f"run {row.id}  {row.question}", "title"))
        if not self.lines.scripted:
            self.say(LinePart("  ? lists the commands; q leaves", "dim"))
        self.show()
        if self.place.alive and self.deps is None:
            self.say(
                LinePart(
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
            return format_value_line(get_at_path(self.place.view.values, path))
        except NoSuchPathError as error:
            return str(error)


def _format_answer_hint(asked: Approval) -> str:
    """What answers it here."""
    if asked.about == "effect":
        return f"resolve {asked.id} happened|absent REASON"
    return f"approve {asked.id} --digest {format_digest(asked.digest)}   or   deny {asked.id} REASON"
