"""Log files and folders of them, rotated and compressed: any number of bytes in bounded memory.

Which time, level and service a line speaks of is read in `logformat`; where a stretch of time begins in a large
file is found by halves (`seek`).
"""

import asyncio
import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta, timezone
from itertools import islice
from pathlib import Path

from opsleuth.analysis.records import LogLine, Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.logformat import LineReader, service_of_file
from opsleuth.tools.sources.packed import Damaged, is_packed, open_bytes, why_not
from opsleuth.tools.sources.seek import SLACK, start_of
from opsleuth.tools.sources.settings import LogFiles
from opsleuth.tools.spec import NotPermitted, Unavailable

# A line that goes on for more is cut: nobody reads it, and it may be the whole file.
LONGEST_LINE = 64_000
# Lines without a time of their own belong to the one before: a stack trace, a statement over several lines.
MOST_CONTINUED = 60


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
        asked = tuple(f"read {path} ({path.stat().st_size:,} bytes)" for path in self._files()[:50])
        return Fetched({"logs": [*earlier[: most // 2], *inside[:most]]}, asked, tuple(notes), self._missed())

    def _within(self, span: Span, most: int) -> list[LogLine]:
        lines = (
            line for line in self._lines(span) if line.time is not None and span.start <= line.time < span.end
        )
        return list(islice(lines, most))

    def scan_logs(self, *, baseline: bool = False, span: Span | None = None) -> Iterator[LogLine]:
        """Every line around the stretch of time, in the order of files and lines; there is no baseline in files."""
        return iter(()) if baseline else self._scanned(span)

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
        return [path for path in files if why_not(path) is None]

    def _fitting(self) -> set[Path]:
        patterns = self._settings.files
        return {Path(path) for pattern in patterns for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - absolute ones too

    def _passed_over(self) -> Iterator[str]:
        for path in sorted(self._fitting()):
            if why := why_not(path):
                yield f"{path.name} was not read: {why}"

    def _lines(self, span: Span | None) -> Iterator[LogLine]:
        for path in self._files():
            stat = path.stat()
            if span is not None and stat.st_mtime < span.start - SLACK:
                continue  # rotated away before the stretch began
            service = self._settings.service or service_of_file(path)
            yield from self._joined(self._read(path, span), service, stat.st_mtime, span)

    def _joined(
        self, texts: Iterable[str], service: str, year_of: float, span: Span | None
    ) -> Iterator[LogLine]:
        """Lines with what continues them."""
        line: LogLine | None = None
        more: list[str] = []
        for text in texts:
            found = self._reader.read(text, year_of)
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

    def _read(self, path: Path, span: Span | None) -> Iterator[str]:
        """The lines of a file from where the stretch begins, if they are in order of time; else all of them."""
        try:
            with open_bytes(path) as file:
                start = None
                if span is not None and not is_packed(path):
                    start = start_of(path, span.start, self._reader.time_of(path.stat().st_mtime))
                if start:
                    file.seek(start)
                    file.readline(LONGEST_LINE)
                while raw := file.readline(LONGEST_LINE):
                    if text := raw.decode("utf-8", "replace").rstrip("\r\n"):
                        yield text
        except PermissionError:
            raise NotPermitted(f"{self.name}: {path} may not be read: check its permissions") from None
        except Damaged:
            self._damaged[f"{path.name} is damaged or cut short: the lines before were read"] = None
        except OSError as error:
            raise Unavailable(f"{self.name}: {path} cannot be read ({error.strerror or error})") from None

    async def check(self) -> Sequence[Check]:
        files = await asyncio.to_thread(self._files)
        size = sum(path.stat().st_size for path in files)
        checks = [Check("files", "ok", f"{len(files)} files, {size:,} bytes")]
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
