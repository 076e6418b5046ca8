"""What stands out in a log: the slowest events, the most expensive ones, and the calls that were made again."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from opsleuth.console.events import Event
from opsleuth.state.canonical import canonical

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_CALLS = frozenset({"tool.completed", "tool.canceled", "tool.denied"})


@dataclass(frozen=True, slots=True)
class Repeated:
    """One question that was asked several times. `drifts`: not the same call, only the numbers in it differ."""

    tool: str
    drifts: bool
    events: Sequence[Event]


def slowest(events: Iterable[Event], count: int) -> list[Event]:
    """The events that took longest, longest first. A node's end is none of them: its calls are told themselves."""
    timed = [e for e in events if e["data"].get("ms") and e["type"] != "step.completed"]
    return sorted(timed, key=lambda e: -e["data"]["ms"])[:count]


def costliest(events: Iterable[Event], count: int) -> list[Event]:
    """The model calls that cost most: money first, then tokens."""
    used = [e for e in events if e["type"] == "model.completed"]
    return sorted(used, key=lambda e: (-Decimal(e["data"].get("usd") or 0), -_tokens(e)))[:count]


def repeated(events: Iterable[Event]) -> list[Repeated]:
    """Calls that differ in nothing, or in numbers alone, most often asked first."""
    shapes: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event["type"] in _CALLS:
            args = _NUMBER.sub("#", canonical(event["data"].get("args") or {}))
            shapes[str(event["data"].get("tool")), args].append(event)
    found = [
        Repeated(tool, len({canonical(e["data"].get("args") or {}) for e in same}) > 1, same)
        for (tool, _), same in shapes.items()
        if len(same) > 1
    ]
    return sorted(found, key=lambda r: -len(r.events))


def _tokens(event: Event) -> int:
    return int(event["data"].get("in") or 0) + int(event["data"].get("out") or 0)
