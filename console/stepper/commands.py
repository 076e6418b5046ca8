"""The stepper's commands: each takes the shell and the rest of the line. A goal lets the run go."""

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import click

from opsleuth.checkpoints.effects import Outcome
from opsleuth.checkpoints.history import END, CheckpointPoint
from opsleuth.console import run_tables
from opsleuth.console.screen import LinePart
from opsleuth.console.stepper import command_words, views
from opsleuth.console.stepper.session import StepperSession
from opsleuth.graph.approvals import decisions
from opsleuth.graph.stepping import by_hand
from opsleuth.graph.stepping.breakpoints import NODES, parse_breakpoint
from opsleuth.graph.stepping.edits import StateEdit, apply_state_edits, list_state_changes
from opsleuth.graph.stepping.fork import ForkRequest, fork_run
from opsleuth.graph.stepping.session import How, StepGoal
from opsleuth.state.calls import Call
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError
from opsleuth.state.plurals import format_count
from opsleuth.state.state_paths import get_at_path, parse_typed_value

MOST_LINES = 60
"""Lines of evidence that are shown at once."""


ShellExit = Literal["leave"]
"""What ends the sitting."""

StepperCommand = Callable[[StepperSession, str], Awaitable[StepGoal | ShellExit | None]]


def _make_goal_command(how: How) -> StepperCommand:
    async def go(shell: StepperSession, rest: str) -> StepGoal:
        if how == "until" and rest not in NODES:
            raise UsageError(f"until which node? The nodes are {', '.join(NODES)}")
        shell.place.must_be_at_head()
        return StepGoal(how, rest)

    return go


async def _set_breakpoint(shell: StepperSession, rest: str, *, once: bool = False) -> None:
    points = shell.stepping.breakpoints
    if rest:
        shell.numbered += 1
        points.append(parse_breakpoint(rest, shell.numbered, once=once))
    shell.screen.lines(views.render_breakpoints(points))


async def _set_temporary_breakpoint(shell: StepperSession, rest: str) -> None:
    await _set_breakpoint(shell, rest, once=True)


async def _clear_breakpoint(shell: StepperSession, rest: str) -> None:
    points = shell.stepping.breakpoints
    kept = [point for point in points if str(point.number) != rest]
    if len(kept) == len(points):
        raise UsageError(f"no breakpoint {rest!r}: b lists them")
    points[:] = kept
    shell.screen.lines(views.render_breakpoints(points))


async def _show_loop(shell: StepperSession, _: str) -> None:
    shell.show()


async def _show_position(shell: StepperSession, _: str) -> None:
    place = shell.place
    point, row = place.view, place.row
    shell.say(f"  run {row.id}  {row.question}")
    if row.parent:
        shell.say(f"  fork of {row.parent} at {row.parent_checkpoint}")
    shell.say(f"  turn {point.turn}, {point.name} of {place.head.name}, next {point.next}")
    shell.screen.lines(views.render_pending_calls(point.values, place.results()))
    for asked in shell.store.approvals.list(row.id, "pending"):
        shell.say(f"  waits for {asked.id}")


async def _show_history(shell: StepperSession, rest: str) -> None:
    count = int(rest) if rest.isdecimal() and int(rest) else 20
    shell.screen.lines(views.render_history(shell.place.points, shell.place.view, count, shell.screen))


async def _show_branch_tree(shell: StepperSession, _: str) -> None:
    shell.screen.lines(views.render_branch_tree(shell.place.branches(), shell.place.row.id, shell.screen))


async def _print_value(shell: StepperSession, rest: str, *, pretty: bool = False) -> None:
    shell.show_whole(views.render_value(rest, get_at_path(shell.place.view.values, rest), pretty=pretty))


async def _print_pretty_value(shell: StepperSession, rest: str) -> None:
    await _print_value(shell, rest, pretty=True)


