"""Log files and folders of them, rotated and compressed: any number of bytes in bounded memory.

How a file is read is found out in `log_formats`; where a time range begins in a large file is found by halves
(`seek`).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta, timezone
from itertools import chain, islice
from pathlib import Path
from typing import Any

from opsleuth.analysis.line_summary import LineSummaries
from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.analysis.zone_offsets import read_offset
from opsleuth.configuration.source_settings import LogFilesSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources import ripgrep
from opsleuth.tools.sources.counted_lines import CountedLines, CountingWork
from opsleuth.tools.sources.counting_pool import CountingProcessError, usable_processors
from opsleuth.tools.sources.counting_units import CountingRules
from opsleuth.tools.sources.line_prefilter import can_prefilter, of_file_lines
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.log_counting import WORTH_IT, UnitCounting, first_step, number_units
from opsleuth.tools.sources.log_file_set import FileSection, LogFileSet
from opsleuth.tools.sources.log_formats.log_file import ReadingRules
from opsleuth.tools.sources.long_lines import LONGEST_LINE
from opsleuth.tools.sources.shared_work import SharedWork
from opsleuth.tools.sources.source_protocols import Capability, FilteredLogs, LogFilter
from opsleuth.tools.sources.time_seek import BLOCK
from opsleuth.tools.spec import UnavailableError

# Bytes from which on a program that looks through them first saves time.
PAYS = 32_000_000
# Lines that are held of a stretch that is counted.
MOST_SAMPLED = 50_000


class LogFilesSource(LiveSource):
    """The source of kind `logfiles`."""

    capabilities: frozenset[Capability] = frozenset({"logs"})
    # The work is limited in lines: how long they take depends on the machine.
    fetch_seconds = 290.0
    counting_seconds = 240.0
    counting_processes = 2
    worth_processes = WORTH_IT

    def __init__(self, name: str, settings: LogFilesSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._rules = ReadingRules(
            timezone(timedelta(hours=settings.zone)),
            _read_zone_offsets(settings.zones),
            settings.service,
            settings.format,
            settings.pattern,
            settings.encoding,
        )
        self.files = LogFileSet(name, settings.files, self._rules, self.named)
        self._works: dict[TimeRange, SharedWork[Sequence[LogLine] | CountedLines]] = {}
        self._summaries: dict[TimeRange, tuple[Any, LineSummaries]] = {}
        self._counts_alone = False

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        read = await self._read_shared(window)
        rows: Mapping[str, Sequence[Any]]
        notes, missed = list[str](), list[str]()
        if isinstance(read, CountedLines):
            rows = {"logs": read.sample, "patterns": read.pattern_counts()}
            notes.append(read.note)
            missed += filter(None, [read.missed])
        else:
            rows = {"logs": read}
            missed += [] if read else await asyncio.to_thread(self._describe_gap, window)
        notes += self._zoneless()
        asked = tuple(
            f"read {path} ({format_count(path.stat().st_size, 'byte')})"
            for path in self.files.list_paths()[:50]
        )
        return FetchedRows(rows, asked, tuple(notes), (*missed, *self.files.list_missed(timed=True)))

    def _describe_gap(self, window: TimeRange) -> list[str]:
        """Where the files begin and end, if the window lies before or behind all that they hold."""
        covered = self.files.covered_span()
        if covered is None or (window.end > covered[0] and window.start <= covered[1]):
            return []
        first, last = (format_rfc3339(float(int(time))) for time in covered)
        return [f"the window lies outside the logs, which begin at {first} and end at {last}: choose --since and --until within them"]  # fmt: skip

    async def _read_shared(self, window: TimeRange) -> Sequence[LogLine] | CountedLines:
        """The lines of the window, or what was counted; a call that is cut off leaves its work to the next one."""
        if (work := self._works.get(window)) is None:
            until = self.clock.monotonic() + self.counting_seconds
            work = SharedWork(lambda is_over: self._read_window(window, until, is_over), self.clock)
            self._works[window] = work
        try:
            return await work.wait_for_result()
        finally:
            if work.is_done:
                self._works.pop(window, None)

    def _read_window(
        self, window: TimeRange, until: float, is_abandoned: Callable[[], bool]
    ) -> Sequence[LogLine] | CountedLines:
        """In one pass: all lines of the window and before it, or, of too many, their counts and some of them."""
        span = TimeRange(window.start - self._settings.before, window.end)

        def seconds_left() -> float:
            return 0.0 if is_abandoned() else until - self.clock.monotonic()

        work = CountingWork(seconds_left=seconds_left)
        state = self.files.states_of_files()
        size, lines = self.files.estimate_lines(span, self.worth_processes)
        if size >= self.worth_processes and lines > 2 * self._settings.max_lines:
            work.size = self.files.size_of(span)
            read: Sequence[LogLine] | CountedLines = self._count_units(span, window, work, lines)
        else:
            read = self._hold_or_count(span, window, work)
        if isinstance(read, CountedLines) and (summaries := read.summaries) is not None:
            self._summaries = {window: (state, summaries)}
        return read

    def _hold_or_count(
        self, span: TimeRange, window: TimeRange, work: CountingWork
    ) -> Sequence[LogLine] | CountedLines:
        most, inside = self._settings.max_lines, 0
        held: list[LogLine] = []
        untimed: LogLine | None = None
        lines = self.files.read_lines(span, work)
        for line in lines:
            if line.time is None:
                untimed = line
            elif span.start <= line.time < span.end:
                held.append(line)
                inside += line.time >= window.start
                if inside > most or len(held) - inside > most // 2:
                    break
        else:
            earlier = [line for line in held if line.time is not None and line.time < window.start]
            return [*earlier, *(line for line in held if line.time is None or line.time >= window.start)]
        work.size = self.files.size_of(span)
        rules = CountingRules(span, window, 1, self._rules)
        counted = CountedLines(min(most, MOST_SAMPLED), work, rules)
        rest = chain(held, [untimed] if untimed else [], lines)
        held = []
        for line in rest:
            if not counted.add(line):
                break
        return counted

    def _count_units(
        self, span: TimeRange, window: TimeRange, work: CountingWork, lines: float
    ) -> CountedLines:
        """A stretch that is so large that counting it in several processes pays. Raises UnavailableError, NotPermittedError."""
        most = min(self._settings.max_lines, MOST_SAMPLED)
        rules = CountingRules(span, window, first_step(lines, most), self._rules, dict(self._services))
        counted = CountedLines(most, work, rules)
        ranges = {path: list(self.files.ranges_of(path, span)) for path in self.files.paths_within(span)}
        counting = UnitCounting(counted, number_units(ranges), self.files.file_at)
        processes = 1 if self._counts_alone else min(self.counting_processes, usable_processors())
        try:
            counting.count(rules, processes, lambda: work.seconds_left() <= 0)
        except (CountingProcessError, OSError) as error:
            self._counts_alone = True  # the next look needs no other process
            raise UnavailableError(
                f"{self.name}: {error}; ask again, and this process counts by itself, or give a shorter window"
            ) from None
        if (failure := counting.failure) is not None:
            with self.files.noting_errors(failure.path):
                raise PermissionError if failure.refused else OSError(0, failure.why)
        self._seen |= counting.services
        for path, totals in counting.totals.items():
            if totals.damaged:
                self.files.note_damage(path)
        return counted

    def summarize_logs(self, span: TimeRange) -> LineSummaries | None:
        """Lines by service and level, where all lines of exactly this stretch were counted and the files are as then."""
        known = self._summaries.get(span)
        if known is None or known[0] != self.files.states_of_files() or self.files.list_missed():
            return None
        return known[1]

    def _zoneless(self) -> Iterator[str]:
        """A note where times without a zone were read in that of the settings, for they may be of another."""
        count = sum(file.reader.times.tally.without_zone for file in self.files.known_files)
        if count and self._settings.zone == 0:
            yield "times without a zone were read as UTC: set zone, in hours, where they are not"

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        """Every line around the time range, in the order of files and lines; there is no baseline in files."""
        return iter(()) if baseline else self._scanned(span)

    async def filter_logs(self, wanted: LogFilter, span: TimeRange) -> FilteredLogs | None:
        """The lines that ripgrep finds, where it is installed and there is much to look through."""
        if ripgrep.find_ripgrep() is None or not can_prefilter(wanted.text):
            return None
        return await asyncio.to_thread(self._sifted, of_file_lines(wanted.text), span)

    def _sifted(self, pattern: str, span: TimeRange) -> FilteredLogs | None:
        """None unless all files are plain and in order of time: one that is not has to be read anyway."""
        parts = [self.files.section_of(path, span) for path in self.files.paths_within(span)]
        known = [part for part in parts if part]
        if len(known) < len(parts) or sum(part.size for part in known) < PAYS:
            return None
        scanned = sum(self._counted(part, span) for part in known)
        asked = tuple(f"rg -e {pattern!r} {part.path} from byte {part.begin:,}" for part in known)
        return FilteredLogs(self._found(known, pattern, span), self._scanned(span), scanned, asked)

    def _found(self, parts: Sequence[FileSection], pattern: str, span: TimeRange) -> Iterator[LogLine]:
        until = self.clock.monotonic() + ripgrep.SECONDS
        for part in parts:
            raws = self._near(part, pattern, until - self.clock.monotonic())
            yield from self.files.file_at(part.path).records(raws, span.end)
        if missed := self.files.list_missed():
            raise UnavailableError("; ".join(missed))

    def _near(self, part: FileSection, pattern: str, seconds: float) -> Iterator[bytes]:
        is_head = self.files.file_at(part.path).starts_record
        found = ripgrep.find_line_offsets(part.path, part.begin, part.end, pattern, max(seconds, 0.0))
        with self.files.noting_errors(part.path), part.path.open("rb") as file, closing(found):
            yield from ripgrep.read_records_around(file, part.begin, found, LONGEST_LINE, is_head)

    def _counted(self, part: FileSection, span: TimeRange) -> int:
        """Records at the edges of the stretch, and lines between them, where each is a record as a rule."""
        if part.size <= 0 or not self._inside(part.path, part.inner, part.inner + BLOCK, span):
            return self._inside(part.path, part.begin, part.end, span)
        edges = self._inside(part.path, part.begin, part.inner, span) + self._inside(part.path, part.outer, part.end, span)  # fmt: skip
        return edges + ripgrep.count_lines_between(part.path, part.inner, part.outer)

    def _inside(self, path: Path, begin: int, end: int, span: TimeRange) -> int:
        lines = self.files.file_at(path).records(self.files.read_range(path, begin, end), span.end)
        return sum(line.time is None or span.start <= line.time < span.end for line in lines)

    def _scanned(self, span: TimeRange | None) -> Iterator[LogLine]:
        yield from self.files.read_lines(span)
        if missed := self.files.list_missed():
            raise UnavailableError("; ".join(missed))

    async def check(self) -> Sequence[SourceCheck]:
        files = await asyncio.to_thread(self.files.list_paths)
        size = sum(path.stat().st_size for path in files)
        checks = [
            SourceCheck("files", "ok", f"{format_count(len(files), 'file')}, {format_count(size, 'byte')}")
        ]
        lines = await asyncio.to_thread(lambda: list(islice(self.files.read_lines(None), 1_000)))
        timed = sum(line.time is not None for line in lines)
        checks += [SourceCheck("formats", "ok", text) for text in self._formats()]
        if lines and timed < len(lines) / 2:
            return [*checks, SourceCheck("times", "warning", f"{timed} of the first {len(lines)} lines have a time that is understood",
                                   "write times as RFC 3339 at the beginning of lines, or as JSON field timestamp")]  # fmt: skip
        names = sorted({line.service for line in lines if line.service})
        return [
            *checks,
            SourceCheck("services", "ok", f"{len(names)}: {', '.join(names[:8])}"),
            *(SourceCheck("files", "warning", text) for text in self.files.list_missed(timed=True)),
        ]

    def _formats(self) -> Iterator[str]:
        for file in self.files.known_files[:8]:
            yield f"{file.path.name}: {file.formats.name}"


def _read_zone_offsets(zones: Mapping[str, str]) -> dict[str, float]:
    """Offsets of abbreviations in seconds; anything that is not an offset was refused with the settings."""
    return {name: offset for name, spelled in zones.items() if (offset := read_offset(spelled)) is not None}
