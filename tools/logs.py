"""Logs: the lines that match, counted in full, shown in part."""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import Field

from opsleuth.analysis.failure_words import speaks_of_failure
from opsleuth.analysis.records import LogLine, Span
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import Clock
from opsleuth.state.words import counted
from opsleuth.tools.arguments import Service, Windowed, zulu
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.reading import (
    not_recorded,
    require_service,
    sampling,
    source_names,
    span_record,
    window_span,
    within,
    without_empty,
)
from opsleuth.tools.sources.base import LogScanner, LogSifter, Sifted, Source, Wanted
from opsleuth.tools.spec import ToolContext, ToolError, ToolResult, ToolSpec
from opsleuth.tools.together import together

WIDEST_LINE = 400
# A search that has not ended by then says how far it came: better than a call that is cut and says nothing.
SEARCH_SECONDS = 7.0
_ORDER = ("debug", "info", "warn", "error")
_SEVERITY = {
    **dict.fromkeys(("trace", "debug", "verbose", "fine"), 0),
    **dict.fromkeys(("info", "information", "notice", "i"), 1),
    **dict.fromkeys(("warn", "warning", "w"), 2),
    **dict.fromkeys(
        ("error", "err", "e", "severe", "fatal", "f", "critical", "crit", "alert", "emerg", "panic"), 3
    ),
}


class LogsSearch(Windowed):
    service: Service | None = None
    text: Annotated[str, Field(max_length=300, description="in the message or pod name, any case")] = ""
    level: Annotated[Literal["debug", "info", "warn", "error"] | None, Field(description="this or worse")] = (
        None
    )
    baseline: Annotated[bool, Field(description="search the fault-free period instead")] = False
    limit: Annotated[int, Field(ge=1, le=100, description="lines shown, 1 to 100")] = 12


@dataclass(slots=True)
class _Found:
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

    def keep(self, line: LogLine) -> None:
        self.matched += 1
        self.without_time += line.time is None
        self.levels[(line.level or "none").lower()] += 1
        self.services[line.service] += 1
        if line.time is not None:
            self.first = line.time if self.first is None else min(self.first, line.time)
            self.last = line.time if self.last is None else max(self.last, line.time)
        if len(self.head) < self.limit - self.limit // 2:
            self.head.append(line)
            return
        self.tail.append(line)
        if len(self.tail) > self.limit // 2:
            self.tail.popleft()


@dataclass(frozen=True, slots=True)
class _Stream:
    """The lines of one source, and what it sifted them out of; None where they are all that it has."""

    lines: Iterable[LogLine]
    sifted: Sifted | None = None


async def logs_search(arguments: LogsSearch, context: ToolContext) -> ToolResult:
    span = None if arguments.baseline and not arguments.since else arguments.span(context.window)
    pass_ = _Pass(arguments, span, context.clock)
    sources = context.sources.serving("logs")
    streams = await together(_stream(source, context, arguments, span) for source in sources)
    try:
        found = await asyncio.to_thread(pass_.search, streams)
    finally:
        pass_.stop.set()  # a search that was cancelled must not go on reading in its thread
    await require_service(context, arguments.service, [arguments.service or ""] if found.seen_service else [])
    if why := _uncovered(found, arguments):
        return not_recorded(context, "logs", why, scanned=found.scanned, **_head(arguments, span))
    return _search_result(arguments, context, span, found)


async def _stream(source: Source, context: ToolContext, arguments: LogsSearch, span: Span | None) -> _Stream:
    """The lines of a source; one that can stream is not held in memory, one that can sift sends few."""
    keep = partial(_kept_going, source, context=context)
    try:
        sifted = await _sifted(source, arguments, span)
    except (ToolError, TimeoutError) as error:
        return _Stream(keep(_failing(error)))
    if sifted:
        context.trail.asked += sifted.asked
        return _Stream(keep(sifted.lines), replace(sifted, of_service=keep(sifted.of_service)))
    if isinstance(source, LogScanner):
        return _Stream(keep(source.scan_logs(baseline=arguments.baseline, span=span)))
    recording = await source.read(["logs"], span or window_span(context))
    context.trail.asked += recording.asked
    if recording.missed:
        context.trail.missed[f"{source.name} (logs)"] = "; ".join(recording.missed)
    return _Stream((recording.logs_baseline if arguments.baseline else recording.logs) or ())


async def _sifted(source: Source, arguments: LogsSearch, span: Span | None) -> Sifted | None:
    wanted = Wanted(arguments.service, arguments.text)
    if not isinstance(source, LogSifter) or span is None or arguments.baseline or wanted == Wanted():
        return None
    return await source.sift_logs(wanted, span)


