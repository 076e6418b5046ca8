"""How often each statement of a log was written, minute by minute: exact counts and sampled text in bounded memory.

Each line is masked once and counted by its masked form; only a form that was not met before is sorted into the tree
of templates.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from opsleuth.analysis.log_templates import LogTemplate, Masker, TemplateTree
from opsleuth.analysis.records import LogLine

Key = TypeVar("Key")
MINUTE = 60.0
SAMPLES = 3
MOST_FORMS = 50_000
MOST_CELLS = 200_000


@dataclass(slots=True)
class TemplateCount:
    """Lines of one statement of a service at one level.

    `by_bucket` counts them by stretches of the counter's `width`; `first` and `last` are infinite where no line has a time.
    """

    service: str
    level: str | None
    template: LogTemplate
    count: int = 0
    without_time: int = 0
    first: float = math.inf
    last: float = -math.inf
    samples: list[str] = field(default_factory=list)
    by_bucket: dict[int, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return str(self.template)


class _FormCounter(ABC):
    """Counts lines; a subclass says which row a form that was not met before is counted under."""

    def __init__(self, width: float, masker: Masker | None = None) -> None:
        self.width = width
        self.lines = 0
        self._masker = masker or Masker()
        self._by_form: dict[tuple[str, str | None, str], TemplateCount] = {}
        self._by_mask: dict[tuple[str, str | None, str], TemplateCount] = {}

    def form(self, line: LogLine) -> str:
        """The form of the line's message, for `add`."""
        return self._masker.form(line.message)

    def add(self, line: LogLine, form: str | None = None) -> TemplateCount:
        """The statement that the line is counted under."""
        if form is None:
            form = self._masker.form(line.message)
        row = self._by_form.get((line.service, line.level, form))
        if row is None:
            row = self._sort_in(line, form)
        self.lines += 1
        row.count += 1
        time = line.time
        if time is None:
            row.without_time += 1
            return row
        bucket = int(time // self.width)
        by_bucket = row.by_bucket
        if bucket in by_bucket:
            by_bucket[bucket] += 1
            if time > row.last:
                row.last = time
            elif time < row.first:
                row.first = time
        else:
            self._begin_bucket(row, time, bucket)
        return row

    @abstractmethod
    def _row_of(self, line: LogLine, masked: str) -> TemplateCount:
        """The row of a masked line."""

    def _sort_in(self, line: LogLine, form: str) -> TemplateCount:
        masked = self._masker.mask_form(form, line.message)
        row = self._by_mask.get((line.service, line.level, masked)) or self._row_of(line, masked)
        if not self._masker.names_place(form):
            _limit_remembered(self._by_form)[line.service, line.level, form] = row
        return row

    def _begin_bucket(self, row: TemplateCount, time: float, bucket: int) -> None:
        row.by_bucket[bucket] = 1
        row.first, row.last = min(row.first, time), max(row.last, time)


class MaskCounter(_FormCounter):
    """Counts lines by masked line, minute by minute, of a part of a log that is short enough to hold each mask.

    The rows of parts in their order, given to `TemplateCounter.add_rows`, make the same templates and counts as their
    lines do. Parts may share a masker, which remembers what it has seen.
    """

    def __init__(self, masker: Masker | None = None) -> None:
        super().__init__(MINUTE, masker)

    @property
    def masks_held(self) -> int:
        return len(self._by_mask)

    def rows(self) -> list[TemplateCount]:
        """A row for each masked line, in the order in which they were met; the text of each is its mask."""
        return list(self._by_mask.values())

    def _row_of(self, line: LogLine, masked: str) -> TemplateCount:
        row = TemplateCount(line.service, line.level, LogTemplate([masked]), samples=[line.message])
        self._by_mask[line.service, line.level, masked] = row
        return row


class TemplateCounter(_FormCounter):
    """Counts lines by statement. `width` is the seconds of a bucket: it doubles where there would be too many."""

    def __init__(self, width: float = MINUTE) -> None:
        super().__init__(width)
        self._tree = TemplateTree()
        self._rows: dict[tuple[str, str | None, int], TemplateCount] = {}
        self._cells = 0

    def add_all(self, lines: Iterable[LogLine]) -> "TemplateCounter":
        for line in lines:
            self.add(line)
        return self

    def add_rows(self, rows: Iterable[TemplateCount]) -> None:
        """Count what a `MaskCounter` counted; for a counter whose buckets were minutes at first."""
        for counted in rows:
            row = self._row_of(
                LogLine(None, counted.service, counted.samples[0], counted.level), counted.text
            )
            self.lines += counted.count
            row.count += counted.count
            row.without_time += counted.without_time
            row.first, row.last = min(row.first, counted.first), max(row.last, counted.last)
            self._add_buckets(row, counted.by_bucket)

    def _add_buckets(self, row: TemplateCount, by_minute: Mapping[int, int]) -> None:
        for minute, count in by_minute.items():
            bucket = int(minute * MINUTE // self.width)
            if bucket not in row.by_bucket:
                self._cells += 1
            row.by_bucket[bucket] = row.by_bucket.get(bucket, 0) + count
        if self._cells > MOST_CELLS:
            self._widen()

    @property
    def forms_held(self) -> int:
        """How many masked forms are held at present: never more than the bound."""
        return len(self._by_form)

    def rows(self) -> list[TemplateCount]:
        """All statements, most frequent first, of equal ones in order of their text."""
        return sorted(
            self._rows.values(), key=lambda row: (-row.count, row.service, row.text, row.level or "")
        )

    def bucket_starts(self, row: TemplateCount) -> Mapping[float, int]:
        """Counts by the time at which their bucket begins."""
        return {bucket * self.width: count for bucket, count in sorted(row.by_bucket.items())}

    def _row_of(self, line: LogLine, masked: str) -> TemplateCount:
        if known := self._by_mask.get((line.service, line.level, masked)):
            return known
        template = self._tree.add(masked)
        key = (line.service, line.level, id(template))
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = TemplateCount(line.service, line.level, template)
        if len(row.samples) < SAMPLES:
            row.samples.append(line.message)
        _limit_remembered(self._by_mask)[line.service, line.level, masked] = row
        return row

    def _begin_bucket(self, row: TemplateCount, time: float, bucket: int) -> None:
        super()._begin_bucket(row, time, bucket)
        self._cells += 1
        if self._cells > MOST_CELLS:
            self._widen()

    def _widen(self) -> None:
        """Two buckets become one: the counts stay exact, of longer stretches."""
        self.width *= 2
        self._cells = 0
        for row in self._rows.values():
            wider: dict[int, int] = {}
            for bucket, count in row.by_bucket.items():
                wider[bucket // 2] = wider.get(bucket // 2, 0) + count
            row.by_bucket = wider
            self._cells += len(wider)


def _limit_remembered(remembered: dict[Key, TemplateCount]) -> dict[Key, TemplateCount]:
    if len(remembered) >= MOST_FORMS:
        remembered.clear()
    return remembered
