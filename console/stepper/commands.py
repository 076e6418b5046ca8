"""The stepper's commands: each takes the shell and the rest of the line. A goal lets the run go."""

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from opsleuth.checkpoints.history import END, Point
from opsleuth.console import tables
from opsleuth.console.screen import Part
from opsleuth.console.stepper import language, views
from opsleuth.graph import by_hand, decisions
from opsleuth.graph.breakpoints import NODES, parse
from opsleuth.graph.edits import Edit, changes, edited
from opsleuth.graph.fork import Branch, fork
from opsleuth.graph.stepping import Goal
from opsleuth.state.calls import Call
from opsleuth.state.canonical import from_json
from opsleuth.state.errors import UsageError
from opsleuth.state.paths import get, plain
from opsleuth.state.words import counted

if TYPE_CHECKING:
    from opsleuth.console.stepper.shell import Shell

MOST_LINES = 60
"""Lines of evidence that are shown at once."""


class Leave(Enum):
    """What ends the sitting."""

    NOW = "now"


Command = Callable[["Shell", str], Awaitable[Goal | Leave | None]]


def _goes(how: Any) -> Command:  # noqa: ANN401 - one of the words of a goal
    async def go(shell: "Shell", rest: str) -> Goal:
        if how == "until" and rest not in NODES:
            raise UsageError(f"until which node? The nodes are {', '.join(NODES)}")
        shell.place.must_be_at_head()
        return Goal(how, rest)

    return go


async def _break(shell: "Shell", rest: str, *, once: bool = False) -> None:
    points = shell.stepping.breakpoints
    if rest:
        shell.numbered += 1
        points.append(parse(rest, shell.numbered, once=once))
    shell.screen.lines(views.breakpoints(points))


async def _tbreak(shell: "Shell", rest: str) -> None:
    await _break(shell, rest, once=True)


async def _clear(shell: "Shell", rest: str) -> None:
    points = shell.stepping.breakpoints
    kept = [point for point in points if str(point.number) != rest]
    if len(kept) == len(points):
        raise UsageError(f"no breakpoint {rest!r}: b lists them")
    points[:] = kept
    shell.screen.lines(views.breakpoints(points))


async def _list(shell: "Shell", _: str) -> None:
    shell.show()


async def _where(shell: "Shell", _: str) -> None:
    place = shell.place
    point, row = place.view, place.row
    shell.say(f"  run {row.id}  {row.question}")
    if row.parent:
        shell.say(f"  fork of {row.parent} at {row.parent_checkpoint}")
    shell.say(f"  turn {point.turn}, {point.name} of {place.head.name}, next {point.next}")
    shell.screen.lines(views.pending(point.values, place.results()))
    for asked in shell.store.approvals.list(row.id, "pending"):
        shell.say(f"  waits for {asked.id}")


async def _history(shell: "Shell", rest: str) -> None:
    count = int(rest) if rest.isdecimal() and int(rest) else 20
    shell.screen.lines(views.history(shell.place.points, shell.place.view, count, shell.screen))


async def _tree(shell: "Shell", _: str) -> None:
    shell.screen.lines(views.tree(shell.place.branches(), shell.place.row.id, shell.screen))


async def _print(shell: "Shell", rest: str, *, pretty: bool = False) -> None:
    shell.screen.lines(views.printed(rest, get(shell.place.view.values, rest), pretty=pretty))


async def _pretty(shell: "Shell", rest: str) -> None:
    await _print(shell, rest, pretty=True)


async def _diff(shell: "Shell", rest: str) -> None:
    place = shell.place
    names = rest.split()
    after = place.point(names[1]) if len(names) > 1 else place.view
    before = place.point(names[0]) if names else place.before
    if before is None:
        raise UsageError("c0 is the first checkpoint: there is none before it")
    shell.say(f"  {before.name} -> {after.name}")
    shell.screen.lines(views.diff(before.values, after.values))


async def _evidence(shell: "Shell", rest: str) -> None:
    name, _, more = rest.partition(" ")
    run = shell.place.row.id
    if not name:
        shell.screen.lines(tables.evidence_list(shell.store.evidence.list(run), shell.screen))
        return
    row = shell.store.evidence.get(run, name.upper())
    lines = list(tables.evidence(row, shell.store.evidence.record(run, row.id), shell.screen))
    shown = lines if more == "all" else lines[:MOST_LINES]
    shell.screen.lines(shown)
    if len(lines) > len(shown):
        shell.say(Part(f"  {counted(len(lines) - len(shown), 'more line')}: ev {row.id} all", "dim"))


