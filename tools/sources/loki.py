"""Grafana Loki: log lines of streams, page by page, within the limits that the server sets."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.configuration.source_settings import LokiSettings
from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.http_source import BackendReply, check_clock_skew
from opsleuth.tools.sources.line_prefilter import (
    can_prefilter,
    caseless_pattern,
    escape_regex,
    raw_line_pattern,
)
from opsleuth.tools.sources.live_source import SourceCheck, SourceRuntime, failed_check
from opsleuth.tools.sources.log_pages import LogPage, NarrowedQuery, Opaque, PagedLogSource
from opsleuth.tools.sources.logformat import LogLineReader
from opsleuth.tools.sources.logql_queries import run_logql
from opsleuth.tools.sources.source_protocols import LogFilter, QueryAnswer, QueryLanguage, SourceQuery
from opsleuth.tools.spec import ToolError, UnavailableError

# The server's own default for max_entries_limit_per_query.
PAGE = 5_000
_NANO = 1_000_000_000
_MOST_ENTRIES = re.compile(r"max entries limit.*\(\d+ > (\d+)\)", re.IGNORECASE)
_LONGEST = re.compile(
    r"query time range exceeds the limit.*limit: ((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)", re.IGNORECASE
)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class _LokiNames(BackendReply):
    data: list[str] | None = None


class _LokiStream(BackendReply):
    stream: dict[str, str]
    values: list[tuple[int, str] | tuple[int, str, Any]]


class _LokiStreams(BackendReply):
    resultType: str  # noqa: N815 - as Loki writes it
    result: list[_LokiStream]


class _LokiQueryReply(BackendReply):
    """`warnings` say what a part of the queriers could not tell."""

    data: _LokiStreams
    warnings: list[str] | None = None


class _LokiValue(BackendReply):
    value: tuple[float, str]


class _LokiVector(BackendReply):
    result: list[_LokiValue]


class _LokiCountReply(BackendReply):
    data: _LokiVector


class _LokiBuildInfo(BackendReply):
    version: str = "not told"


class _LokiEntry(NamedTuple):
    """One entry; `time` in nanoseconds since the epoch, `stream` distinguishes streams across pages."""

    time: int
    stream: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class _LokiCursor:
    """Where to go on, in nanoseconds: `seen` are the rows of that very moment that were taken already.

    `limit` entries and `longest` nanoseconds are what the server answers at once.
    """

    start: int
    selector: str
    seen: frozenset[_LokiEntry] = frozenset()
    limit: int = PAGE
    longest: int | None = None


class LokiSource(PagedLogSource[LokiSettings]):
    """The source of kind `loki`."""

    product = "Loki"

    def __init__(self, name: str, settings: LokiSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.before, self.most = settings.before, settings.max_lines
        self._reader = LogLineReader()

    query_languages: frozenset[QueryLanguage] = frozenset({"logql"})

    async def run_query(self, language: QueryLanguage, query: SourceQuery) -> QueryAnswer:
        return await self.run_in_session(
            language, lambda session: run_logql(session, self.parsed, query, self.settings.match)
        )

    async def discover(self) -> None:
        async with self.api().session() as session:
            label = await self._label(session)
            for name in await self._names(session, f"/loki/api/v1/label/{label}/values"):
                self.named(name)

    async def page(
        self, session: HttpSession, span: TimeRange, place: Opaque, query: Opaque = None
    ) -> LogPage:
        at: _LokiCursor = place or _LokiCursor(
            _to_nanoseconds(span.start), query or await self._selector(session)
        )
        last = _to_nanoseconds(span.end)
        end = min(last, at.start + at.longest) if at.longest else last
        try:
            rows, missed = await self._rows(session, at, end)
        except HttpStatusError as error:
            return LogPage([], _reduce_to_limit(at, str(error), error))
        lines = [self._line(row) for row in rows if row not in at.seen]
        if len(rows) >= at.limit:
            after, cut = _cursor_after_full_page(at, rows)
            return LogPage(lines, after, (*missed, *cut))
        return LogPage(lines, replace(at, start=end, seen=frozenset()) if end < last else None, missed)

    async def _rows(
        self, session: HttpSession, at: _LokiCursor, end: int
    ) -> tuple[Sequence[_LokiEntry], tuple[str, ...]]:
        """The entries of one page, and what the server says that they lack."""
        answer = await session.get(
            "/loki/api/v1/query_range",
            query=at.selector,
            start=str(at.start),
            end=str(end),
            limit=str(at.limit),
            direction="forward",
        )
        answered = self.parsed(_LokiQueryReply, answer.document)
        found = answered.data
        if found.resultType != "streams":
            raise UnavailableError(
                f"{self.name}: match gives {found.resultType}, no lines: leave out what counts or rates"
            )
        rows = [
            _LokiEntry(value[0], tuple(sorted((s.stream | _entry_metadata(value)).items())), value[1])
            for s in found.result
            for value in s.values
        ]
        return sorted(rows), tuple(text[:300] for text in answered.warnings or ())

    async def narrow_query(
        self, session: HttpSession, wanted: LogFilter, span: TimeRange
    ) -> NarrowedQuery | None:
        """LogQL: the service by its labels, the text by a line filter, unless the text may be in a pod's name."""
        everything = await self._selector(session)
        of_service = query = self._of_service(everything, wanted.service) if wanted.service else everything
        if can_prefilter(wanted.text) and not await self._count(session, self._in_pods(everything, wanted.text), span):  # fmt: skip
            query = f"{of_service} |~ {_logql_string(raw_line_pattern(wanted.text))}"
        if query == everything:
            return None
        return NarrowedQuery(query, of_service, await self._count(session, everything, span))

    def _of_service(self, everything: str, service: str) -> str:
        names, labels = self.names_of_service(service), self.settings.service_labels
        if not self.settings.match and everything.startswith(f"{{{labels[0]}=~"):
            return f"{{{labels[0]}=~{_logql_string('|'.join(map(escape_regex, names)))}}}"
        named = [f"{label}={_logql_string(name)}" for label in labels for name in names]
        by_text = " and ".join(f'{label}=""' for label in labels)  # then the line itself may name it
        return f"{everything} | ({' or '.join(named)} or ({by_text}))"

    def _in_pods(self, everything: str, text: str) -> str:
        pattern = _logql_string(f"(?s:.*)(?:{caseless_pattern(text)})(?s:.*)")
        return f"{everything} | ({' or '.join(f'{label}=~{pattern}' for label in self.settings.pod_labels)})"

    async def _count(self, session: HttpSession, query: str, span: TimeRange) -> int:
        """Lines of the time range; a range of LogQL is without its beginning and with its end."""
        start, end = _to_nanoseconds(span.start), _to_nanoseconds(span.end)
        asked = f"sum(count_over_time({query} [{end - start}ns]))"
        answer = await session.get("/loki/api/v1/query", query=asked, time=str(end - 1))
        return sum(
            int(float(one.value[1])) for one in self.parsed(_LokiCountReply, answer.document).data.result
        )

    async def _selector(self, session: HttpSession) -> str:
        return self.settings.match or f'{{{await self._label(session)}=~".+"}}'

    async def _label(self, session: HttpSession) -> str:
        """The label that names services. Raises UnavailableError where no stream has one."""
        known = await self._names(session, "/loki/api/v1/labels")
        wanted = self.settings.service_labels
        if found := next((label for label in wanted if label in known), None):
            return found
        raise UnavailableError(
            f"{self.name}: no stream has a label of {', '.join(wanted)} (there are: {', '.join(known[:20]) or 'none'}): "
            "set service_labels or match"
        )

    async def _names(self, session: HttpSession, path: str) -> Sequence[str]:
        return self.parsed(_LokiNames, (await session.get(path)).document).data or []

    def _line(self, row: _LokiEntry) -> LogLine:
        labels = dict(row.stream)
        settings, written = self.settings, self._reader.read(row.text, row.time / _NANO)
        service = _first_label(labels, settings.service_labels) or written.service or "unknown"
        return replace(
            written,
            time=row.time / _NANO,
            service=self.named(service),
            level=_first_label(labels, settings.level_labels) or written.level,
            pod=_first_label(labels, settings.pod_labels) or written.pod,
            namespace=labels.get("namespace"),
            host=_first_label(labels, settings.host_labels) or written.host,
        )

    async def check(self) -> Sequence[SourceCheck]:
        api = self.api()
        async with api.session() as session:
            checks = [await self._version(session), check_clock_skew(api.skew)]
            try:
                label = await self._label(session)
                names = await self._names(session, f"/loki/api/v1/label/{label}/values")
            except ToolError as error:
                return [*checks, failed_check("labels", error, "set service_labels, or allow reading labels")]
        return [*checks, SourceCheck("services", "ok", f"{len(names)}: {', '.join(sorted(names)[:8])}")]

    async def _version(self, session: HttpSession) -> SourceCheck:
        try:
            answer = await session.get("/loki/api/v1/status/buildinfo")
        except HttpStatusError:
            return SourceCheck("version", "ok", "not reported by the server")
        return SourceCheck("version", "ok", self.parsed(_LokiBuildInfo, answer.document).version)


