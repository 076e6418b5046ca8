"""`opsleuth state`: the state of a run at any checkpoint. `set` and `edit` make a branch and change no stored state."""

import json
import sys

import click

from opsleuth.checkpoints.history import CheckpointPoint
from opsleuth.console import event_lines
from opsleuth.console.argument_help import CHECKPOINT_HELP
from opsleuth.console.branching import find_checkpoint, make_branch, print_differences
from opsleuth.console.options import CliGroup, current_options
from opsleuth.console.output import write_note
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError
from opsleuth.state.json_types import JSON
from opsleuth.state.state_paths import NoSuchPathError, get_at_path, parse_typed_value


@click.group("state", cls=CliGroup)
def state() -> None:
    """Look at the state of a run at any checkpoint, and change it in a branch."""


@state.command("get", help=f"The state, or the value at PATH, as JSON.\n\n{CHECKPOINT_HELP}")
@click.argument("address", metavar="RUN[@C]")
@click.argument("path", metavar="[PATH]", default="")
def print_value(address: str, path: str) -> int:
    options = current_options()
    with open_store_for_reading(options) as store:
        value = get_value(find_checkpoint(store, address), path)
    if options.json:
        event_lines.write_json(sys.stdout, value)
    else:
        sys.stdout.write(event_lines.escape_json_text(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")
    return 0


@state.command(
    "set", help=f"Make a branch in which PATH has another VALUE (JSON, or a bare word).\n\n{CHECKPOINT_HELP}"
)
@click.argument("address", metavar="RUN[@C]")
@click.argument("path", metavar="PATH")
@click.argument("value", metavar="VALUE")
def set_value(address: str, path: str, value: str) -> int:
    from opsleuth.graph.stepping.edits import StateEdit

    return make_branch(current_options(), address, [StateEdit(path, parse_typed_value(value))])


@state.command("edit", help=f"Make a branch with what you write in $EDITOR.\n\n{CHECKPOINT_HELP}")
@click.argument("address", metavar="RUN[@C]")
@click.argument("path", metavar="[PATH]", default="")
def edit_value(address: str, path: str) -> int:
    from opsleuth.graph.stepping.edits import StateEdit

    options = current_options()
    if options.no_input or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("state edit opens an editor on a terminal: use state set RUN PATH VALUE")
    with open_store_for_reading(options) as store:
        before = get_value(find_checkpoint(store, address), path)
    after = edit_in_editor(before)
    if after == before:
        write_note("nothing was changed, no branch was made")
        return 0
    if path:
        edits = [StateEdit(path, after)]
    else:
        edits = [StateEdit(name, after[name]) for name in after if before.get(name) != after[name]]
    return make_branch(options, address, edits)


@state.command(
    "diff", help=f"What a checkpoint changed, or what changed from it to OTHER.\n\n{CHECKPOINT_HELP}"
)
@click.argument("address", metavar="RUN[@C]")
@click.argument("other", metavar="[OTHER]", required=False)
def print_state_differences(address: str, other: str | None) -> int:
    options = current_options()
    with open_store_for_reading(options) as store:
        named = find_checkpoint(store, address)
        if other:
            return print_differences(options, named, store.history.find(named.run, other))
        before = store.history.list(named.run)[max(named.number - 1, 0)]
    return print_differences(options, before, named)


def get_value(point: CheckpointPoint, path: str) -> JSON:
    """The value at a path of the checkpoint's state. Raises UsageError where there is none."""
    try:
        return get_at_path(point.values, path)
    except NoSuchPathError as error:
        raise UsageError(str(error)) from None


def edit_in_editor(value: JSON) -> JSON:
    """A value after a person's editor. Raises UsageError if it is not valid JSON any more."""
    text = click.edit(json.dumps(value, ensure_ascii=False, indent=2), extension=".json")
    if text is None:
        return value
    try:
        return parse_json_text(text)
    except ValueError as error:
        raise UsageError(f"it is no longer JSON ({error}); nothing was changed") from None
