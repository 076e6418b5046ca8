"""Log files and folders of them, rotated and compressed: any number of bytes in bounded memory.

Which time, level and service a line speaks of is read in `logformat`; where a stretch of time begins in a large
file is found by halves (`seek`).
"""

import asyncio
import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from itertools import islice
from pathlib import Path

from opsleuth.analysis.records import LogLine, Span
from opsleuth.state.words import counted
from opsleuth.tools.sources import ripgrep
from opsleuth.tools.sources.base import Capability, Sifted, Wanted
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.logformat import LineReader, service_of_file
from opsleuth.tools.sources.logtables import is_table, rows_of, why_unread
from opsleuth.tools.sources.packed import Damaged, is_packed, open_bytes
from opsleuth.tools.sources.prefilter import can_look_for, of_raw_lines
from opsleuth.tools.sources.seek import BLOCK, SLACK, start_of
from opsleuth.tools.sources.settings import LogFiles
from opsleuth.tools.sources.tables import Trouble
from opsleuth.tools.spec import NotPermitted, Unavailable

# A line that goes on for more is cut: nobody reads it, and it may be the whole file.
LONGEST_LINE = 64_000
# Lines without a time of their own belong to the one before: a stack trace, a statement over several lines.
MOST_CONTINUED = 60
# Bytes from which on a program that looks through them first saves time.
PAYS = 32_000_000