async def _show_diff(shell: StepperSession, rest: str) -> None:
    place = shell.place
    names = rest.split()
    after = place.point(names[1]) if len(names) > 1 else place.view
    before = place.point(names[0]) if names else place.before
    if before is None:
        raise UsageError("c0 is the first checkpoint: there is none before it")
    shell.say(f"  {before.name} -> {after.name}")
    shell.show_whole(views.render_diff(before.values, after.values))


async def _show_evidence(shell: StepperSession, rest: str) -> None:
    name, _, more = rest.partition(" ")
    run = shell.place.row.id
    if not name:
        shell.screen.lines(run_tables.render_evidence_table(shell.store.evidence.list(run), shell.screen))
        return
    row = shell.store.evidence.get(run, f"E{name}" if name.isdecimal() else name.upper())
    lines = list(
        run_tables.render_evidence_piece(row, shell.store.evidence.record(run, row.id), shell.screen)
    )
    shown = lines if more == "all" or not shell.lines.scripted else lines[:MOST_LINES]
    shell.show_whole(shown)
    if len(lines) > len(shown):
        shell.say(LinePart(f"  {format_count(len(lines) - len(shown), 'more line')}: ev {row.id} all", "dim"))


async def _watch_path(shell: StepperSession, rest: str) -> None:
    if rest.startswith("-"):
        shell.watches[:] = [path for path in shell.watches if path != rest[1:]]
    elif rest:
        get_at_path(shell.place.view.values, rest)
        shell.watches.append(rest)
    shell.say(f"  watched: {', '.join(shell.watches) or 'nothing'}")


async def _view_previous_checkpoint(shell: StepperSession, _: str) -> None:
    _view_checkpoint(shell, shell.place.before, "c0 is the first checkpoint")


async def _view_next_checkpoint(shell: StepperSession, _: str) -> None:
    place = shell.place
    after = None if place.at_head else place.points[place.view.number + 1]
    _view_checkpoint(shell, after, f"{place.head.name} is the newest checkpoint")


async def _view_named_checkpoint(shell: StepperSession, rest: str) -> None:
    _view_checkpoint(shell, shell.place.point(rest), "")


def _view_checkpoint(shell: StepperSession, point: CheckpointPoint | None, otherwise: str) -> None:
    if point is None:
        raise UsageError(otherwise)
    shell.place.look(point)
    shell.show()


async def _stage_assignment(shell: StepperSession, rest: str) -> None:
    path, equals, value = rest.partition("=")
    if not equals:
        raise UsageError("set PATH=VALUE: the value is JSON, or a bare word")
    _stage_edit(shell, StateEdit(path.strip(), parse_typed_value(value.strip())))


async def _edit_in_editor(shell: StepperSession, rest: str) -> None:
    if shell.lines.scripted:
        raise UsageError("edit opens an editor: in a script write set PATH=VALUE")
    before = json.dumps(get_at_path(_staged_values(shell), rest), ensure_ascii=False, indent=2)
    text = click.edit(before, extension=".json")
    if text is None or text.strip() == before.strip():
        shell.say("  nothing was changed")
        return
    try:
        value = parse_json_text(text)
    except ValueError as error:
        raise UsageError(f"it is no longer JSON ({error}); nothing was staged") from None
    edits = [StateEdit(rest, value)] if rest else [StateEdit(name, value[name]) for name in value]
    for edit in edits:
        if get_at_path(_staged_values(shell), edit.path) != edit.value:
            _stage_edit(shell, edit)


def _stage_edit(shell: StepperSession, edit: StateEdit) -> None:
    """Check the edit together with those before it; show what it replaces."""
    place = shell.place
    if place.view.next == END:
        raise UsageError("the run is over here: goto an earlier checkpoint first")
    before = _staged_values(shell)
    after = _apply_edits(shell, [*place.staged, edit])
    place.staged.append(edit)
    shell.screen.lines(views.render_diff(before, after))
    shell.say(LinePart("  staged: it replaces what is there. commit makes a branch, undo drops it", "dim"))


