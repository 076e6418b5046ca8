"""A fork: a separate run that goes on from one checkpoint of another.

One checkpoint is copied, without its history and without the answers that waited there; what lies in our tables
is read along the lineage. So a fork costs milliseconds, and at a pending approval it asks again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth import __version__
from opsleuth.checkpoints.effects import ANCESTOR_EFFECTS, EffectRow
from opsleuth.checkpoints.errors import ConflictError, UnreadableStoreError
from opsleuth.checkpoints.history import END, CheckpointPoint
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph import build
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.graph.lifecycle.wiring import AttemptParts, restrict_settings, toolbox_of
from opsleuth.graph.stepping.edits import Check, StateEdit, apply_state_edits, list_state_changes
from opsleuth.state.calls import CallRequest
from opsleuth.state.errors import UsageError
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import Status
from opsleuth.tools.registry import CheckedCall

_DRAWS = 20
"""Attempts to draw an id that is not taken."""


class ForkedRun(NamedTuple):
    """The new run, and the changes of the world that the parent made after the checkpoint: they stay made."""

    run: RunRow
    done: tuple[EffectRow, ...]


class ForkRequest(NamedTuple):
    """What a fork shall be: a name for it, edits of its state, and who wants it."""

    name: str | None = None
    edits: Sequence[StateEdit] = ()
    by: str = "operator"
    parts: AttemptParts = AttemptParts()
    """Whose restrictions the branch takes over."""


def fork_run(
    store: Store, point: CheckpointPoint, new_id: Callable[[], str], check: Check, branch: ForkRequest
) -> ForkedRun:
    """Make a run that goes on from `point`. `check` validates edited calls.

    Raises UsageError for an edit that cannot be, or at the end of a run; UnreadableStoreError for another version's run.
    """
    parent = store.runs.find(point.run)
    if point.next == END:
        raise UsageError(
            f"{parent.id}@{point.name} is the end of the run: fork from an earlier checkpoint, such as "
            f"{parent.id}@head~1"
        )
    saved, metadata = _read_checkpoint(store, parent, point)
    row, values = _create_forked_run(store, parent, point, new_id, check, branch)
    saved["channel_values"] = saved["channel_values"] | _to_be_looked_at(values)
    with store.saver() as saver:
        config: Any = {"configurable": {"thread_id": row.id, "checkpoint_ns": ""}}
        saver.put_sealed(config, saved, metadata, saved["channel_versions"])  # type: ignore[arg-type]
    _emit_fork_events(store, row, point, values, branch)
    return ForkedRun(row, done_after(store, parent.id, point))


def call_checker_for(parts: AttemptParts, run: RunRow) -> Check:
    """What validates an edited call, with the tools of this run; its sources are opened only when it is used."""

    def check(request: CallRequest) -> CheckedCall:
        settings = restrict_settings(parts, RunSettings.of(run.settings))
        opened = parts.sources(settings)
        added = parts.added(settings, opened.vault)
        return toolbox_of(parts, settings, opened.sources, added).check(request)

    return check


def done_after(store: Store, run: str, point: CheckpointPoint) -> tuple[EffectRow, ...]:
    """Changes of the world that the run has made, or may have made, since this checkpoint."""
    return tuple(row for row in store.effects.list(run) if _is_after(row.call_id, point))


def _is_after(call_id: str, point: CheckpointPoint) -> bool:
    """Whether a call was made after the checkpoint, told from the turn in its id: no clock is trusted."""
    turn = int(call_id.rpartition("/t")[2].partition("c")[0])
    return turn > point.turn or (turn == point.turn and point.next in ("approve", "act"))


def _to_be_looked_at(values: Mapping[str, Any]) -> dict[str, Any]:
    """Calls that wait for a person are looked at again: what their target said belongs to the parent's moment."""
    calls = [call | {"precheck": None} if call["gate"] == "ask" else call for call in values["pending"]]
    return {**values, "pending": calls}


def _read_checkpoint(store: Store, parent: RunRow, point: CheckpointPoint) -> tuple[dict[str, Any], Any]:
    with store.saver() as saver:
        found = saver.get_tuple(
            {"configurable": {"thread_id": parent.id, "checkpoint_ns": "", "checkpoint_id": point.id}}
        )
    revision = found.metadata.get("revision") if found else None
    if found is None or revision not in (build.graph_revision(), *build.ACCEPTED_REVISIONS):
        raise UnreadableStoreError(
            f"{parent.id}@{point.name} was stored by graph revision {revision} (opsleuth {parent.app_version}); "
            f"this is {build.graph_revision()} (opsleuth {__version__}). Nothing was changed"
        )
    return dict(found.checkpoint), found.metadata


def _create_forked_run(
    store: Store,
    parent: RunRow,
    point: CheckpointPoint,
    new_id: Callable[[], str],
    check: Check,
    branch: ForkRequest,
) -> tuple[RunRow, dict[str, Any]]:
    for _ in range(_DRAWS):
        run = new_id()
        edits = [StateEdit(e.path, store.redactor(e.value).value) for e in branch.edits]
        values = apply_state_edits(point.values, edits, run=run, going_to=point.next, check=check)
        try:
            known = store.effects.count_of_ancestors(parent.id)
            return store.runs.create(_forked_run_row(run, parent, point, values, branch, known)), values
        except ConflictError:
            continue
    raise ConflictError(f"{_DRAWS} ids were taken: try again")


def _forked_run_row(
    run: str,
    parent: RunRow,
    point: CheckpointPoint,
    values: Mapping[str, Any],
    branch: ForkRequest,
    known_effects: Mapping[str, int],
) -> RunRow:
    restricted = restrict_settings(branch.parts, RunSettings.of(parent.settings)).to_json()
    return RunRow(
        id=run,
        question=values["question"],
        name=branch.name,
        project=parent.project,
        parent=parent.id,
        parent_checkpoint=point.name,
        forked_at_observation=values["observations"],
        status=Status.PAUSED,
        turn=values["budget"]["used"]["turns"],
        node=point.next,
        graph_revision=build.graph_revision(),
        app_version=__version__,
        settings=dict(parent.settings)
        | restricted
        | {"state": dict(values), ANCESTOR_EFFECTS: known_effects},
    )


def _emit_fork_events(
    store: Store, row: RunRow, point: CheckpointPoint, values: Mapping[str, Any], branch: ForkRequest
) -> None:
    with store.transaction():
        store.events.append(
            row.id,
            "run.forked",
            {"parent": {"run": point.run, "ckpt": point.name}, "by": branch.by, "next": point.next},
            turn=row.turn,
        )
        for path, before, after in list_state_changes(point.values, values):
            store.events.append(
                row.id,
                "state.edited",
                {
                    "path": path,
                    "before": _as_json_value(before),
                    "after": _as_json_value(after),
                    "by": branch.by,
                },
                turn=row.turn,
            )


def _as_json_value(value: JSON) -> JSON:
    return value if isinstance(value, str | int | float | bool | list | dict | None) else None