def _failing(error: ToolError | TimeoutError) -> Iterator[LogLine]:
    yield from ()
    raise error


def _kept_going(source: Source, lines: Iterable[LogLine], context: ToolContext) -> Iterator[LogLine]:
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


class _Pass:
    """One pass over the lines; `stop` ends it from another thread, its own time ends it as well."""

    def __init__(self, arguments: LogsSearch, span: Span | None, clock: Clock) -> None:
        self.stop = threading.Event()
        self._service = arguments.service
        self._text = arguments.text.casefold()
        self._least = _ORDER.index(arguments.level) if arguments.level else 0
        self._span = span
        self._clock = clock
        self._until = clock.monotonic() + SEARCH_SECONDS
        self._read = 0
        self._found = _Found(arguments.limit)

    def search(self, streams: Iterable[_Stream]) -> _Found:
        found = self._found
        for stream in streams:
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

    def _is_over(self, line: LogLine) -> bool:
        self._read += 1
        if self._read % 4096 or not (self.stop.is_set() or self._clock.monotonic() > self._until):
            return False
        self._found.incomplete = f"the search was ended after {self._read:,} lines, at {zulu(line.time)}"
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

    def _count(self, sifted: Sifted) -> None:
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
        return self._span is None or line.time is None or within(line.time, self._span)

    def _matches(self, line: LogLine) -> bool:
        if self._least and severity(line) < self._least:
            return False
        text = self._text
        return not text or text in line.message.casefold() or text in (line.pod or "").casefold()


def severity(line: LogLine) -> int:
    """0 debug to 3 error; a line without a known level counts as error or info by its wording."""
    known = _SEVERITY.get((line.level or "").strip().lower())
    if known is not None:
        return known
    return 3 if speaks_of_failure(line.message, line.level) else 1


def _uncovered(found: _Found, arguments: LogsSearch) -> str | None:
    where = "baseline log lines" if arguments.baseline else "log lines"
    if found.lines_total == 0:
        return f"there are no {where}"
    if not found.seen_service:
        return found.incomplete or f"no {where} of {arguments.service}"
    if found.scanned == 0:
        return f"no {where} in this stretch of time"
    return None if found.matched else found.incomplete or None


def _head(arguments: LogsSearch, span: Span | None) -> dict[str, Any]:
    return {
        "service": arguments.service,
        "text": arguments.text,
        "level": arguments.level,
        "window": span_record(span) if span else "baseline",
    }


def _search_result(
    arguments: LogsSearch, context: ToolContext, span: Span | None, found: _Found
) -> ToolResult:
    shown = [*found.head, *found.tail]
    record = {
        **_head(arguments, span),
        "scanned": found.scanned,
        "matched": found.matched,
        "first": zulu(found.first),
        "last": zulu(found.last),
        "by_level": dict(found.levels.most_common(6)),
        "by_service": dict(found.services.most_common(10)),
        "without_time": found.without_time or None,
        "not_shown": found.matched - len(shown) or None,
        "lines": [_line(line) for line in shown],
        "incomplete": found.incomplete,
        "sampling": sampling(context, "logs"),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{found.matched:,} of {counted(found.scanned, 'line matches', 'lines match')}"
        + (f", first {zulu(found.first)}" if found.first else ""),
        status=ResultStatus.OK if found.matched else ResultStatus.NONE_MATCHED,
        source=source_names(context, "logs"),
        query=_query(arguments),
        scanned=found.scanned,
        matched=found.matched,
    )


def _query(arguments: LogsSearch) -> str:
    parts = [
        f"service={arguments.service}" if arguments.service else "",
        f"level>={arguments.level}" if arguments.level else "",
    ]
    parts += [
        f'"{arguments.text}"' if arguments.text else "",
        "in the baseline" if arguments.baseline else "",
    ]
    return " ".join(part for part in parts if part)


def _line(line: LogLine) -> dict[str, Any]:
    record = {
        "time": zulu(line.time),
        "service": line.service,
        "pod": line.pod,
        "namespace": line.namespace,
        "host": line.host,
        "level": line.level,
        "previous": line.previous or None,
        "message": cut_text(line.message, WIDEST_LINE),
        "trace_id": line.trace_id,
        "extra": dict(line.extra or {}),
    }
    return without_empty(record)


LOGS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="logs_search",
        purpose="Log lines by service, text, level and time: counts, first and last time, samples.",
        not_for="Overviews: logs_patterns.",
        arguments=LogsSearch,
        example={"service": "checkout", "text": "timeout", "level": "warn"},
        run=logs_search,
        capability="logs",
        target=lambda arguments: arguments.service,
    ),
)
