"""What sources share that give their log lines page by page: a bounded part for detectors, all of it for a search."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import HttpSource, Settings
from opsleuth.tools.sources.live_source import FetchedRows
from opsleuth.tools.sources.source_protocols import Capability, FilteredLogs, LogFilter
from opsleuth.tools.spec import NotPermittedError, UnavailableError

# Of the seconds that a source has for an answer: what was read by then is used, rather than nothing.
READ_SECONDS = 6.0
# For counting what there is and the first page of what is wanted; what takes longer is gone through line by line.
SIFT_SECONDS = 4.0

Opaque: TypeAlias = Any
"""What only the source that gave it can read: a place in its pages, or a query in its language."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines in order of time. `after` is the place at which the next page begins, None at the end.

    `missed` says what the backend itself could not tell (a shard that failed).
    """

    lines: Sequence[LogLine]
    after: Opaque = None
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NarrowedQuery:
    """Queries of a store's own for `page`: for what is wanted, and for the service alone; `scanned` lines there are."""

    query: Opaque
    of_service: Opaque
    scanned: int


class PagedLogSource(HttpSource[Settings]):
    """Base of log stores over HTTP. Subclasses give `page`, and `before` and `most` by their settings."""

    capabilities: frozenset[Capability] = frozenset({"logs"})
    before: float
    most: int

    @abstractmethod
    async def page(
        self, session: HttpSession, span: TimeRange, place: Opaque, query: Opaque = None
    ) -> LogPage:
        """The lines of `span` from `place` on (None: from its start), of all or of those of `query`. Raises ToolError."""

    @abstractmethod
    async def narrow_query(
        self, session: HttpSession, wanted: LogFilter, span: TimeRange
    ) -> NarrowedQuery | None:
        """How to ask for what is wanted alone; None where that cannot be said in the store's language. Raises ToolError."""

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        began = self.clock.monotonic()
        earlier = TimeRange(window.start - self.before, window.start)
        inside, missed, whole = await self._some(session, window, self.most, began + 2 / 3 * READ_SECONDS)
        before, also_missed, all_of_it = await self._some(
            session, earlier, self.most // 2, began + READ_SECONDS
        )
        read = len(inside) + len(before)
        cut = (
            f"more log lines than the {read:,} that were read: detectors see the first; log search scans all"
        )
        notes = () if whole and all_of_it else (cut,)
        missed = tuple(dict.fromkeys((*missed, *also_missed)))
        return FetchedRows({"logs": [*before, *inside]}, notes=notes, missed=missed)

    async def _some(
        self, session: HttpSession, span: TimeRange, most: int, until: float
    ) -> tuple[Sequence[LogLine], tuple[str, ...], bool]:
        """The first lines, what was missed among them, and whether they are all. No page is started after `until`."""
        lines: list[LogLine] = []
        missed: tuple[str, ...] = ()
        place: Any = None
        while True:
            page = await self.page(session, span, place)
            lines += page.lines
            missed += page.missed
            place = page.after
            if place is None or len(lines) > most or self.clock.monotonic() > until:
                return lines[:most], missed, place is None and len(lines) <= most

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        """Every line of the time range, a page in memory; there is no baseline in a store.

        Called where the loop runs, iterated in another thread. Raises ToolError, TimeoutError as it goes.
        """
        if baseline or span is None:
            return iter(())
        return self._scanned(span, asyncio.get_running_loop())

    async def filter_logs(self, wanted: LogFilter, span: TimeRange) -> FilteredLogs | None:
        """The lines that the store finds; None where it cannot be asked for them. The first page comes at once."""
        api, loop = self.api(), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SIFT_SECONDS), api.session() as session:
                narrowed = await self.narrow_query(session, wanted, span)
                if narrowed is None:
                    return None
                first = await self.page(session, span, None, narrowed.query)
        except (NotPermittedError, UnavailableError):
            return None  # not all that gives lines may be counted, or knows what is asked
        except TimeoutError as error:
            if api.log:  # it answers, but slowly
                return None
            raise TimeoutError(
                str(error) or f"{self.name} gave no answer within {SIFT_SECONDS:g} s"
            ) from None
        lines = self._scanned(span, loop, narrowed.query, first)
        return FilteredLogs(
            lines, self._scanned(span, loop, narrowed.of_service), narrowed.scanned, tuple(api.log)
        )

    def _scanned(
        self,
        span: TimeRange,
        loop: asyncio.AbstractEventLoop,
        query: Opaque = None,
        first: LogPage | None = None,
    ) -> Iterator[LogLine]:
        def asked(place: Opaque) -> LogPage:
            asking = self._page_alone(span, place, query)
            return asyncio.run_coroutine_threadsafe(asking, loop).result()

        page, missed = first or asked(None), dict[str, None]()
        while True:
            yield from page.lines
            missed |= dict.fromkeys(page.missed)
            if page.after is None:
                break
            page = asked(page.after)
        if missed:
            raise UnavailableError("; ".join(missed))

    async def _page_alone(self, span: TimeRange, place: Opaque, query: Opaque) -> LogPage:
        async with self.api().session() as session:
            return await self.page(session, span, place, query)
