"""Logs cut into units that can be counted by themselves: byte ranges that begin with a record, or whole files.

How a log is cut depends on its bytes alone, so that one process and several count the same. The counts of a unit
are sent in parts of bounded size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opsleuth.analysis.line_summary import LevelSummary, LineSummaries
from opsleuth.analysis.log_templates import Masker
from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.analysis.template_counts import MOST_FORMS, MaskCounter, TemplateCount
from opsleuth.tools.sources.compressed_files import DamagedFileError
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.long_lines import LONGEST_LINE, is_cut, skip_rest_of_line, without_half_character

UNIT_BYTES = 64_000_000
PART_LINES = 400_000
_MOST_CONTINUED = 5_000
"""Lines among which the beginning of a record is looked for: a longer one is not cut."""


@dataclass(frozen=True, slots=True)
class CountingUnit:
    """Bytes of a file from a record's beginning on; `end` is None for all that follows.

    Units are counted in the order of their `number`; `place` is the one in the order of files and lines.
    """

    number: int
    path: Path
    begin: int = 0
    end: int | None = None
    place: int = 0


@dataclass(frozen=True, slots=True)
class CountingRules:
    """What is counted: lines of `span`; of those in `window` a summary as well, and every `step`-th is kept."""

    span: TimeRange
    window: TimeRange
    step: int
    reading: ReadingRules
    services: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CountedPart:
    """What was counted of a part of a unit, in the order of its lines.

    `sample` are lines with their number in the unit. `untimed_inside` reports lines without a time, of which a
    summary says nothing. `read` are bytes.
    """

    unit: int
    rows: list[TemplateCount] = field(default_factory=list)
    lines: int = 0
    sample: list[tuple[int, LogLine]] = field(default_factory=list)
    summaries: LineSummaries = field(default_factory=dict)
    untimed: int = 0
    read: int = 0
    last: float | None = None


@dataclass(slots=True)
class UnitFacts:
    """What was found out about the file while a unit of it was read; `ended_early` where lines after the stretch came."""

    unit: int
    ended_early: bool = False
    timed: int = 0
    untimed: int = 0
    left_out: dict[tuple[float | None, str], int] = field(default_factory=dict)
    long_lines: set[int] = field(default_factory=set)
    without_zone: int = 0
    unknown_zones: dict[str, int] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class UnitFailure:
    """The file of a unit could not be read; `refused` where its permissions do not allow it."""

    unit: int
    path: Path
    why: str
    refused: bool


CountingMessage = CountedPart | UnitFacts | UnitFailure
"""What comes of a unit: parts, then facts, or a failure in their place."""


class PartCounter:
    """Counts the lines of a unit, or of all there is; a part is taken from it whenever it is full."""

    def __init__(self, unit: CountingUnit | None, rules: CountingRules, masker: Masker | None = None) -> None:
        self.step = rules.step
        self.read = 0
        self._rules = rules
        self._masker = masker or Masker()
        self._unit = unit.number if unit else 0
        self._place = unit.place if unit else 0
        self._number = 0
        self._begin_part()

    @property
    def lines(self) -> int:
        """Lines of the part that is being counted."""
        return self._counter.lines

    @property
    def is_full(self) -> bool:
        return self._counter.lines >= PART_LINES or self._counter.masks_held >= MOST_FORMS

    def add(self, line: LogLine) -> None:
        """Count the line if it lies in the time range."""
        time, rules = line.time, self._rules
        if time is None:
            self._part.untimed += 1
            return
        if not rules.span.start <= time < rules.span.end:
            return
        self._counter.add(line)
        self._number += 1
        if self._number % self.step == 0:
            self._part.sample.append((self._number, line))
        self._part.last = time
        if time >= rules.window.start:  # both end with the window
            key = (line.service, line.level)
            summary = self._part.summaries.get(key)
            if summary is None:
                summary = self._part.summaries[key] = LevelSummary()
            summary.add(line, time, (self._place, self._number))

    def take(self) -> CountedPart:
        """The part so far; the next line begins another."""
        part = self._part
        part.rows, part.lines, part.read = self._counter.rows(), self._counter.lines, self.read
        self.read = 0
        self._begin_part()
        return part

    def _begin_part(self) -> None:
        self._counter = MaskCounter(self._masker)
        self._part = CountedPart(self._unit)


def count_unit(
    file: LogFile, unit: CountingUnit, rules: CountingRules, masker: Masker
) -> Iterator[CountedPart | UnitFacts]:
    """The parts of a unit, and at last the facts about it. Raises OSError, DamagedFileError."""
    counter = PartCounter(unit, rules, masker)
    raws = RawLines(file, unit.begin, unit.end)
    tally = file.reader.times.tally
    file.timed = file.untimed = tally.without_zone = 0
    file.cut.left_out.clear()
    file.cut.long_lines.clear()
    tally.unknown_zones.clear()
    services = set[str]()
    for line in file.records(raws, rules.span.end):
        services.add(line.service)
        counter.add(line)
        if counter.is_full:
            counter.read, raws.read = raws.read, 0
            yield counter.take()
    counter.read = raws.read
    yield counter.take()
    yield UnitFacts(
        unit.number, not raws.exhausted, file.timed, file.untimed, dict(file.cut.left_out),
        set(file.cut.long_lines), tally.without_zone, dict(tally.unknown_zones), services,
    )  # fmt: skip


class UnitReader:
    """Counts units; files and masks that were met are remembered."""

    def __init__(self, rules: CountingRules) -> None:
        self._rules = rules
        self._masker = Masker()
        self._files: dict[Path, LogFile] = {}

    def count(self, unit: CountingUnit) -> Iterator[CountingMessage]:
        """The parts of the unit and the facts about it, or why it cannot be read."""
        try:
            yield from count_unit(self._file(unit.path), unit, self._rules, self._masker)
        except DamagedFileError:
            yield UnitFacts(unit.number, damaged=True)
        except OSError as error:
            refused = isinstance(error, PermissionError)
            yield UnitFailure(unit.number, unit.path, str(error.strerror or error), refused)

    def _file(self, path: Path) -> LogFile:
        if path not in self._files:
            services = self._rules.services
            self._files[path] = LogFile(path, self._rules.reading, lambda name: services.get(name, name))
        return self._files[path]


class RawLines:
    """The lines of a range of a file; `read` counts their bytes, `exhausted` tells whether all were taken."""

    def __init__(self, file: LogFile, begin: int, end: int | None) -> None:
        self._file = file
        self._begin = begin
        self._end = end
        self.read = 0
        self.exhausted = False

    def __iter__(self) -> Iterator[bytes]:
        if self._file.is_document:
            yield from self._file.documents()
        else:
            yield from self._lines()
        self.exhausted = True

    def _lines(self) -> Iterator[bytes]:
        at, end = self._begin, self._end
        with self._file.open() as stream:
            if at:
                stream.seek(at)
            while (end is None or at < end) and (raw := stream.readline(LONGEST_LINE)):
                begin, at = at, at + len(raw)
                self.read += len(raw)
                if len(raw) < LONGEST_LINE or not is_cut(raw, LONGEST_LINE):
                    yield raw
                    continue
                yield without_half_character(raw)
                skipped = skip_rest_of_line(stream)
                at += skipped
                self.read += skipped
                if skipped:
                    self._file.cut.long_lines.add(begin)


def cut_file(file: LogFile, begin: int, unit_bytes: int) -> list[tuple[int, int | None]]:
    """Ranges of a file from `begin` on, each of which begins with a record; one range where it cannot be cut."""
    if not file.is_cuttable:
        return [(begin, None)]
    size = file.path.stat().st_size
    places = [begin]
    while places[-1] + unit_bytes * 3 // 2 < size:
        place = _find_record_start(file, places[-1] + unit_bytes)
        if place is None:
            break
        places.append(place)
    return list(zip(places, [*places[1:], None], strict=True))


def _find_record_start(file: LogFile, offset: int) -> int | None:
    """Where the first record after the line at the offset begins; None where none does for long."""
    with file.path.open("rb") as stream:
        stream.seek(offset)
        skip_rest_of_line(stream)
        for _ in range(_MOST_CONTINUED):
            place = stream.tell()
            raw = stream.readline(LONGEST_LINE)
            if not raw:
                return None
            if file.starts_record(raw):
                return place
            if is_cut(raw, LONGEST_LINE):
                skip_rest_of_line(stream)
    return None
