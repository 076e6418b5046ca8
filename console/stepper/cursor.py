"""Where the stepper is: a run, its checkpoints, the one in view, and the edits that are staged there."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.history import CheckpointPoint, find_checkpoint
from opsleuth.checkpoints.processes import is_alive
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.stepping.edits import StateEdit
from opsleuth.state.errors import UsageError
from opsleuth.state.investigation import Investigation
from opsleuth.state.plurals import format_count


class StepperCursor:
    """Moves over what is stored; runs nothing."""

    def __init__(self, store: Store, run: str) -> None:
        self.store = store
        self.enter(run)

    def enter(self, run: str) -> None:
        """Be at the head of this run."""
        self.row: RunRow = self.store.runs.find(run)
        self.staged: list[StateEdit] = []
        self.refresh()

    def refresh(self) -> None:
        """Read again what is stored, and view the head."""
        self.row = self.store.runs.find(self.row.id)
        self.points: Sequence[CheckpointPoint] = self.store.history.list(self.row.id)
        if not self.points:
            raise NotFoundError(
                f"{self.row.id} has no checkpoint yet: begin it with opsleuth resume {self.row.id}"
            )
        self.view: CheckpointPoint = self.points[-1]

    @property
    def head(self) -> CheckpointPoint:
        return self.points[-1]

    @property
    def at_head(self) -> bool:
        return self.view is self.points[-1]

    @property
    def before(self) -> CheckpointPoint | None:
        """The checkpoint before the one in view."""
        return self.points[self.view.number - 1] if self.view.number else None

    @property
    def state(self) -> Investigation:
        return Investigation.model_validate(self.view.values)

    @property
    def alive(self) -> bool:
        """Whether some process works on the run."""
        return is_alive(self.row)

    def point(self, spec: str) -> CheckpointPoint:
        """A checkpoint of this run; `c4`, `head~2`, `before:act`. Raises NotFoundError."""
        return find_checkpoint(self.points, self.row.id, spec)

    def look(self, point: CheckpointPoint) -> None:
        """Move the view. Raises UsageError with staged edits: they belong to the checkpoint where they were made."""
        self.refuse_staged()
        self.view = point

    def refuse_staged(self) -> None:
        """Raises UsageError while edits are staged."""
        if self.staged:
            raise UsageError(
                f"{format_count(len(self.staged), 'staged edit')} at {self.view.name}: commit them, or undo first"
            )

    def must_be_at_head(self) -> None:
        """Raises UsageError where the view is in the past: nothing runs from there."""
        self.refuse_staged()
        if not self.at_head:
            raise UsageError(
                f"you are viewing {self.view.name}, the run is at {self.head.name}: goto head, or go on from "
                f"here in a branch: fork {self.view.name}"
            )

    def results(self) -> Mapping[str, str]:
        """The result of the pending calls that are done, by call id."""
        calls: Sequence[Mapping[str, Any]] = self.view.values.get("pending") or []
        found = {call["id"]: self.store.results.get(self.row.id, call["id"]) for call in calls}
        return {name: f"{r.status}: {r.headline}" for name, r in found.items() if r is not None}

    def branches(self) -> list[tuple[int, RunRow]]:
        """All runs of this one's family, each with its depth, parents before children."""
        root = self.store.runs.lineage(self.row.id)[-1][0]
        rows: list[tuple[int, RunRow]] = []
        waiting = [(0, root)]
        while waiting:
            depth, run = waiting.pop()
            if (row := self.store.runs.get(run)) is not None:
                rows.append((depth, row))
            waiting += [(depth + 1, child) for child in reversed(self.store.runs.children(run))]
        return rows