class LogFilesSource(LiveSource):
    """The source of kind `logfiles`."""

    capabilities: frozenset[Capability] = frozenset({"logs"})

    def __init__(self, name: str, settings: LogFiles, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._damaged: dict[str, None] = {}
        self._reader = LineReader(timezone(timedelta(hours=settings.zone)))

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        del capability
        most = self._settings.max_lines
        before = Span(window.start - self._settings.before, window.start)
        earlier = await asyncio.to_thread(self._within, before, most // 2 + 1)
        inside = await asyncio.to_thread(self._within, window, most + 1)
        notes = []
        if len(earlier) > most // 2 or len(inside) > most:
            notes.append(f"more than {most:,} log lines: detectors see the first; log search scans all")
        asked = tuple(f"read {path} ({counted(path.stat().st_size, 'byte')})" for path in self._files()[:50])
        return Fetched({"logs": [*earlier[: most // 2], *inside[:most]]}, asked, tuple(notes), self._missed())

    def _within(self, span: Span, most: int) -> list[LogLine]:
        lines = (
            line for line in self._lines(span) if line.time is not None and span.start <= line.time < span.end
        )
        return list(islice(lines, most))

    def scan_logs(self, *, baseline: bool = False, span: Span | None = None) -> Iterator[LogLine]:
        """Every line around the stretch of time, in the order of files and lines; there is no baseline in files."""
        return iter(()) if baseline else self._scanned(span)

    async def sift_logs(self, wanted: Wanted, span: Span) -> Sifted | None:
        """The lines that ripgrep finds, where it is installed and there is much to look through."""
        if ripgrep.program() is None or not can_look_for(wanted.text):
            return None
        return await asyncio.to_thread(self._sifted, of_raw_lines(wanted.text), span)

    def _sifted(self, pattern: str, span: Span) -> Sifted | None:
        """None unless all files are plain and in order of time: one that is not has to be read anyway."""
        parts = [self._part(path, span) for path in self._files_of(span)]
        known = [part for part in parts if part]
        if len(known) < len(parts) or sum(part.size for part in known) < PAYS:
            return None
        scanned = sum(self._counted(part, span) for part in known)
        asked = tuple(f"rg -e {pattern!r} {part.path} from byte {part.begin:,}" for part in known)
        return Sifted(self._found(known, pattern, span), self._scanned(span), scanned, asked)

    def _part(self, path: Path, span: Span) -> "_Part | None":
        times = (span.start, span.start + 2 * SLACK, span.end, span.end + 3 * SLACK)
        places = [] if is_packed(path) or is_table(path) else [self._start(path, time) for time in times]
        known = [place for place in places if place is not None]
        if len(known) < len(times):
            return None
        begin, inner, outer, end = known
        return _Part(path, begin, _line_after(path, inner + BLOCK), outer, _line_after(path, end + BLOCK))

    def _found(self, parts: Sequence["_Part"], pattern: str, span: Span) -> Iterator[LogLine]:
        until = self.clock.monotonic() + ripgrep.SECONDS
        for part in parts:
            lines = self._parsed(part.path, self._near(part, pattern, until - self.clock.monotonic()))
            yield from self._joined(lines, part.path, span)
        if missed := self._missed():
            raise Unavailable("; ".join(missed))

    def _near(self, part: "_Part", pattern: str, seconds: float) -> Iterator[bytes]:
        time_of = self._reader.time_of(part.path.stat().st_mtime)
        found = ripgrep.offsets(part.path, part.begin, part.end, pattern, max(seconds, 0.0))
        with self._reading(part.path), part.path.open("rb") as file, closing(found):
            yield from ripgrep.around(file, part.begin, found, LONGEST_LINE, lambda raw: time_of(raw) is not None)  # fmt: skip

    def _counted(self, part: "_Part", span: Span) -> int:
        """Records at the edges of the stretch, and lines between them, where each is a record as a rule."""
        if part.size <= 0 or not self._inside(part.path, part.inner, part.inner + BLOCK, span):
            return self._inside(part.path, part.begin, part.end, span)
        edges = self._inside(part.path, part.begin, part.inner, span) + self._inside(part.path, part.outer, part.end, span)  # fmt: skip
        return edges + ripgrep.lines_between(part.path, part.inner, part.outer)

    def _inside(self, path: Path, begin: int, end: int, span: Span) -> int:
        lines = self._joined(self._parsed(path, self._from(path, begin, end)), path, span)
        return sum(line.time is None or span.start <= line.time < span.end for line in lines)

    def _scanned(self, span: Span | None) -> Iterator[LogLine]:
        yield from self._lines(span)
        if missed := self._missed():
            raise Unavailable("; ".join(missed))

    def _missed(self) -> tuple[str, ...]:
        return (*self._passed_over(), *self._damaged)

    def _files(self) -> list[Path]:
        files = sorted(path for path in self._fitting() if path.is_file())
        if not files:
            raise Unavailable(f"{self.name}: no file fits {', '.join(self._settings.files)}")
        return [path for path in files if why_unread(path) is None]

    def _fitting(self) -> set[Path]:
        patterns = self._settings.files
        return {Path(path) for pattern in patterns for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - absolute ones too

    def _passed_over(self) -> Iterator[str]:
        for path in sorted(self._fitting()):
            if why := why_unread(path):
                yield f"{path.name} was not read: {why}"

    def _lines(self, span: Span | None) -> Iterator[LogLine]:
        for path in self._files_of(span):
            yield from (
                self._rows(path)
                if is_table(path)
                else self._joined(self._parsed(path, self._read(path, span)), path, span)
            )

    def _rows(self, path: Path) -> Iterator[LogLine]:
        """Each row of a table; tables are in any order."""
        service, trouble = self._settings.service or service_of_file(path), Trouble(path.name)
        with self._reading(path):
            for text, row in rows_of(path, trouble):
                found = self._reader.of_row(row, text)
                yield replace(found, service=self.named(found.service or service))
        self._damaged |= dict.fromkeys(trouble.sentences())

    def _files_of(self, span: Span | None) -> Iterator[Path]:
        """The files without those that were rotated away before the stretch began."""
        for path in self._files():
            if span is None or path.stat().st_mtime >= span.start - SLACK:
                yield path

    def _parsed(self, path: Path, raws: Iterable[bytes]) -> Iterator[tuple[str, LogLine]]:
        """Lines that are not empty, as text and as what they say."""
        year_of = path.stat().st_mtime
        for raw in raws:
            if text := _text(raw):
                yield text, self._reader.read(text, year_of)

    def _joined(
        self, lines: Iterable[tuple[str, LogLine]], path: Path, span: Span | None
    ) -> Iterator[LogLine]:
        """Lines with what continues them."""
        service = self._settings.service or service_of_file(path)
        line: LogLine | None = None
        more: list[str] = []
        for text, found in lines:
            if found.time is None and line is not None:
                if len(more) < MOST_CONTINUED:
                    more.append(text)
                continue
            if line is not None:
                yield self._whole(line, more)
            if span is not None and found.time is not None and found.time > span.end + SLACK:
                return
            line, more = replace(found, service=self.named(found.service or service)), []
        if line is not None:
            yield self._whole(line, more)

    def _whole(self, line: LogLine, more: Sequence[str]) -> LogLine:
        return replace(line, message="\n".join((line.message, *more))) if more else line

    def _read(self, path: Path, span: Span | None) -> Iterator[bytes]:
        """The lines of a file from where the stretch begins, if they are in order of time; else all of them."""
        ordered = span is not None and not is_packed(path)
        return self._from(path, (self._start(path, span.start) or 0) if ordered and span else 0)

    def _from(self, path: Path, begin: int, end: int | None = None) -> Iterator[bytes]:
        with self._reading(path), open_bytes(path) as file:
            if begin:
                file.seek(begin)
            while (end is None or begin < end) and (raw := file.readline(LONGEST_LINE)):
                begin += len(raw)
                yield raw

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """Raises NotPermitted, Unavailable; what is damaged is noted, and what came before it counts."""
        try:
            yield
        except TimeoutError:  # an OSError as well
            raise
        except PermissionError:
            raise NotPermitted(f"{self.name}: {path} may not be read: check its permissions") from None
        except Damaged:
            self._damaged[f"{path.name} is damaged or cut short: the lines before were read"] = None
        except OSError as error:
            raise Unavailable(f"{self.name}: {path} cannot be read ({error.strerror or error})") from None

    def _start(self, path: Path, time: float) -> int | None:
        """The beginning of a line before every line from `time` on; None if they are not in order of time."""
        with self._reading(path):
            start = start_of(path, time, self._reader.time_of(path.stat().st_mtime))
            return _line_after(path, start) if start else start
        return None

    async def check(self) -> Sequence[Check]:
        files = await asyncio.to_thread(self._files)
        size = sum(path.stat().st_size for path in files)
        checks = [Check("files", "ok", f"{counted(len(files), 'file')}, {counted(size, 'byte')}")]
        lines = await asyncio.to_thread(lambda: list(islice(self._lines(None), 1_000)))
        timed = sum(line.time is not None for line in lines)
        if lines and timed < len(lines) / 2:
            return [*checks, Check("times", "warning", f"{timed} of the first {len(lines)} lines have a time that is understood",
                                   "write times as RFC 3339 at the beginning of lines, or as JSON field timestamp")]  # fmt: skip
        names = sorted({line.service for line in lines})
        return [
            *checks,
            Check("services", "ok", f"{len(names)}: {', '.join(names[:8])}"),
            *(Check("files", "warning", text) for text in self._missed()),
        ]


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes of a file: the stretch of time lies between `begin` and `end`, every line from `inner` to `outer` in it."""

    path: Path
    begin: int
    inner: int
    outer: int
    end: int

    @property
    def size(self) -> int:
        return self.outer - self.inner


def _line_after(path: Path, offset: int) -> int:
    """Where the next line begins, however long this one is."""
    with path.open("rb") as file:
        file.seek(offset)
        while (raw := file.readline(LONGEST_LINE)) and not raw.endswith(b"\n"):
            pass
        return file.tell()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").rstrip("\r\n")
