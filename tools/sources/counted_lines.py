"""Logs too large for memory: all lines are counted by statement and minute, and an even sample is kept."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from opsleuth.analysis.line_summary import LineSummaries, add_summaries
from opsleuth.analysis.records import LogLine, LogPatternCount, TimeRange
from opsleuth.analysis.template_counts import TemplateCounter
from opsleuth.tools.sources.counting_units import CountedPart, CountingRules, PartCounter
from opsleuth.tools.sources.log_formats.log_file import ReadingRules

MOST_COUNTED = 10_000_000
"""Lines of one stretch that are counted."""
MOST_COUNTED_BYTES = 4_000_000_000
_LOOK_EVERY = 4_096
_ALWAYS = TimeRange(-math.inf, math.inf)


@dataclass(slots=True)
class CountingWork:
    """How much of a stretch was read, and when to stop: the work is limited in lines and bytes.

    `seconds_left` ends the work of a machine that is too busy for it, so that what was counted by then is not lost.
    `size` is how many bytes the stretch has, None where files are packed or not in order of time.
    """

    most_lines: int = MOST_COUNTED
    most_bytes: int = MOST_COUNTED_BYTES
    seconds_left: Callable[[], float] = field(default=lambda: math.inf)
    size: int | None = None
    read: int = 0

    def why_over(self, lines: int) -> str:
        """Why no more may be counted after this many lines; empty where more may."""
        if lines < self.most_lines and lines % _LOOK_EVERY:
            return ""
        return self.why_too_much(lines + 1)

    def why_too_much(self, lines: int) -> str:
        """Why this many lines may not be counted; empty where they may."""
        if lines > self.most_lines:
            return f"there are more than {self.most_lines:,} lines"
        if self.read >= self.most_bytes:
            return f"there is more than {_format_size(self.most_bytes)}"
        return self.why_late()

    def why_late(self) -> str:
        """Says so where no time is left; empty otherwise."""
        return "the time for it was used up" if self.seconds_left() <= 0 else ""

    def tally(self, raws: Iterable[bytes]) -> Iterator[bytes]:
        """The raw lines; their bytes count as read."""
        for raw in raws:
            self.read += len(raw)
            yield raw

    def describe_share(self) -> str:
        if not self.size:
            return f"{_format_size(self.read)} were read"
        share = min(self.read / self.size, 0.99)
        return f"about {share:.0%} of the {_format_size(self.size)} in this stretch were read"


class CountedLines:
    """Counts are exact for all lines added; `sample` holds every `step`-th line, at most `most`.

    Lines are added one by one, or in parts that others have counted.
    """

    def __init__(
        self, most: int, work: CountingWork | None = None, rules: CountingRules | None = None
    ) -> None:
        self.work = work or CountingWork()
        self._merged = 0
        self._last: float | None = None
        self._rules = rules or CountingRules(_ALWAYS, _ALWAYS, 1, ReadingRules())
        self.step = self._rules.step
        self._most = most
        self._sample: list[tuple[int, LogLine]] = []
        self._counter = TemplateCounter()
        self._summaries: LineSummaries = {}
        self._untimed = 0
        self._part = PartCounter(None, self._rules)
        self._ended = ""

    def add(self, line: LogLine) -> bool:
        """Count the line; false where it is one too many."""
        if why := self.work.why_over(self.lines):
            self._end(why, line.time)
            return False
        self._part.add(line)
        if self._part.is_full:
            self._take_part()
        return True

    def add_part(self, part: CountedPart) -> bool:
        """Count what another counter counted; false where that is too much."""
        self.work.read += part.read
        if part.lines and (why := self.work.why_too_much(self._merged + part.lines)):
            self._end(why, part.last)
            return False
        self._merge(part)
        return True

    def end_early(self) -> None:
        """Say that not all was counted because the time was used up."""
        self._end(self.work.why_late(), self._last)

    @property
    def lines(self) -> int:
        return self._merged + self._part.lines

    @property
    def sample(self) -> list[LogLine]:
        self._take_part()
        return [line for _, line in self._sample]

    @property
    def summaries(self) -> LineSummaries | None:
        """Lines of the window by service and level; None where lines without a time, or some at the end, are missing."""
        self._take_part()
        return None if self._untimed or self._ended else self._summaries

    def _take_part(self) -> None:
        self._merge(self._part.take())
        self._part.step = self.step

    def _merge(self, part: CountedPart) -> None:
        self._counter.add_rows(part.rows)
        self._merged += part.lines
        self._untimed += part.untimed
        self._last = part.last or self._last
        add_summaries(self._summaries, part.summaries)
        self._sample += [one for one in part.sample if one[0] % self.step == 0]
        while len(self._sample) > self._most:
            self.step *= 2
            self._sample = [one for one in self._sample if one[0] % self.step == 0]

    def _end(self, why: str, time: float | None) -> None:
        self._ended = f"{why}, and the counting ended at {_second_name(time)}"

    def pattern_counts(self) -> list[LogPatternCount]:
        """Lines by statement and minute; a statement goes by the first of its messages."""
        self._take_part()
        return [
            LogPatternCount(_minute_name(start), row.service, row.level, row.samples[0], count, None)
            for row in self._counter.rows()
            for start, count in self._counter.bucket_starts(row).items()
        ]

    @property
    def note(self) -> str:
        """What was counted and what was kept, in words."""
        return (
            f"log counts are exact for {self.lines:,} lines; single lines are looked at in every {self.step}th;"
            " log search scans all"
        )

    @property
    def missed(self) -> str:
        """What was not counted, and how much was; empty where all was."""
        if not self._ended:
            return ""
        return f"{self._ended}: {self.work.describe_share()}; give a shorter window"


def _minute_name(start: float) -> str:
    return f"{datetime.fromtimestamp(start, UTC):%Y-%m-%dT%H:%M}"


def _second_name(time: float | None) -> str:
    return (
        "a line without a time" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"
    )


def _format_size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