async def _watch(shell: "Shell", rest: str) -> None:
    if rest.startswith("-"):
        shell.watches[:] = [path for path in shell.watches if path != rest[1:]]
    elif rest:
        get(shell.place.view.values, rest)
        shell.watches.append(rest)
    shell.say(f"  watched: {', '.join(shell.watches) or 'nothing'}")


async def _up(shell: "Shell", _: str) -> None:
    _look(shell, shell.place.before, "c0 is the first checkpoint")


async def _down(shell: "Shell", _: str) -> None:
    place = shell.place
    after = None if place.at_head else place.points[place.view.number + 1]
    _look(shell, after, f"{place.head.name} is the newest checkpoint")


async def _goto(shell: "Shell", rest: str) -> None:
    _look(shell, shell.place.point(rest), "")


def _look(shell: "Shell", point: Point | None, otherwise: str) -> None:
    if point is None:
        raise UsageError(otherwise)
    shell.place.look(point)
    shell.show()


async def _set(shell: "Shell", rest: str) -> None:
    path, equals, value = rest.partition("=")
    if not equals:
        raise UsageError("set PATH=VALUE: the value is JSON, or a bare word")
    _stage(shell, Edit(path.strip(), plain(value.strip())))


async def _edit(shell: "Shell", rest: str) -> None:
    if shell.lines.scripted:
        raise UsageError("edit opens an editor: in a script write set PATH=VALUE")
    before = json.dumps(get(_staged_values(shell), rest), ensure_ascii=False, indent=2)
    text = click.edit(before, extension=".json")
    if text is None or text.strip() == before.strip():
        shell.say("  nothing was changed")
        return
    try:
        value = from_json(text)
    except ValueError as error:
        raise UsageError(f"it is no JSON any more ({error}); nothing was staged") from None
    edits = [Edit(rest, value)] if rest else [Edit(name, value[name]) for name in value]
    for edit in edits:
        if get(_staged_values(shell), edit.path) != edit.value:
            _stage(shell, edit)


def _stage(shell: "Shell", edit: Edit) -> None:
    """Check the edit together with those before it; show what it replaces."""
    place = shell.place
    if place.view.next == END:
        raise UsageError("the run is over here: goto an earlier checkpoint first")
    before = _staged_values(shell)
    after = _applied(shell, [*place.staged, edit])
    place.staged.append(edit)
    shell.screen.lines(views.diff(before, after))
    shell.say(Part("  staged: it replaces what is there. commit makes a branch, undo drops it", "dim"))


def _staged_values(shell: "Shell") -> Mapping[str, Any]:
    return _applied(shell, shell.place.staged) if shell.place.staged else shell.place.view.values


def _applied(shell: "Shell", edits: list[Edit]) -> Mapping[str, Any]:
    view = shell.place.view
    return edited(view.values, edits, run="branch", going_to=view.next, check=shell.check())


async def _undo(shell: "Shell", _: str) -> None:
    if not shell.place.staged:
        raise UsageError("nothing is staged")
    edit = shell.place.staged.pop()
    shell.say(f"  dropped: {edit.path}; {len(shell.place.staged)} staged")


async def _commit(shell: "Shell", rest: str) -> None:
    if not shell.place.staged:
        raise UsageError("nothing is staged: set PATH=VALUE stages an edit; fork makes a branch without one")
    _branch(shell, shell.place.view, _options(rest, "commit [--name N]").get("name"))


async def _fork(shell: "Shell", rest: str) -> None:
    shell.place.refuse_staged()
    given = _options(rest, "fork [C] [--name N]")
    point = shell.place.point(given[""]) if given.get("") else shell.place.view
    _branch(shell, point, given.get("name"))


def _branch(shell: "Shell", point: Point, name: str | None) -> None:
    branch = Branch(name, tuple(shell.place.staged), shell.by)
    made = fork(shell.store, point, shell.new_id, shell.check(), branch)
    shell.say(f"  branch {made.run.id} from {point.run}@{point.name}")
    for row in made.done:
        shell.say(
            Part(
                f"  done after {point.name} and not undone by a branch: {row.tool} {row.target or ''} ({row.status})",
                "warn",
            )
        )
    for path, before, after in changes(point.values, shell.store.history.find(made.run.id).values):
        if not path.startswith("pending"):
            shell.screen.lines(views.diff({path: before}, {path: after}))
    shell.switch(made.run.id)


async def _skip(shell: "Shell", rest: str) -> None:
    name, _, reason = rest.partition(" ")
    call = _pending(shell, name)
    by_hand.skip(shell.store, shell.place.row.id, call, reason.strip())
    shell.show()


async def _retry(shell: "Shell", rest: str) -> Goal:
    call = _pending(shell, rest)
    return Goal("retry", by_hand.short(call))


