"""Logs: the lines that match, counted in full, shown in part."""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, takewhile

from opsleuth.analysis.failure_words import speaks_of_failure
from opsleuth.analysis.line_summary import LevelSummary, LineSummaries, first_and_last_lines
from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import Clock
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339, read_time
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.log_search_arguments import (
    LogsSearchArguments,
    describe_search,
    format_search,
    make_line_record,
)
from opsleuth.tools.nearest_lines import NearestLines
from opsleuth.tools.recordings import (
    describe_sampling,
    is_within_span,
    not_recorded_result,
    require_service,
    source_names,
    window_span,
    without_empty,
)
from opsleuth.tools.sources.source_protocols import (
    FilteredLogs,
    FilteringLogSource,
    LogFilter,
    ScanningLogSource,
    Source,
    SummarizingLogSource,
)
from opsleuth.tools.spec import InvalidArgumentsError, ToolContext, ToolError, ToolResult, ToolSpec

# A search of more says how far it came: better than a call that is cut and says nothing.
MOST_SEARCHED = 20_000_000
# Where a source takes ever so long for its lines, time ends a search, too.
SEARCH_SECONDS = 240.0
# How far lines around a time are looked for, on each side.
AROUND_SECONDS = 300.0
_ORDER = ("debug", "info", "warn", "error")
_SEVERITY = {
    **dict.fromkeys(("trace", "debug", "verbose", "fine", "dbg", "vrb"), 0),
    **dict.fromkeys(("info", "information", "notice", "i", "inf"), 1),
    **dict.fromkeys(("warn", "warning", "w", "wrn"), 2),
    **dict.fromkeys(
        ("error", "err", "e", "severe", "fatal", "f", "critical", "crit", "alert", "emerg", "panic", "ftl"), 3
    ),
}


@dataclass(slots=True)
class _SearchCounts:
    """What one pass over the lines saw: everything is counted, a head and a tail of the matches are kept."""

    limit: int
    scanned: int = 0
    matched: int = 0
    without_time: int = 0
    seen_service: bool = False
    incomplete: str = ""
    first: float | None = None
    last: float | None = None
    lines_total: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    services: Counter[str] = field(default_factory=Counter)
    head: list[LogLine] = field(default_factory=list)
    tail: deque[LogLine] = field(default_factory=deque)
    nearest: NearestLines | None = None

    def keep(self, line: LogLine) -> None:
        self.matched += 1
        self.without_time += line.time is None
        self.levels[(line.level or "none").lower()] += 1
        self.services[line.service] += 1
        if line.time is not None:
            self.first = line.time if self.first is None else min(self.first, line.time)
            self.last = line.time if self.last is None else max(self.last, line.time)
        self.show_line(line)

    def count_summary(self, service: str, level: str | None, summary: LevelSummary) -> None:
        """Count lines that were counted before; all of them have a time."""
        self.matched += summary.count
        self.levels[(level or "none").lower()] += summary.count
        self.services[service] += summary.count
        self.first = summary.first if self.first is None else min(self.first, summary.first)
        self.last = summary.last if self.last is None else max(self.last, summary.last)

    def show_line(self, line: LogLine) -> None:
        """Keep a match if it is near the time that was asked for, or among the first or, so far, among the last."""
        if self.nearest is not None:
            self.nearest.add_line(line)
            return
        if len(self.head) < self.limit - self.limit // 2:
            self.head.append(line)
            return
        self.tail.append(line)
        if len(self.tail) > self.limit // 2:
            self.tail.popleft()


@dataclass(frozen=True, slots=True)
class _SourceLines:
    """The lines of one source, and what it sifted them out of; None where they are all that it has.

    `summaries` replace lines where the source has counted them already.
    """

    lines: Iterable[LogLine]
    sifted: FilteredLogs | None = None
    summaries: LineSummaries | None = None


async def logs_search(arguments: LogsSearchArguments, context: ToolContext) -> ToolResult:
    span = _searched_span(arguments, context)
    pass_ = _SearchPass(arguments, span, context.clock)
    sources = context.sources.serving("logs")
    streams = await gather_or_cancel(
        _open_source_lines(source, context, arguments, span) for source in sources
    )
    try:
        found = await asyncio.to_thread(pass_.search, streams)
    finally:
        pass_.stop.set()  # a search that was cancelled must not go on reading in its thread
    await require_service(context, arguments.service, [arguments.service or ""] if found.seen_service else [])
    if why := _why_not_covered(found, arguments):
        return not_recorded_result(
            context, "logs", why, scanned=found.scanned, **describe_search(arguments, span)
        )
    return _search_result(arguments, context, span, found)


