"""Grafana Loki: log lines of streams, page by page, within the limits that the server sets."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from opsleuth.analysis.records import LogLine, Span
from opsleuth.tools.sources.base import Wanted
from opsleuth.tools.sources.http import Refused, Session
from opsleuth.tools.sources.http_source import Reply, clock_check
from opsleuth.tools.sources.live import Check, Surroundings, refused
from opsleuth.tools.sources.log_pages import LogPage, Narrowed, PagedLogs
from opsleuth.tools.sources.logformat import LineReader
from opsleuth.tools.sources.prefilter import can_look_for, folded, of_raw_lines, quoted
from opsleuth.tools.sources.settings import Loki
from opsleuth.tools.spec import ToolError, Unavailable

# The server's own default for max_entries_limit_per_query.
PAGE = 5_000
_NANO = 1_000_000_000
_MOST_ENTRIES = re.compile(r"max entries limit.*\(\d+ > (\d+)\)", re.IGNORECASE)
_LONGEST = re.compile(
    r"query time range exceeds the limit.*limit: ((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)", re.IGNORECASE
)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class _Labels(Reply):
    data: list[str] | None = None


class _Stream(Reply):
    stream: dict[str, str]
    values: list[tuple[int, str] | tuple[int, str, Any]]


class _Streams(Reply):
    resultType: str  # noqa: N815 - as Loki writes it
    result: list[_Stream]


class _Found(Reply):
    data: _Streams


class _Value(Reply):
    value: tuple[float, str]


class _Values(Reply):
    result: list[_Value]


class _Counted(Reply):
    data: _Values


class _BuildInfo(Reply):
    version: str = "not told"


class _Row(NamedTuple):
    """One entry; `time` in nanoseconds since the epoch, `stream` tells streams of one page and the next apart."""

    time: int
    stream: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to go on, in nanoseconds: `seen` are the rows of that very moment that were taken already.

    `limit` entries and `longest` nanoseconds are what the server answers at once.
    """

    start: int
    selector: str
    seen: frozenset[_Row] = frozenset()
    limit: int = PAGE
    longest: int | None = None


