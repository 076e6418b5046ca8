"""The stored state of a run: `state get|set|edit|diff`, `fork`, `diff`. An edit always makes a branch."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from opsleuth.checkpoints.history import Point, split
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.console import events
from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.console.stepper import views
from opsleuth.state.canonical import from_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.paths import MISSING, NoSuchPath, differences, get, plain
from opsleuth.state.run_id import new_run_id

if TYPE_CHECKING:
    from opsleuth.graph.edits import Edit

_CLOCK = SystemClock()


def get_value(options: Options, address: str, path: str) -> int:
    """`state get`: the value at a path as JSON."""
    with _opened(options) as store:
        value = _at(_point(store, address), path)
    if options.json:
        events.write_json(sys.stdout, value)
    else:
        sys.stdout.write(events.escaped(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")
    return 0


def changes(options: Options, address: str, other: str | None) -> int:
    """`state diff`: what the checkpoint changed, or what lies between it and another one of the run."""
    with _opened(options) as store:
        after = _point(store, address)
        points = store.history.list(after.run)
        before = store.history.find(after.run, other) if other else points[max(after.number - 1, 0)]
    first, second = (after, before) if other else (before, after)
    return _differ(options, first, second)


def compare(options: Options, one: str, two: str) -> int:
    """`diff`: two checkpoints of any two runs."""
    with _opened(options) as store:
        return _differ(options, _point(store, one), _point(store, two))


def set_value(options: Options, address: str, path: str, value: str) -> int:
    """`state set`: a branch with another value."""
    from opsleuth.graph.edits import Edit

    return fork(options, address, [Edit(path, plain(value))])


def edit(options: Options, address: str, path: str) -> int:
    """`state edit`: the value in $EDITOR; a branch with what was written there."""
    from opsleuth.graph.edits import Edit

    if options.no_input or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("state edit opens an editor on a terminal: use state set RUN PATH VALUE")
    with _opened(options) as store:
        point = _point(store, address)
    before = _at(point, path)
    after = edited(before)
    if after == before:
        note("nothing was changed, no branch was made")
        return 0
    if path:
        return fork(options, address, [Edit(path, after)])
    return fork(
        options, address, [Edit(name, after[name]) for name in after if before.get(name) != after[name]]
    )


def edited(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A value after a person's editor. Raises UsageError if it is no JSON any more."""
    text = click.edit(json.dumps(value, ensure_ascii=False, indent=2), extension=".json")
    if text is None:
        return value
    try:
        return from_json(text)
    except ValueError as error:
        raise UsageError(f"it is no JSON any more ({error}); nothing was changed") from None


def assigned(texts: Sequence[str]) -> "list[Edit]":
    """`PATH=JSON` as edits. Raises UsageError."""
    from opsleuth.graph.edits import Edit

    edits = []
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write PATH=JSON")
        edits.append(Edit(path, plain(value)))
    return edits


def fork(
    options: Options, address: str, edits: "Sequence[Edit]", name: str | None = None, *, go_on: bool = False
) -> int:
    """`fork`: a run of its own from a checkpoint; `go_on` lets it run at once."""
    from opsleuth.console import running
    from opsleuth.console.run_settings import parts
    from opsleuth.graph import fork as forks
    from opsleuth.graph.decisions import operator

    with Store.open(options.database, _CLOCK, Redactor()) as store:
        point = _point(store, address)
        parent = store.runs.find(point.run)
        made = forks.fork(
            store,
            point,
            lambda: new_run_id(_CLOCK.now()),
            forks.checking(parts(options, store.redactor), parent),
            forks.Branch(name, edits, operator("command").name),
        )
        after = store.history.find(made.run.id).values
    done = [{"tool": row.tool, "target": row.target, "status": row.status} for row in made.done]
    if options.json and not go_on:
        parent_address = {"run": point.run, "ckpt": point.name}
        events.write_json(sys.stdout, {"run": made.run.id, "parent": parent_address, "done_after": done})
    elif not options.json:
        screen = screen_of(options)
        screen.line(f"{made.run.id} is a branch of {point.run}@{point.name}, next {point.next}")
        if edits:
            screen.lines(views.diff(point.values, after))
        for row in done:
            screen.line(
                f"done after {point.name}, and not undone by a branch: {row['tool']} {row['target'] or ''}"
            )
    if go_on:
        return running.resume(made.run.id, options)
    note(f"next: opsleuth resume {made.run.id}   or   opsleuth step {made.run.id}")
    return 0


def _differ(options: Options, before: Point, after: Point) -> int:
    if options.json:
        found = differences(before.values, after.values)
        rows = [{"path": c.path, "before": _json(c.before), "after": _json(c.after)} for c in found]
        ends = {"from": f"{before.run}@{before.name}", "to": f"{after.run}@{after.name}"}
        events.write_json(sys.stdout, ends | {"changes": rows})
        return 0
    screen = screen_of(options)
    screen.line(f"{before.run}@{before.name} -> {after.run}@{after.name}")
    screen.lines(views.diff(before.values, after.values))
    return 0


def _json(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return None if value is MISSING else value


def _at(point: Point, path: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return get(point.values, path)
    except NoSuchPath as error:
        raise UsageError(str(error)) from None


def _opened(options: Options) -> Store:
    return Store.open(options.database, _CLOCK, Redactor(), read_only=True)


def _point(store: Store, address: str) -> Point:
    """The checkpoint of `RUN@C`, the head of `RUN`."""
    run, spec = split(address)
    return store.history.find(store.runs.find(run).id, "head" if spec is None else spec)
