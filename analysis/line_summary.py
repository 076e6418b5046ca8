"""What a search for lines of a level needs to know of a stretch: exact counts by service and level, the first and last lines.

It is collected while lines are counted, so that the search need not read them again.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from opsleuth.analysis.records import LogLine

MOST_SHOWN = 50
"""Lines that are kept of the beginning, and of the end: half of what a search may show."""


class PlacedLine(NamedTuple):
    """A line and its place in the stretch: part, then number within it."""

    place: tuple[int, int]
    line: LogLine


@dataclass(slots=True)
class LevelSummary:
    """Lines of one service at one level; all of them have a time. `head` and `tail` do not overlap."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    head: list[PlacedLine] = field(default_factory=list)
    tail: deque[PlacedLine] = field(default_factory=lambda: deque(maxlen=MOST_SHOWN))

    def add(self, line: LogLine, time: float, place: tuple[int, int]) -> None:
        if self.count == 0:
            self.first = self.last = time
        elif time > self.last:
            self.last = time
        elif time < self.first:
            self.first = time
        self.count += 1
        (self.head if len(self.head) < MOST_SHOWN else self.tail).append(PlacedLine(place, line))

    def extend(self, other: "LevelSummary") -> None:
        """Add what was collected of another part, before or behind this one."""
        if self.count == 0:
            self.first, self.last = other.first, other.last
        self.count += other.count
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        lines = sorted((*self.head, *self.tail, *other.head, *other.tail), key=lambda one: one.place)
        self.head = lines[:MOST_SHOWN]
        self.tail = deque(lines[MOST_SHOWN:], maxlen=MOST_SHOWN)


LineSummaries = dict[tuple[str, str | None], LevelSummary]


def add_summaries(into: LineSummaries, others: LineSummaries) -> None:
    """Add the summaries of another part."""
    for key, summary in others.items():
        into.setdefault(key, LevelSummary()).extend(summary)


def first_and_last_lines(
    summaries: Iterable[LevelSummary], head: int, tail: int
) -> tuple[list[LogLine], list[LogLine]]:
    """The first `head` and the last `tail` lines of all summaries, in their order, none twice; each at most `MOST_SHOWN`."""
    placed = {one.place: one.line for summary in summaries for one in (*summary.head, *summary.tail)}
    order = sorted(placed)
    first, rest = order[:head], order[head:]
    last = rest[-tail:] if tail else []
    return [placed[place] for place in first], [placed[place] for place in last]
