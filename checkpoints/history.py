"""The checkpoints of a run, read without the framework: plain values under the names of the state's fields.

A checkpoint is named `c<n>` by its place in the run: `c0` is the first, the state before the first node.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.table_context import TableContext

END = "end"
"""What comes next at a checkpoint where the run is over."""

FIELDS = (
    "schema_version",
    "question",
    "from_alert",
    "follow_up",
    "alert",
    "unresolved",
    "absent",
    "window",
    "checklist",
    "read_only",
    "plan",
    "hypotheses",
    "observations",
    "pending",
    "unverified",
    "draft",
    "review",
    "objections",
    "notices",
    "malformed",
    "malformed_conclusion",
    "rework",
    "stalled",
    "budget",
    "status",
    "stop_reason",
    "stop_detail",
)
"""The fields of the state in their order, told here so that reading a state loads no model of it."""

_NEXT = "branch:to:"
_INPUT = "__start__"
_FORMS = "c4, head, head~2, before:act, or a whole checkpoint id"


@dataclass(frozen=True)
class CheckpointPoint:
    """One checkpoint. `id` is the framework's own, `number` its place in the run."""

    number: int
    id: str
    run: str
    document: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return f"c{self.number}"

    @property
    def at(self) -> str:
        """When it was stored, RFC 3339 UTC."""
        return str(self.document.get("ts", ""))

    @cached_property
    def next(self) -> str:
        """The node that runs next, or `end`."""
        channels = self.document["channel_values"]
        return next((name[len(_NEXT) :] for name in channels if name.startswith(_NEXT)), END)

    @cached_property
    def values(self) -> dict[str, Any]:
        """The state as JSON values by field, in the order of the fields: a server keeps none of its own."""
        channels: Mapping[str, Any] = self.document["channel_values"]
        own = {name: value for name, value in channels.items() if ":" not in name and name[:1] != "_"}
        return {name: own[name] for name in dict.fromkeys((*FIELDS, *own)) if name in own}

    @property
    def turn(self) -> int:
        used = self.values.get("budget", {}).get("used", {})
        return int(used.get("turns", 0))


class CheckpointHistory:
    """Reads the framework's table of checkpoints; never writes it."""

    def __init__(self, backing: TableContext) -> None:
        self._db = backing.db

    def list(self, run: str) -> tuple[CheckpointPoint, ...]:
        """All checkpoints of a run, oldest first; none for a run that never began. Raises UnreadableStoreError."""
        documents = self._db.checkpoint_db.checkpoints(run)
        kept = [(name, d) for name, d in documents if _INPUT not in d["channel_values"]]
        return tuple(
            CheckpointPoint(number, name, run, document) for number, (name, document) in enumerate(kept)
        )

    def find(self, run: str, spec: str = "head") -> CheckpointPoint:
        """The checkpoint that `spec` means. Raises NotFoundError."""
        return find_checkpoint(self.list(run), run, spec)


def split_address(address: str) -> tuple[str, str | None]:
    """`RUN@C` as run and checkpoint, the latter None where only a run is named; `@C` is one of the newest run."""
    run, at, spec = address.partition("@")
    return run or "-", spec if at else None


def find_checkpoint(points: Sequence[CheckpointPoint], run: str, spec: str) -> CheckpointPoint:
    """The checkpoint of a run's history that `c4`, `4`, `head`, `head~2`, `before:act` or an id means.

    Raises NotFoundError, with what there is.
    """
    if not points:
        raise NotFoundError(f"{run} has no checkpoint yet: it never began")
    if spec.startswith("before:"):
        found = [point for point in points if point.next == spec.removeprefix("before:")]
    elif back := re.fullmatch(r"head(?:~(\d{1,6}))?", spec):
        found = list(points[: len(points) - int(back[1] or 0)])
    elif number := re.fullmatch(r"c?(\d{1,7})", spec):
        found = [point for point in points if point.number == int(number[1])]
    else:
        found = [point for point in points if point.id == spec]
    if not found:
        raise NotFoundError(
            f"no checkpoint {spec!r} in {run}: there are c0 to {points[-1].name}; write {_FORMS}"
        )
    return found[-1]