class LokiSource(PagedLogs[Loki]):
    """The source of kind `loki`."""

    product = "Loki"

    def __init__(self, name: str, settings: Loki, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.before, self.most = settings.before, settings.max_lines
        self._reader = LineReader()

    async def discover(self) -> None:
        async with self.api().session() as session:
            label = await self._label(session)
            for name in await self._names(session, f"/loki/api/v1/label/{label}/values"):
                self.named(name)

    async def page(self, session: Session, span: Span, place: Any, query: Any = None) -> LogPage:  # noqa: ANN401 - a _Place
        at: _Place = place or _Place(_ns(span.start), query or await self._selector(session))
        last = _ns(span.end)
        end = min(last, at.start + at.longest) if at.longest else last
        try:
            rows = await self._rows(session, at, end)
        except Refused as error:
            return LogPage([], _within(at, str(error), error))
        lines = [self._line(row) for row in rows if row not in at.seen]
        if len(rows) >= at.limit:
            return LogPage(lines, *_further(at, rows))
        return LogPage(lines, replace(at, start=end, seen=frozenset()) if end < last else None)

    async def _rows(self, session: Session, at: _Place, end: int) -> Sequence[_Row]:
        answer = await session.get(
            "/loki/api/v1/query_range",
            query=at.selector,
            start=str(at.start),
            end=str(end),
            limit=str(at.limit),
            direction="forward",
        )
        found = self.parsed(_Found, answer.document).data
        if found.resultType != "streams":
            raise Unavailable(
                f"{self.name}: match gives {found.resultType}, no lines: leave out what counts or rates"
            )
        rows = [
            _Row(value[0], tuple(sorted((s.stream | _metadata(value)).items())), value[1])
            for s in found.result
            for value in s.values
        ]
        return sorted(rows)

    async def narrow(self, session: Session, wanted: Wanted, span: Span) -> Narrowed | None:
        """LogQL: the service by its labels, the text by a line filter, unless the text may be in a pod's name."""
        everything = await self._selector(session)
        of_service = query = self._of_service(everything, wanted.service) if wanted.service else everything
        if can_look_for(wanted.text) and not await self._count(session, self._in_pods(everything, wanted.text), span):  # fmt: skip
            query = f"{of_service} |~ {_text(of_raw_lines(wanted.text))}"
        if query == everything:
            return None
        return Narrowed(query, of_service, await self._count(session, everything, span))

    def _of_service(self, everything: str, service: str) -> str:
        names, labels = self.called(service), self.settings.service_labels
        if not self.settings.match and everything.startswith(f"{{{labels[0]}=~"):
            return f"{{{labels[0]}=~{_text('|'.join(map(quoted, names)))}}}"
        named = [f"{label}={_text(name)}" for label in labels for name in names]
        by_text = " and ".join(f'{label}=""' for label in labels)  # then the line itself may name it
        return f"{everything} | ({' or '.join(named)} or ({by_text}))"

    def _in_pods(self, everything: str, text: str) -> str:
        pattern = _text(f"(?s:.*)(?:{folded(text)})(?s:.*)")
        return f"{everything} | ({' or '.join(f'{label}=~{pattern}' for label in self.settings.pod_labels)})"

    async def _count(self, session: Session, query: str, span: Span) -> int:
        """Lines of the stretch of time; a range of LogQL is without its beginning and with its end."""
        start, end = _ns(span.start), _ns(span.end)
        asked = f"sum(count_over_time({query} [{end - start}ns]))"
        answer = await session.get("/loki/api/v1/query", query=asked, time=str(end - 1))
        return sum(int(float(one.value[1])) for one in self.parsed(_Counted, answer.document).data.result)

    async def _selector(self, session: Session) -> str:
        return self.settings.match or f'{{{await self._label(session)}=~".+"}}'

    async def _label(self, session: Session) -> str:
        """The label that names services. Raises Unavailable where no stream has one."""
        known = await self._names(session, "/loki/api/v1/labels")
        wanted = self.settings.service_labels
        if found := next((label for label in wanted if label in known), None):
            return found
        raise Unavailable(
            f"{self.name}: no stream has a label of {', '.join(wanted)} (there are: {', '.join(known[:20]) or 'none'}): "
            "set service_labels or match"
        )

    async def _names(self, session: Session, path: str) -> Sequence[str]:
        return self.parsed(_Labels, (await session.get(path)).document).data or []

    def _line(self, row: _Row) -> LogLine:
        labels = dict(row.stream)
        settings, written = self.settings, self._reader.read(row.text, row.time / _NANO)
        service = _first(labels, settings.service_labels) or written.service or "unknown"
        return replace(
            written,
            time=row.time / _NANO,
            service=self.named(service),
            level=_first(labels, settings.level_labels) or written.level,
            pod=_first(labels, settings.pod_labels) or written.pod,
            namespace=labels.get("namespace"),
            host=_first(labels, settings.host_labels) or written.host,
        )

    async def check(self) -> Sequence[Check]:
        api = self.api()
        async with api.session() as session:
            checks = [await self._version(session), clock_check(api.skew)]
            try:
                label = await self._label(session)
                names = await self._names(session, f"/loki/api/v1/label/{label}/values")
            except ToolError as error:
                return [*checks, refused("labels", error, "set service_labels, or allow reading labels")]
        return [*checks, Check("services", "ok", f"{len(names)}: {', '.join(sorted(names)[:8])}")]

    async def _version(self, session: Session) -> Check:
        try:
            answer = await session.get("/loki/api/v1/status/buildinfo")
        except Refused:
            return Check("version", "ok", "not told by the server")
        return Check("version", "ok", self.parsed(_BuildInfo, answer.document).version)


def _text(words: str) -> str:
    """As a string of LogQL, which is written as in Go."""
    return json.dumps(words, ensure_ascii=False)


def _within(at: _Place, text: str, error: Refused) -> _Place:
    """The same place within a limit that the server has just told. Raises the error if it is about anything else."""
    if (found := _MOST_ENTRIES.search(text)) and 0 < int(found[1]) < at.limit:
        return replace(at, limit=int(found[1]))
    if found := _LONGEST.search(text):
        longest = round(sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(found[1])) * _NANO)
        if longest > 0 and (at.longest is None or longest < at.longest):
            return replace(at, longest=longest)
    raise error


def _further(at: _Place, rows: Sequence[_Row]) -> tuple[_Place, tuple[str, ...]]:
    """After a full page: its last moment is asked again, for more may have been written in it."""
    last = rows[-1].time
    if last > at.start:
        return replace(at, start=last, seen=frozenset(row for row in rows if row.time == last)), ()
    cut = f"more than {at.limit:,} lines of one moment: the rest of it was not read"
    return replace(at, start=last + 1, seen=frozenset()), (cut,)


def _metadata(value: Sequence[Any]) -> dict[str, str]:
    """Structured metadata of one entry: plain, or parted as `structuredMetadata` and `parsed`."""
    given = value[2] if len(value) > 2 and isinstance(value[2], Mapping) else {}
    given = given.get("structuredMetadata", given)
    return {str(k): v for k, v in given.items() if isinstance(v, str)}


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def _ns(seconds: float) -> int:
    return round(seconds * 1e6) * 1_000
