"""Traces in files, as Jaeger, Zipkin and OpenTelemetry's collector write them."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from opsleuth.analysis.records import TimeRange, TraceSpan
from opsleuth.configuration.source_settings import TraceFiles
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.compressed_files import DamagedFileError
from opsleuth.tools.sources.file_patterns import find_matching_paths
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.logtables import why_unreadable
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.sources.trace_documents import read_trace_file
from opsleuth.tools.spec import NotPermittedError, UnavailableError


class TraceFilesSource(LiveSource):
    """The source of kind `tracefiles`."""

    capabilities: frozenset[Capability] = frozenset({"traces"})

    def __init__(self, name: str, settings: TraceFiles, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._unread: dict[str, None] = {}

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        start = window.start - self._settings.before
        spans = await asyncio.to_thread(lambda: [s for s in self._spans() if start <= s.start < window.end])
        asked = tuple(
            f"read {path} ({format_count(path.stat().st_size, 'byte')})" for path in self._files()[:50]
        )
        return FetchedRows({"spans": spans}, asked, missed=tuple(self._unread))

    def _spans(self) -> Iterator[TraceSpan]:
        """The spans of all files, each once. Raises NotPermitted, Unavailable."""
        seen: set[tuple[str, str]] = set()
        for path in self._files():
            for span in self._read(path):
                if (span.trace_id, span.span_id) not in seen:
                    seen.add((span.trace_id, span.span_id))
                    yield replace(span, service=self.named(span.service))

    def _read(self, path: Path) -> Sequence[TraceSpan]:
        if why := why_unreadable(path):
            self._unread[f"{path.name} was not read: {why}"] = None
            return ()
        try:
            spans = read_trace_file(path)
        except DamagedFileError as error:
            self._unread[f"{path.name} was not read: it is damaged or cut short ({error})"] = None
            return ()
        except PermissionError:
            raise NotPermittedError(f"{self.name}: {path} may not be read: check its permissions") from None
        except OSError as error:
            raise UnavailableError(
                f"{self.name}: {path} cannot be read ({error.strerror or error})"
            ) from None
        if spans is None:
            self._unread[
                f"{path.name} was not read: it holds no traces of Jaeger, Zipkin or OTLP as JSON"
            ] = None
        return spans or ()

    def _files(self) -> Sequence[Path]:
        found = find_matching_paths(self._settings.files)
        files = sorted(path for path in found if path.is_file())
        if not files:
            raise UnavailableError(f"{self.name}: no file fits {', '.join(self._settings.files)}")
        return files

    async def check(self) -> Sequence[SourceCheck]:
        spans = await asyncio.to_thread(lambda: list(self._spans()))
        wrong = [SourceCheck("files", "warning", text) for text in self._unread]
        names = sorted({span.service for span in spans})
        if not spans:
            return [*wrong, SourceCheck("spans", "warning", "none in these files", "check files")]
        return [*wrong, SourceCheck("spans", "ok", f"{len(spans):,} of {len(names)}: {', '.join(names[:8])}")]