def _staged_values(shell: StepperSession) -> Mapping[str, Any]:
    return _apply_edits(shell, shell.place.staged) if shell.place.staged else shell.place.view.values


def _apply_edits(shell: StepperSession, edits: list[StateEdit]) -> Mapping[str, Any]:
    view = shell.place.view
    return apply_state_edits(view.values, edits, run="branch", going_to=view.next, check=shell.check())


async def _drop_last_edit(shell: StepperSession, _: str) -> None:
    if not shell.place.staged:
        raise UsageError("nothing is staged")
    edit = shell.place.staged.pop()
    shell.say(f"  dropped: {edit.path}; {len(shell.place.staged)} staged")


async def _commit_staged_edits(shell: StepperSession, rest: str) -> None:
    if not shell.place.staged:
        raise UsageError("nothing is staged: set PATH=VALUE stages an edit; fork makes a branch without one")
    _make_branch(shell, shell.place.view, _parse_command_options(rest, "commit [--name N]").get("name"))


async def _fork_at_checkpoint(shell: StepperSession, rest: str) -> None:
    shell.place.refuse_staged()
    given = _parse_command_options(rest, "fork [C] [--name N]")
    point = shell.place.point(given[""]) if given.get("") else shell.place.view
    _make_branch(shell, point, given.get("name"))


def _make_branch(shell: StepperSession, point: CheckpointPoint, name: str | None) -> None:
    branch = ForkRequest(name, tuple(shell.place.staged), shell.by, shell.parts)
    made = fork_run(shell.store, point, shell.new_id, shell.check(), branch)
    shell.say(f"  branch {made.run.id} from {point.run}@{point.name}")
    for row in made.done:
        shell.say(
            LinePart(
                f"  done after {point.name} and not undone by a branch: {row.tool} {row.target or ''} ({row.status})",
                "warn",
            )
        )
    for path, before, after in list_state_changes(point.values, shell.store.history.find(made.run.id).values):
        if not path.startswith("pending"):
            shell.screen.lines(views.render_diff({path: before}, {path: after}))
    shell.switch(made.run.id)


async def _skip_call(shell: StepperSession, rest: str) -> None:
    name, _, reason = rest.partition(" ")
    call = _find_pending_call(shell, name)
    by_hand.skip_call(shell.store, shell.place.row.id, call, reason.strip())
    shell.show()


async def _retry_call(shell: StepperSession, rest: str) -> StepGoal:
    call = _find_pending_call(shell, rest)
    return StepGoal("retry", by_hand.short_call_id(call))


async def _inject_result(shell: StepperSession, rest: str) -> None:
    name, equals, text = rest.partition("=")
    record = parse_typed_value(text.strip())
    if not equals or not isinstance(record, dict):
        raise UsageError("inject CALL={…}: the result is a JSON object")
    by_hand.inject_result(shell.store, shell.place.row.id, _find_pending_call(shell, name.strip()), record)
    shell.show()


def _find_pending_call(shell: StepperSession, name: str) -> Call:
    """A pending call at the head; the only one if it is not named."""
    place = shell.place
    place.must_be_at_head()
    if place.view.next != "act":
        raise UsageError(f"no call is about to be made: the next node is {place.view.next}")
    if not name and len(place.state.pending) == 1:
        return place.state.pending[0]
    return by_hand.find_pending_call(place.state, name)


async def _approve_call(shell: StepperSession, rest: str) -> None:
    usage = "approve A1 --digest H [--confirm-target T]"
    given = _parse_command_options(rest, usage)
    if "" not in given or "digest" not in given:
        raise UsageError(f"{usage}: the digest says to exactly which call")
    run, person = shell.place.row.id, decisions.AnsweringPerson(shell.by, "command")
    reply = decisions.OperatorReply("approved", digest=given["digest"], confirm=given.get("confirm-target"))
    approved = decisions.record_answer(shell.store, run, given[""], reply, person)
    shell.say(LinePart(f"  {approved.id} approved; it runs with n or c, until {approved.expires}", "good"))