async def _inject(shell: "Shell", rest: str) -> None:
    name, equals, text = rest.partition("=")
    record = plain(text.strip())
    if not equals or not isinstance(record, dict):
        raise UsageError("inject CALL={…}: the result is a JSON object")
    by_hand.inject(shell.store, shell.place.row.id, _pending(shell, name.strip()), record)
    shell.show()


def _pending(shell: "Shell", name: str) -> Call:
    """A pending call at the head; the only one if it is not named."""
    place = shell.place
    place.must_be_at_head()
    if place.view.next != "act":
        raise UsageError(f"no call is about to be made: the next node is {place.view.next}")
    if not name and len(place.state.pending) == 1:
        return place.state.pending[0]
    return by_hand.find(place.state, name)


async def _approve(shell: "Shell", rest: str) -> None:
    usage = "approve A1 --hash H [--confirm-target T]"
    given = _options(rest, usage)
    if "" not in given or "hash" not in given:
        raise UsageError(f"{usage}: the digest says to exactly which call")
    run, person = shell.place.row.id, decisions.Person(shell.by, "command")
    confirm = given.get("confirm-target")
    approved = decisions.approve(shell.store, run, given[""], given["hash"], person, confirm=confirm)
    shell.say(Part(f"  {approved.id} approved; it runs with n or c, until {approved.expires}", "good"))


async def _deny(shell: "Shell", rest: str) -> None:
    name, _, reason = rest.partition(" ")
    if not reason.strip():
        raise UsageError("deny A1 REASON: the planner is told why")
    person = decisions.Person(shell.by, "command")
    denied = decisions.deny(shell.store, shell.place.row.id, name, reason.strip(), person)
    shell.say(Part(f"  {denied.id} denied; the run goes on without it", "warn"))


async def _resolve(shell: "Shell", rest: str) -> None:
    name, outcome, *reason = [*rest.split(" ", 2), "", ""]
    if outcome not in ("happened", "absent") or not reason[0]:
        raise UsageError("resolve A1 happened|absent REASON: how you know goes into the record")
    person = decisions.Person(shell.by, "command")
    decisions.resolve(shell.store, shell.place.row.id, name, outcome, reason[0], person)  # type: ignore[arg-type]
    shell.say(f"  {name}: {outcome}")


async def _note(shell: "Shell", rest: str) -> None:
    if not rest:
        raise UsageError("note TEXT: what the planner shall be told")
    shell.store.control.set(shell.place.row.id, "note", rest)
    shell.say("  noted: the planner is told at its next turn")


async def _pause(shell: "Shell", _: str) -> None:
    if shell.deps is not None or not shell.place.alive:
        raise UsageError("no other process works on this run")
    shell.store.control.set(shell.place.row.id, "pause")
    shell.say("  asked; it stops before its next node, then n steps here")


async def _quit(_: "Shell", __: str) -> Leave:
    return Leave.NOW


async def _help(shell: "Shell", rest: str) -> None:
    shell.screen.lines(views.words(language.about(rest)))
    if not rest:
        shell.say(
            Part(
                "  An empty line repeats n or s, nothing else. The value of set is JSON or a bare word.",
                "dim",
            )
        )


def _options(rest: str, usage: str) -> dict[str, str]:
    """`--name value` pairs and one bare word (under ""). Raises UsageError."""
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"{usage}: {error}") from None
    given: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            name, value = "", word
        elif words:
            name, value = word[2:], words.pop(0)
        else:
            raise UsageError(f"{usage}: {word} needs a value")
        if name in given or (name and f"--{name}" not in usage):
            raise UsageError(f"{usage}: what is {word!r}?")
        given[name] = value
    return given


COMMANDS: Mapping[str, Command] = {
    "n": _goes("next"),
    "s": _goes("into"),
    "c": _goes("continue"),
    "until": _goes("until"),
    "finish": _goes("finish"),
    "b": _break,
    "tbreak": _tbreak,
    "cl": _clear,
    "l": _list,
    "w": _where,
    "h": _history,
    "tree": _tree,
    "p": _print,
    "pp": _pretty,
    "diff": _diff,
    "ev": _evidence,
    "watch": _watch,
    "u": _up,
    "d": _down,
    "goto": _goto,
    "set": _set,
    "edit": _edit,
    "undo": _undo,
    "commit": _commit,
    "fork": _fork,
    "skip": _skip,
    "retry": _retry,
    "inject": _inject,
    "approve": _approve,
    "deny": _deny,
    "resolve": _resolve,
    "note": _note,
    "pause": _pause,
    "q": _quit,
    "?": _help,
}
