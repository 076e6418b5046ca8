"""The files of a source of logs: which there are, what each is, and their raw lines and records around a time range.

What could not be read is noted along the way and listed at the end.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.tools.sources.compressed_files import DamagedFileError, open_decompressed
from opsleuth.tools.sources.counted_lines import CountingWork
from opsleuth.tools.sources.counting_units import UNIT_BYTES, cut_file
from opsleuth.tools.sources.file_patterns import find_matching_paths
from opsleuth.tools.sources.log_formats.encodings import detect_encoding
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.log_formats.recognition import recognize_lines
from opsleuth.tools.sources.logtables import is_log_table, read_log_rows, why_unreadable
from opsleuth.tools.sources.long_lines import LONGEST_LINE, is_cut, skip_rest_of_line, without_half_character
from opsleuth.tools.sources.table_files import FileProblems
from opsleuth.tools.sources.time_seek import BLOCK, SLACK, find_time_offset
from opsleuth.tools.spec import NotPermittedError, UnavailableError

# Bytes at the end of a file in which its last time is looked for.
_TAIL = 65_536
# Lines at either end of a file in which its first and last time are looked for.
_EDGE_LINES = 200
# By how much logs are smaller when packed, about.
_PACKED = 8.0


@dataclass(frozen=True, slots=True)
class FileSection:
    """Bytes of a file: the time range lies between `begin` and `end`, every line from `inner` to `outer` in it."""

    path: Path
    begin: int
    inner: int
    outer: int
    end: int

    @property
    def size(self) -> int:
        return self.outer - self.inner


class LogFileSet:
    """The files that fit the patterns of the source called `name`; `named` maps services to the source's names."""

    def __init__(
        self, name: str, patterns: Sequence[str], rules: ReadingRules, named: Callable[[str], str]
    ) -> None:
        self.name = name
        self._patterns = patterns
        self._rules = rules
        self._named = named
        self._known: dict[tuple[Path, int, int], LogFile] = {}
        self._damaged: dict[str, None] = {}

    @property
    def known_files(self) -> list[LogFile]:
        """The files that were opened so far."""
        return [*self._known.values()]

    def list_missed(self, *, timed: bool = False) -> tuple[str, ...]:
        """What was not read; with `timed` also what was read and has no time, for those who need one."""
        troubles = (text for file in self._known.values() for text in file.troubles(timed=timed))
        return (*self._passed_over(), *self._damaged, *dict.fromkeys(troubles))

    def file_at(self, path: Path) -> LogFile:
        """The file with what was found out about it, once for each state of it. Raises as `noting_errors`."""
        state = path.stat()
        key = (path, state.st_size, int(state.st_mtime))
        if key not in self._known:
            with self.noting_errors(path):
                self._known[key] = self._open_file(path)
        return self._known.get(key) or LogFile.damaged(path, self._rules)

    def _open_file(self, path: Path) -> LogFile:
        try:
            return LogFile(path, self._rules, self._named)
        except ValueError as error:
            raise UnavailableError(f"{self.name}: {error}") from None

    def is_table(self, path: Path) -> bool:
        """Whether the file is a table whose first row names its columns; a server's csvlog has no such row."""
        if not is_log_table(path):
            return False
        if path.suffix == ".parquet":
            return True
        with self.noting_errors(path), open_decompressed(path) as file:
            first = file.readline(LONGEST_LINE)
            found = recognize_lines([first.decode(detect_encoding(first) or "latin-1", "replace")], 0.0)
            return "postgres-csv" not in found.counts
        return True

    def list_paths(self) -> list[Path]:
        files = sorted(path for path in self._fitting_paths() if path.is_file())
        if not files:
            raise UnavailableError(f"{self.name}: no file fits {', '.join(self._patterns)}")
        return [path for path in files if why_unreadable(path) is None]

    def _fitting_paths(self) -> set[Path]:
        return find_matching_paths(self._patterns)

    def _passed_over(self) -> Iterator[str]:
        for path in sorted(self._fitting_paths()):
            if why := why_unreadable(path):
                yield f"{path.name} was not read: {why}"

    def read_lines(self, span: TimeRange | None, work: CountingWork | None = None) -> Iterator[LogLine]:
        for path in self.paths_within(span):
            if self.is_table(path):
                yield from self._read_rows(path)
                continue
            file = self.file_at(path)
            if not file.unread:
                raws = self._read_raw(path, span)
                yield from file.records(
                    raws if work is None else work.tally(raws), None if span is None else span.end
                )

    def _read_rows(self, path: Path) -> Iterator[LogLine]:
        """Each row of a table; tables are in any order."""
        trouble, reader = FileProblems(path.name), self.file_at(path).reader
        with self.noting_errors(path):
            for text, row in read_log_rows(path, trouble):
                yield reader.of_row(row, text)
        self._damaged |= dict.fromkeys(trouble.sentences())

    def paths_within(self, span: TimeRange | None) -> Iterator[Path]:
        """The files without those that end before the stretch begins, by their last lines or, packed, by their date."""
        for path in self.list_paths():
            if (
                span is None
                or path.stat().st_mtime >= span.start - SLACK
                or not self._is_over(path, span.start)
            ):
                yield path

    def _is_over(self, path: Path, time: float) -> bool:
        """Whether an old file is as old as its date says: a copy may have any date."""
        if self.is_table(path):
            return False
        file = self.file_at(path)
        known = [moment for raw in self._last_lines(path, file) if (moment := file.time_of(raw)) is not None]
        return bool(known) and max(known) < time - SLACK

    def _last_lines(self, path: Path, file: LogFile) -> list[bytes]:
        """Of a packed file, which would have to be unpacked whole, its first lines: they are older than its date."""
        with self.noting_errors(path), file.open() as stream:
            if file.is_seekable:
                stream.seek(max(0, path.stat().st_size - _TAIL))
            return stream.read(_TAIL).splitlines()
        return []

    def _read_raw(self, path: Path, span: TimeRange | None) -> Iterator[bytes]:
        """The lines of a file from where the stretch begins, if they are in order of time; else all of them."""
        file = self.file_at(path)
        if file.is_document:
            return self._read_documents(file)
        ordered = span is not None and file.is_seekable
        return self.read_range(path, (self.find_start(path, span.start) or 0) if ordered and span else 0)

    def _read_documents(self, file: LogFile) -> Iterator[bytes]:
        with self.noting_errors(file.path):
            yield from file.documents()

    def read_range(self, path: Path, begin: int, end: int | None = None) -> Iterator[bytes]:
        with self.noting_errors(path), self.file_at(path).open() as file:
            if begin:
                file.seek(begin)
            while (end is None or begin < end) and (raw := file.readline(LONGEST_LINE)):
                start, begin = begin, begin + len(raw)
                if len(raw) < LONGEST_LINE or not is_cut(raw, LONGEST_LINE):
                    yield raw
                    continue
                yield without_half_character(raw)
                skipped = skip_rest_of_line(file)
                begin += skipped
                if skipped:
                    self.file_at(path).cut.long_lines.add(start)

    @contextmanager
    def noting_errors(self, path: Path) -> Iterator[None]:
        """Raises NotPermittedError, UnavailableError; what is damaged is noted, and what came before it counts."""
        try:
            yield
        except TimeoutError:  # an OSError as well
            raise
        except PermissionError:
            raise NotPermittedError(f"{self.name}: {path} may not be read: check its permissions") from None
        except DamagedFileError:
            self.note_damage(path)
        except OSError as error:
            raise UnavailableError(
                f"{self.name}: {path} cannot be read ({error.strerror or error})"
            ) from None

    def note_damage(self, path: Path) -> None:
        self._damaged[f"{path.name} is damaged or cut short: the lines before were read"] = None

    def find_start(self, path: Path, time: float) -> int | None:
        """The beginning of a line before every line from `time` on; None if they are not in order of time."""
        with self.noting_errors(path):
            start = find_time_offset(path, time, self.file_at(path).time_of)
            return _next_line_start(path, start) if start else start
        return None

    def section_of(self, path: Path, span: TimeRange) -> FileSection | None:
        times = (span.start, span.start + 2 * SLACK, span.end, span.end + 3 * SLACK)
        plain = not self.is_table(path) and self.file_at(path).is_verbatim
        places = [self.find_start(path, time) for time in times] if plain else []
        known = [place for place in places if place is not None]
        if len(known) < len(times):
            return None
        begin, inner, outer, end = known
        return FileSection(
            path, begin, _next_line_start(path, inner + BLOCK), outer, _next_line_start(path, end + BLOCK)
        )

    def states_of_files(self) -> tuple[tuple[Path, int, float], ...]:
        """What says whether the files are as they were."""
        return tuple((path, path.stat().st_size, path.stat().st_mtime) for path in self.list_paths())

    def covered_span(self) -> tuple[float, float] | None:
        """The first and the last time in the files, by their beginnings and ends; None where no line has one."""
        times = [
            time for path in self.list_paths() if not self.is_table(path) for time in self._edge_times(path)
        ]
        return (min(times), max(times)) if times else None

    def _edge_times(self, path: Path) -> Iterator[float]:
        """Times of the first and the last lines; of a packed file, which would have to be unpacked whole, of the first."""
        file = self.file_at(path)
        if file.unread:
            return
        last = self._last_lines(path, file)[-_EDGE_LINES:]
        with self.noting_errors(path), file.open() as stream:
            last += stream.read(_TAIL).splitlines()[:_EDGE_LINES]
        yield from (time for raw in last if (time := file.time_of(raw)) is not None)

    def size_of(self, span: TimeRange) -> int | None:
        """Bytes of a time range; None where one of the files has to be read whole to know."""
        parts = [self.section_of(path, span) for path in self.paths_within(span)]
        known = [part.end - part.begin for part in parts if part]
        return sum(known) if len(known) == len(parts) else None

    def estimate_lines(self, span: TimeRange, worth: float) -> tuple[float, float]:
        """Bytes and lines of a stretch, about; none below `worth` bytes, or where there are tables, read in another way."""
        paths = [*self.paths_within(span)]
        if any(map(self.is_table, paths)) or sum(map(self._unpacked_size, paths)) < worth:
            return 0.0, 0.0
        sizes = {path: self._size_within(path, span) for path in paths}
        return sum(sizes.values()), sum(
            size / self.file_at(path).bytes_per_line for path, size in sizes.items()
        )

    def _unpacked_size(self, path: Path) -> float:
        return path.stat().st_size * (1.0 if self.file_at(path).is_plain else _PACKED)

    def _size_within(self, path: Path, span: TimeRange) -> float:
        section = self.section_of(path, span)
        return section.end - section.begin if section else self._unpacked_size(path)

    def ranges_of(self, path: Path, span: TimeRange) -> Iterator[tuple[int, int | None]]:
        """Parts of a file that may hold lines of the stretch."""
        file = self.file_at(path)
        if file.unread:
            return
        begin = (self.find_start(path, span.start) or 0) if file.is_seekable else 0
        end = self.find_start(path, span.end + 3 * SLACK) if file.is_seekable else None
        for part in cut_file(file, begin, UNIT_BYTES):
            if end is None or part[0] <= end + BLOCK:
                yield part


def _next_line_start(path: Path, offset: int) -> int:
    """The start of the next line, however long this one is."""
    with path.open("rb") as file:
        file.seek(offset)
        skip_rest_of_line(file)
        return file.tell()