async def _deny_call(shell: StepperSession, rest: str) -> None:
    name, _, reason = rest.partition(" ")
    if not reason.strip():
        raise UsageError("give the reason behind the approval, as in: deny A1 wait for the owner")
    person = decisions.AnsweringPerson(shell.by, "command")
    reply = decisions.OperatorReply("denied", reason=reason.strip())
    denied = decisions.record_answer(shell.store, shell.place.row.id, name, reply, person)
    shell.say(LinePart(f"  {denied.id} denied; the run goes on without it", "warn"))


OUTCOMES: Mapping[str, Outcome] = {"happened": "happened", "absent": "absent"}


async def _resolve_effect(shell: StepperSession, rest: str) -> None:
    name, outcome, *reason = [*rest.split(" ", 2), "", ""]
    happened = OUTCOMES.get(outcome)
    if happened is None or not reason[0]:
        raise UsageError("resolve A1 happened|absent REASON: how you know goes into the record")
    person = decisions.AnsweringPerson(shell.by, "command")
    reply = decisions.OperatorReply("resolved", reason=reason[0], outcome=happened)
    decisions.record_answer(shell.store, shell.place.row.id, name, reply, person)
    shell.say(f"  {name}: {outcome}")


async def _leave_note(shell: StepperSession, rest: str) -> None:
    if not rest:
        raise UsageError("note TEXT: a note for the planner")
    shell.store.control.set(shell.place.row.id, "note", rest)
    shell.say("  noted: the planner reads it at its next turn")


async def _request_pause(shell: StepperSession, _: str) -> None:
    if shell.deps is not None or not shell.place.alive:
        raise UsageError("no other process works on this run")
    shell.store.control.set(shell.place.row.id, "pause")
    shell.say("  asked it to pause before its next node; then step here with n")


async def _leave_shell(_: StepperSession, __: str) -> ShellExit:
    return "leave"


async def _show_help(shell: StepperSession, rest: str) -> None:
    shell.show_whole(views.render_help(command_words.find_help_words(rest)))
    if not rest:
        shell.say(
            LinePart(
                "  An empty line repeats n or s, nothing else. The value of set is JSON or a bare word.",
                "dim",
            )
        )


OLD_OPTION_NAMES = {"hash": "digest"}
"""Names of options in earlier versions, which scripts may still use."""


def _parse_command_options(rest: str, usage: str) -> dict[str, str]:
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
            name, value = OLD_OPTION_NAMES.get(word[2:], word[2:]), words.pop(0)
        else:
            raise UsageError(f"{usage}: {word} needs a value")
        if name in given or (name and f"--{name}" not in usage):
            raise UsageError(f"{usage}: what is {word!r}?")
        given[name] = value
    return given


COMMANDS: Mapping[str, StepperCommand] = {
    "n": _make_goal_command("next"),
    "s": _make_goal_command("into"),
    "c": _make_goal_command("continue"),
    "until": _make_goal_command("until"),
    "finish": _make_goal_command("finish"),
    "b": _set_breakpoint,
    "tbreak": _set_temporary_breakpoint,
    "cl": _clear_breakpoint,
    "l": _show_loop,
    "w": _show_position,
    "h": _show_history,
    "tree": _show_branch_tree,
    "p": _print_value,
    "pp": _print_pretty_value,
    "diff": _show_diff,
    "ev": _show_evidence,
    "watch": _watch_path,
    "u": _view_previous_checkpoint,
    "d": _view_next_checkpoint,
    "goto": _view_named_checkpoint,
    "set": _stage_assignment,
    "edit": _edit_in_editor,
    "undo": _drop_last_edit,
    "commit": _commit_staged_edits,
    "fork": _fork_at_checkpoint,
    "skip": _skip_call,
    "retry": _retry_call,
    "inject": _inject_result,
    "approve": _approve_call,
    "deny": _deny_call,
    "resolve": _resolve_effect,
    "note": _leave_note,
    "pause": _request_pause,
    "q": _leave_shell,
    "?": _show_help,
}
