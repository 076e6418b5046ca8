"""Samples of metrics in files, CSV or Parquet, in the form of a case's `metrics.csv`; any number of them by day or host."""

import asyncio
import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

from opsleuth.analysis.records import Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.case_rows import SeriesKey, sample, series_of, stream
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.logtables import why_unread
from opsleuth.tools.sources.settings import MetricFiles
from opsleuth.tools.sources.tables import Trouble
from opsleuth.tools.spec import NotPermitted, Unavailable

Sample = tuple[SeriesKey, float, float]


class MetricFilesSource(LiveSource):
    """The source of kind `metricfiles`."""

    capabilities: frozenset[Capability] = frozenset({"metrics"})

    def __init__(self, name: str, settings: MetricFiles, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        del capability
        span = Span(window.start - self._settings.before, window.end)
        troubles: list[Trouble] = []
        series = await asyncio.to_thread(lambda: series_of(self._samples(troubles, span)))
        asked = tuple(f"read {path} ({path.stat().st_size:,} bytes)" for path in self._files()[:50])
        said = [text for trouble in troubles for text in trouble.sentences()]
        return Fetched({"metrics": series}, asked, tuple(said), tuple(self._passed_over()))

    def _samples(self, troubles: list[Trouble], span: Span | None = None) -> Iterator[Sample]:
        for path in self._files():
            trouble = Trouble(path.name)
            troubles.append(trouble)
            try:
                for (service, metric, unit, instance), time, value in stream(path, sample, trouble):
                    if span is None or span.start <= time < span.end:
                        yield (self.named(service), metric, unit, instance), time, value
            except PermissionError:
                raise NotPermitted(f"{self.name}: {path} may not be read: check its permissions") from None
            except OSError as error:
                raise Unavailable(f"{self.name}: {path} cannot be read ({error.strerror or error})") from None

    def _files(self) -> Sequence[Path]:
        files = [path for path in self._fitting() if why_unread(path) is None]
        if not files and not any(self._passed_over()):
            raise Unavailable(f"{self.name}: no file fits {', '.join(self._settings.files)}")
        return files

    def _fitting(self) -> Sequence[Path]:
        found = {Path(path) for pattern in self._settings.files for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - absolute ones too  # fmt: skip
        return sorted(path for path in found if path.is_file())

    def _passed_over(self) -> Iterator[str]:
        for path in self._fitting():
            if why := why_unread(path):
                yield f"{path.name} was not read: {why}"

    async def check(self) -> Sequence[Check]:
        troubles: list[Trouble] = []
        series = await asyncio.to_thread(lambda: series_of(self._samples(troubles)))
        said = [*self._passed_over(), *(text for trouble in troubles for text in trouble.sentences())]
        remedy = "columns: timestamp, service, metric, value, and unit and instance where there are any"
        wrong = [Check("files", "warning", text, remedy) for text in said]
        names = sorted({one.service for one in series})
        if not series:
            return [*wrong, Check("series", "warning", "none in these files", remedy)]
        return [*wrong, Check("series", "ok", f"{len(series):,} of {len(names)}: {', '.join(names[:8])}")]