def _searched_span(arguments: LogsSearchArguments, context: ToolContext) -> TimeRange | None:
    """The stretch to look through; None for the whole baseline. Raises InvalidArgumentsError."""
    if arguments.around is not None:
        if arguments.baseline or arguments.since or arguments.until:
            raise InvalidArgumentsError("around stands alone: leave out since, until and baseline")
        time = read_time(arguments.around).timestamp()
        return TimeRange(time - AROUND_SECONDS, time + AROUND_SECONDS)
    return None if arguments.baseline and not arguments.since else arguments.span(context.window)


async def _open_source_lines(
    source: Source, context: ToolContext, arguments: LogsSearchArguments, span: TimeRange | None
) -> _SourceLines:
    """The lines of a source; one that can stream is not held in memory, one that can sift sends few."""
    keep = partial(_lines_until_source_fails, source, context=context)
    try:
        sifted = await _filter_by_source(source, arguments, span)
    except (ToolError, TimeoutError) as error:
        return _SourceLines(keep(_raise_on_iteration(error)))
    if sifted:
        context.trail.asked += sifted.asked
        return _SourceLines(keep(sifted.lines), replace(sifted, of_service=keep(sifted.of_service)))
    if summaries := _summaries_of_source(source, arguments, span):
        return _SourceLines((), summaries=summaries)
    if isinstance(source, ScanningLogSource):
        return _SourceLines(keep(source.scan_logs(baseline=arguments.baseline, span=span)))
    recording = await source.read(["logs"], span or window_span(context))
    context.trail.asked += recording.asked
    if recording.missed:
        context.trail.missed[f"{source.name} (logs)"] = "; ".join(recording.missed)
    return _SourceLines((recording.logs_baseline if arguments.baseline else recording.logs) or ())


async def _filter_by_source(
    source: Source, arguments: LogsSearchArguments, span: TimeRange | None
) -> FilteredLogs | None:
    wanted = LogFilter(arguments.service, arguments.text if arguments.around is None else "")
    if (
        not isinstance(source, FilteringLogSource)
        or span is None
        or arguments.baseline
        or wanted == LogFilter()
    ):
        return None
    return await source.filter_logs(wanted, span)


def _summaries_of_source(
    source: Source, arguments: LogsSearchArguments, span: TimeRange | None
) -> LineSummaries | None:
    """What the source knows of all lines, where each line of a service counts and has a level that is known."""
    narrowed = (
        arguments.baseline,
        arguments.text,
        arguments.pod,
        arguments.previous is not None,
        arguments.around is not None,
    )
    if not isinstance(source, SummarizingLogSource) or span is None or any(narrowed):
        return None
    found = source.summarize_logs(span)
    known = found is not None and all(known_severity(level) is not None for _, level in found)
    return found if known else None


def _raise_on_iteration(error: ToolError | TimeoutError) -> Iterator[LogLine]:
    yield from ()
    raise error


def _lines_until_source_fails(
    source: Source, lines: Iterable[LogLine], context: ToolContext
) -> Iterator[LogLine]:
    """The lines; a source that fails on the way is noted and left, unless it is all there is and said nothing."""
    told = False
    try:
        for line in lines:
            told = True
            yield line
    except (ToolError, TimeoutError) as error:
        if not told and len(context.sources.serving("logs")) == 1:
            raise
        context.trail.missed[f"{source.name} (logs)"] = str(error)


