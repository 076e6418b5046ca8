"""The log lines right before and right after a moment, from lines that come in any order."""

import heapq
from dataclasses import dataclass, field

from opsleuth.analysis.records import LogLine


@dataclass(slots=True)
class NearestLines:
    """Keeps the `limit` lines nearest to `time`: half of them before it, the rest at it or after it.

    Lines of one time keep the order in which they came. Lines without a time are not kept.
    """

    time: float
    limit: int
    _came: int = 0
    _before: list[tuple[float, int, LogLine]] = field(default_factory=list)
    _after: list[tuple[float, int, LogLine]] = field(default_factory=list)

    def add_line(self, line: LogLine) -> None:
        """Keep the line as long as no nearer ones fill its side."""
        if line.time is None:
            return
        self._came += 1
        if line.time < self.time:
            entry = (line.time, self._came, line)
            _push_bounded(self._before, entry, self.limit // 2)
        else:
            entry = (-line.time, -self._came, line)
            _push_bounded(self._after, entry, self.limit - self.limit // 2)

    def list_lines(self) -> list[LogLine]:
        """The lines kept, in order of time."""
        before = sorted(self._before, key=lambda entry: entry[:2])
        after = sorted(self._after, key=lambda entry: (-entry[0], -entry[1]))
        return [line for _, _, line in (*before, *after)]


def _push_bounded(
    heap: list[tuple[float, int, LogLine]], entry: tuple[float, int, LogLine], most: int
) -> None:
    """Add to a heap of at most `most` entries, whose least goes first; the count in each makes them distinct."""
    if len(heap) < most:
        heapq.heappush(heap, entry)
    elif most:
        heapq.heappushpop(heap, entry)
