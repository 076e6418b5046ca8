"""Checkpoints by their address, and branches made from them: a run's own states are never changed."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opsleuth.checkpoints.history import CheckpointPoint, split_address
from opsleuth.checkpoints.store import Store
from opsleuth.console import event_lines
from opsleuth.console.options import GlobalOptions
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.stepper import views
from opsleuth.console.store_access import open_store_for_writing
from opsleuth.state.clock import SystemClock
from opsleuth.state.json_types import JSON
from opsleuth.state.run_id import new_run_id
from opsleuth.state.state_paths import MISSING, find_differences

if TYPE_CHECKING:
    from opsleuth.graph.stepping.edits import StateEdit


def find_checkpoint(store: Store, address: str) -> CheckpointPoint:
    """The checkpoint of `RUN@C`, the head of `RUN`. Raises NotFoundError, AmbiguousIdError."""
    run, spec = split_address(address)
    return store.history.find(store.runs.find(run).id, "head" if spec is None else spec)


def make_branch(
    options: GlobalOptions,
    address: str,
    edits: "Sequence[StateEdit]",
    name: str | None = None,
    *,
    go_on: bool = False,
) -> int:
    """A separate run from a checkpoint, with the edits in its state; `go_on` lets it run at once."""
    from opsleuth.console.run_attempt import resume_run
    from opsleuth.console.run_settings import build_run_parts
    from opsleuth.graph.approvals.decisions import local_operator
    from opsleuth.graph.stepping import fork as forks

    with open_store_for_writing(options) as store:
        point = find_checkpoint(store, address)
        parent = store.runs.find(point.run)
        parts = build_run_parts(options, store.redactor)
        made = forks.fork_run(
            store,
            point,
            lambda: new_run_id(SystemClock().now()),
            forks.call_checker_for(parts, parent),
            forks.ForkRequest(name, edits, local_operator("command").name, parts),
        )
        after = store.history.find(made.run.id).values
    done = [{"tool": row.tool, "target": row.target, "status": row.status} for row in made.done]
    if options.json and not go_on:
        parent_address = {"run": point.run, "ckpt": point.name}
        event_lines.write_json(sys.stdout, {"run": made.run.id, "parent": parent_address, "done_after": done})
    elif not options.json:
        screen = screen_for_options(options)
        screen.line(f"{made.run.id} is a branch of {point.run}@{point.name}, next {point.next}")
        if edits:
            screen.lines(views.render_diff(point.values, after))
        for row in done:
            screen.line(
                f"done after {point.name}, and not undone by a branch: {row['tool']} {row['target'] or ''}"
            )
    if go_on:
        return resume_run(options, made.run.id)
    write_note(f"next: opsleuth resume {made.run.id}   or   opsleuth step {made.run.id}")
    return 0


def print_differences(options: GlobalOptions, before: CheckpointPoint, after: CheckpointPoint) -> int:
    """Where the states of two checkpoints differ, path by path."""
    if options.json:
        found = find_differences(before.values, after.values)
        rows = [
            {"path": c.path, "before": _missing_to_null(c.before), "after": _missing_to_null(c.after)}
            for c in found
        ]
        ends = {"from": f"{before.run}@{before.name}", "to": f"{after.run}@{after.name}"}
        event_lines.write_json(sys.stdout, ends | {"changes": rows})
        return 0
    screen = screen_for_options(options)
    screen.line(f"{before.run}@{before.name} -> {after.run}@{after.name}")
    screen.lines(views.render_diff(before.values, after.values))
    return 0


def _missing_to_null(value: JSON) -> JSON:
    return None if value is MISSING else value
