"""What stands out in a log: the slowest events, the most expensive ones, and the calls that were made again."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from opsleuth.console.event_lines import Event
from opsleuth.state.canonical_json import to_canonical_json

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_CALLS = frozenset({"tool.completed", "tool.canceled", "tool.denied"})


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """One question that was asked several times. `drifts`: not the same call, only the numbers in it differ."""

    tool: str
    drifts: bool
    events: Sequence[Event]


def find_slowest_events(events: Iterable[Event], count: int) -> list[Event]:
    """The events that took longest, longest first. The end of a node is left out: its calls are listed themselves."""
    timed = [e for e in events if e["data"].get("ms") and e["type"] != "step.completed"]
    return sorted(timed, key=lambda e: -e["data"]["ms"])[:count]


def find_costliest_calls(events: Iterable[Event], count: int) -> list[Event]:
    """The model calls that cost most: money first, then tokens."""
    used = [e for e in events if e["type"] == "model.completed"]
    return sorted(used, key=lambda e: (-Decimal(e["data"].get("usd") or 0), -_count_tokens(e)))[:count]


def find_repeated_calls(events: Iterable[Event]) -> list[RepeatedCall]:
    """Calls that differ in nothing, or in numbers alone, most often asked first."""
    shapes: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event["type"] in _CALLS:
            args = _NUMBER.sub("#", to_canonical_json(event["data"].get("args") or {}))
            shapes[str(event["data"].get("tool")), args].append(event)
    found = [
        RepeatedCall(tool, len({to_canonical_json(e["data"].get("args") or {}) for e in same}) > 1, same)
        for (tool, _), same in shapes.items()
        if len(same) > 1
    ]
    return sorted(found, key=lambda r: -len(r.events))


def _count_tokens(event: Event) -> int:
    return int(event["data"].get("in") or 0) + int(event["data"].get("out") or 0)
