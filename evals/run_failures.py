"""The failures of stored runs, grouped by what they have in common: whoever fixes one fixes the group."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import StopReason

MOST_RUNS = 10_000
_VARIES = re.compile(r"[\"'`“][^\"'`”]{1,200}[\"'`”]|\b[\w./-]*\d[\w./:-]*\b")
"""What differs between two errors that are the same: quoted texts, and words with digits in them."""

_TYPES = ("tool.completed", "tool.canceled", "tool.denied", "warning", "claim.checked", "claim.verified")


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """One kind of failure. `where` holds run ids with the number of the event, the newest run first."""

    group: str
    what: str
    count: int
    where: Sequence[tuple[str, int]]

    def to_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "what": self.what,
            "count": self.count,
            "where": [list(w) for w in self.where],
        }


def group_failures(store: Store, since: datetime | None) -> list[FailureGroup]:
    """What went wrong in the runs since then, most frequent first."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for run in store.runs.list(since=since, limit=MOST_RUNS):
        for group, what, seq in (
            *_failures_of_run(run),
            *_failures_in_events(store.events.read(run.id, types=_TYPES)),
        ):
            found[group, what].append((run.id, seq))
    grouped = [FailureGroup(group, what, len(where), where) for (group, what), where in found.items()]
    return sorted(grouped, key=lambda f: (-f.count, f.group, f.what))


def _failures_of_run(run: RunRow) -> Iterator[tuple[str, str, int]]:
    if run.stop_reason not in (None, StopReason.CONCLUDED):
        yield "ended early", str(run.stop_reason), 0


def _failures_in_events(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, int]]:
    for event in events:
        data, kind = event["data"], event["type"]
        if kind.startswith("tool.") and data.get("error"):
            shape = ", ".join(
                f"{k}: {_describe_value_shape(v)}" for k, v in sorted((data.get("args") or {}).items())
            )
            yield (
                "tool failed",
                f"{data['tool']} {data['status']} ({shape}): {_mask_varying_parts(data.get('headline'))}",
                event["seq"],
            )
        elif kind == "warning" and data.get("code") == "malformed":
            yield "decision not valid", _mask_varying_parts(data.get("message")), event["seq"]
        elif kind in ("claim.checked", "claim.verified") and data.get("status") == "unsupported":
            for problem in data.get("problems") or ["no evidence"]:
                yield "claim removed", _mask_varying_parts(problem), event["seq"]


def _describe_value_shape(value: JSON) -> str:
    """What kind of value an argument had, never the value."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_describe_value_shape(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return f"[{_describe_value_shape(value[0])}]" if value else "[]"
    return {bool: "true or false", int: "number", float: "number", str: "text"}.get(type(value), "null")


def _mask_varying_parts(text: object) -> str:
    return _VARIES.sub("…", str(text or "no text"))[:200]