def _logql_string(words: str) -> str:
    """As a string of LogQL, which is written as in Go."""
    return json.dumps(words, ensure_ascii=False)


def _reduce_to_limit(at: _LokiCursor, text: str, error: HttpStatusError) -> _LokiCursor:
    """The same place within a limit that the server has just told. Raises the error if it is about anything else."""
    if (found := _MOST_ENTRIES.search(text)) and 0 < int(found[1]) < at.limit:
        return replace(at, limit=int(found[1]))
    if found := _LONGEST.search(text):
        longest = round(sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(found[1])) * _NANO)
        if longest > 0 and (at.longest is None or longest < at.longest):
            return replace(at, longest=longest)
    raise error


def _cursor_after_full_page(
    at: _LokiCursor, rows: Sequence[_LokiEntry]
) -> tuple[_LokiCursor, tuple[str, ...]]:
    """After a full page: its last moment is asked again, for more may have been written in it."""
    last = rows[-1].time
    if last > at.start:
        return replace(at, start=last, seen=frozenset(row for row in rows if row.time == last)), ()
    cut = f"more than {at.limit:,} lines of one moment: the rest of it was not read"
    return replace(at, start=last + 1, seen=frozenset()), (cut,)


def _entry_metadata(value: Sequence[Any]) -> dict[str, str]:
    """Structured metadata of one entry: plain, or parted as `structuredMetadata` and `parsed`."""
    given = value[2] if len(value) > 2 and isinstance(value[2], Mapping) else {}
    given = given.get("structuredMetadata", given)
    return {str(k): v for k, v in given.items() if isinstance(v, str)}


def _first_label(labels: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def _to_nanoseconds(seconds: float) -> int:
    return round(seconds * 1e6) * 1_000