class _SearchPass:
    """One pass over the lines; `stop` ends it from another thread, its own time ends it as well."""

    def __init__(self, arguments: LogsSearchArguments, span: TimeRange | None, clock: Clock) -> None:
        self.stop = threading.Event()
        self._service = arguments.service
        self._text = arguments.text.casefold() if arguments.around is None else ""
        self._pod, self._previous = arguments.pod.casefold(), arguments.previous
        self._least = _ORDER.index(arguments.level) if arguments.level else 0
        self._span = span
        self._clock = clock
        self._until = clock.monotonic() + SEARCH_SECONDS
        self._read = 0
        self._found = _SearchCounts(arguments.limit)
        if arguments.around is not None:
            self._found.nearest = NearestLines(read_time(arguments.around).timestamp(), arguments.limit)

    def search(self, streams: Iterable[_SourceLines]) -> _SearchCounts:
        found = self._found
        for stream in streams:
            if stream.summaries is not None:
                self._add_summaries(stream.summaries)
                continue
            look_at = self._look_at if stream.sifted is None else self._take
            for taken, line in enumerate(stream.lines, start=1):
                look_at(line)
                if self._is_over(line):
                    if stream.sifted is not None:
                        self._count(replace(stream.sifted, scanned=taken, of_service=iter(())))
                    return found
            if stream.sifted is not None:
                self._count(stream.sifted)
        return found

    def _add_summaries(self, summaries: LineSummaries) -> None:
        """What was counted before counts like lines that were looked at."""
        found, wanted = self._found, list[LevelSummary]()
        for (service, level), summary in summaries.items():
            found.lines_total += summary.count
            found.scanned += summary.count
            if self._service not in (None, service):
                continue
            found.seen_service = True
            if (known_severity(level) or 0) >= self._least:
                wanted.append(summary)
                found.count_summary(service, level, summary)
        room = max(0, found.limit - found.limit // 2 - len(found.head))
        for line in chain(*first_and_last_lines(wanted, room, found.limit // 2)):
            found.show_line(line)

    def _is_over(self, line: LogLine) -> bool:
        self._read += 1
        if self._read % 4096 or not (
            self._read >= MOST_SEARCHED or self.stop.is_set() or self._clock.monotonic() > self._until
        ):
            return False
        self._found.incomplete = (
            f"the search was ended after {self._read:,} lines, at {format_rfc3339(line.time)}"
        )
        return True

    def _look_at(self, line: LogLine) -> None:
        """A line of a source that told all that it has."""
        found = self._found
        found.lines_total += 1
        found.seen_service = found.seen_service or self._is_mine(line)
        if self._is_inside(line):
            found.scanned += 1
            self._take(line)

    def _take(self, line: LogLine) -> None:
        """Keep the line if it is what is looked for."""
        if self._is_mine(line) and self._is_inside(line) and self._matches(line):
            self._found.seen_service = True
            self._found.keep(line)

    def _count(self, sifted: FilteredLogs) -> None:
        """What a source went through by its own means counts like lines that were looked at."""
        found, scanned = self._found, sifted.scanned
        found.lines_total += scanned
        found.scanned += scanned
        if not found.seen_service:
            for line in takewhile(lambda _: not found.seen_service, sifted.of_service):
                found.lines_total += 1
                found.seen_service = self._is_mine(line)

    def _is_mine(self, line: LogLine) -> bool:
        return self._service in (None, line.service)

    def _is_inside(self, line: LogLine) -> bool:
        return self._span is None or line.time is None or is_within_span(line.time, self._span)

    def _matches(self, line: LogLine) -> bool:
        if self._least and rank_severity(line) < self._least:
            return False
        if self._pod and not (line.pod or line.host or "").casefold().startswith(self._pod):
            return False
        if self._previous is not None and line.previous is not self._previous:
            return False
        text = self._text
        if not text or text in line.message.casefold() or text in (line.pod or "").casefold():
            return True
        return line.context is not None and text in line.context.casefold()


def known_severity(level: str | None) -> int | None:
    """0 debug to 3 error; None for a level that is unknown, or absent."""
    return _SEVERITY.get((level or "").strip().lower())


def rank_severity(line: LogLine) -> int:
    """0 debug to 3 error; a line without a known level counts as error or info by its wording."""
    known = known_severity(line.level)
    if known is not None:
        return known
    return 3 if speaks_of_failure(line.message, line.level) else 1


def _why_not_covered(found: _SearchCounts, arguments: LogsSearchArguments) -> str | None:
    where = "baseline log lines" if arguments.baseline else "log lines"
    if found.lines_total == 0:
        return f"there are no {where}"
    if not found.seen_service:
        return found.incomplete or f"no {where} of {arguments.service}"
    if found.scanned == 0:
        return f"no {where} in this time range"
    return None if found.matched else found.incomplete or None


def _search_result(
    arguments: LogsSearchArguments, context: ToolContext, span: TimeRange | None, found: _SearchCounts
) -> ToolResult:
    shown = found.nearest.list_lines() if found.nearest is not None else [*found.head, *found.tail]
    record = {
        **describe_search(arguments, span),
        "scanned": found.scanned,
        "matched": found.matched,
        "first": format_rfc3339(found.first),
        "last": format_rfc3339(found.last),
        "by_level": dict(found.levels.most_common(6)),
        "by_service": dict(found.services.most_common(10)),
        "without_time": found.without_time or None,
        "not_shown": found.matched - len(shown) or None,
        "lines": [make_line_record(line, arguments) for line in shown],
        "incomplete": found.incomplete,
        "sampling": describe_sampling(context, "logs"),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{found.matched:,} of {format_count(found.scanned, 'line matches', 'lines match')}"
        + (f", first {format_rfc3339(found.first)}" if found.first else ""),
        status=ResultStatus.OK if found.matched else ResultStatus.NONE_MATCHED,
        source=source_names(context, "logs"),
        query=format_search(arguments),
        scanned=found.scanned,
        matched=found.matched,
    )


LOGS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="logs_search",
        purpose="Log lines by service, pod, text, level, or around a time: counts, first and last, samples.",
        not_for="Overviews: logs_patterns.",
        arguments=LogsSearchArguments,
        example={"service": "checkout", "text": "timeout", "level": "warn"},
        run=logs_search,
        bounded_work=True,
        capability="logs",
        target=lambda arguments: arguments.service,
    ),
)
