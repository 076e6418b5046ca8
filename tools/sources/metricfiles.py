"""Samples of metrics in files: in the form of a case's `metrics.csv`, or as other programs write them."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta, timezone
from pathlib import Path

from opsleuth.analysis.counter_series import rates_of_counters
from opsleuth.analysis.records import MetricSeries, TimeRange
from opsleuth.configuration.source_settings import MetricFilesSettings
from opsleuth.tools.sources.case_rows import SeriesKey, collect_series, parse_sample, stream_records
from opsleuth.tools.sources.compressed_files import DamagedFileError
from opsleuth.tools.sources.file_patterns import find_matching_paths
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.logtables import why_unreadable
from opsleuth.tools.sources.metric_documents import read_foreign_metrics
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.sources.table_files import FileProblems
from opsleuth.tools.spec import NotPermittedError, UnavailableError

Sample = tuple[SeriesKey, float, float]


class MetricFilesSource(LiveSource):
    """The source of kind `metricfiles`."""

    capabilities: frozenset[Capability] = frozenset({"metrics"})

    def __init__(self, name: str, settings: MetricFilesSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._zone = timezone(timedelta(hours=settings.zone))

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        span = TimeRange(window.start - self._settings.before, window.end)
        troubles: list[FileProblems] = []
        series = await asyncio.to_thread(
            lambda: rates_of_counters(collect_series(self._samples(troubles, span)))
        )
        asked = tuple(f"read {path} ({path.stat().st_size:,} bytes)" for path in self._files()[:50])
        said = [text for trouble in troubles for text in trouble.sentences()]
        return FetchedRows({"metrics": series}, asked, tuple(said), tuple(self._passed_over()))

    def _samples(self, troubles: list[FileProblems], span: TimeRange | None = None) -> Iterator[Sample]:
        for path in self._files():
            trouble = FileProblems(path.name)
            troubles.append(trouble)
            try:
                foreign = read_foreign_metrics(path, self._settings.service, self._zone)
                if foreign is not None:
                    yield from self._within(foreign, span)
                    continue
                for (service, metric, unit, instance), time, value in stream_records(
                    path, parse_sample, trouble
                ):
                    if span is None or span.start <= time < span.end:
                        yield (self.named(service), metric, unit, instance), time, value
            except PermissionError:
                raise NotPermittedError(
                    f"{self.name}: {path} may not be read: check its permissions"
                ) from None
            except DamagedFileError as error:
                trouble.ended = f"the file is damaged or cut short ({error})"
            except OSError as error:
                raise UnavailableError(
                    f"{self.name}: {path} cannot be read ({error.strerror or error})"
                ) from None

    def _within(self, series: Sequence[MetricSeries], span: TimeRange | None) -> Iterator[Sample]:
        """The samples of files of other programs."""
        for one in series:
            key = (self.named(one.service), one.metric, one.unit, one.instance)
            for time, value in zip(one.times, one.values, strict=True):
                if span is None or span.start <= time < span.end:
                    yield key, time, value

    def _files(self) -> Sequence[Path]:
        files = [path for path in self._fitting() if why_unreadable(path) is None]
        if not files and not any(self._passed_over()):
            raise UnavailableError(f"{self.name}: no file fits {', '.join(self._settings.files)}")
        return files

    def _fitting(self) -> Sequence[Path]:
        found = find_matching_paths(self._settings.files)
        return sorted(path for path in found if path.is_file())

    def _passed_over(self) -> Iterator[str]:
        for path in self._fitting():
            if why := why_unreadable(path):
                yield f"{path.name} was not read: {why}"

    async def check(self) -> Sequence[SourceCheck]:
        troubles: list[FileProblems] = []
        series = await asyncio.to_thread(lambda: collect_series(self._samples(troubles)))
        said = [*self._passed_over(), *(text for trouble in troubles for text in trouble.sentences())]
        remedy = "columns: timestamp, service, metric, value, and unit and instance where there are any"
        wrong = [SourceCheck("files", "warning", text, remedy) for text in said]
        names = sorted({one.service for one in series})
        if not series:
            return [*wrong, SourceCheck("series", "warning", "none in these files", remedy)]
        return [
            *wrong,
            SourceCheck("series", "ok", f"{len(series):,} of {len(names)}: {', '.join(names[:8])}"),
        ]
