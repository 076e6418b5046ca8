"""Elasticsearch and OpenSearch: log lines, whatever their fields are called.

Pages come by the scroll API, which both know. Shards that failed are said: their lines are missing, not absent.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.configuration.source_settings import SearchSettings
from opsleuth.state.clock import convert_to_utc
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.http_source import BackendReply, check_clock_skew
from opsleuth.tools.sources.live_source import SourceCheck, SourceRuntime, failed_check
from opsleuth.tools.sources.log_pages import LogPage, NarrowedQuery, Opaque, PagedLogSource
from opsleuth.tools.sources.opensearch_fields import Clause, IndexMappings, UncertainMappingError
from opsleuth.tools.sources.source_protocols import LogFilter
from opsleuth.tools.spec import NotPermittedError, ToolError

# Documents of one page; the usual limit of an index (index.max_result_window) is 10,000.
PAGE = 5_000
_KEPT = "1m"
_COUNTED = 200
_UNNAMED = "unknown"


class _SearchHit(BackendReply):
    source: dict[str, Any] = Field(alias="_source")
    sort: list[float | str | None] = Field(default_factory=list)


class _SearchHits(BackendReply):
    hits: list[_SearchHit]


class _Reason(BackendReply):
    type: str = ""
    reason: str | None = None


class _Failure(BackendReply):
    index: str | None = None
    reason: _Reason = Field(default_factory=_Reason)


class _ShardCounts(BackendReply):
    total: int = 0
    failed: int = 0
    failures: list[_Failure] = Field(default_factory=list)


class _Clusters(BackendReply):
    """Of a search across clusters: one that is skipped or fails takes its documents with it."""

    total: int = 0
    skipped: int = 0
    partial: int = 0
    failed: int = 0


class _SearchReply(BackendReply):
    scroll: str | None = Field(default=None, alias="_scroll_id")
    shards: _ShardCounts = Field(default_factory=_ShardCounts, alias="_shards")
    clusters: _Clusters = Field(default_factory=_Clusters, alias="_clusters")
    timed_out: bool = False
    terminated_early: bool = False
    hits: _SearchHits


class _CountReply(BackendReply):
    count: int
    shards: _ShardCounts = Field(default_factory=_ShardCounts, alias="_shards")


class _ClusterVersion(BackendReply):
    number: str
    distribution: str = "elasticsearch"


class _ClusterInfo(BackendReply):
    version: _ClusterVersion


class SearchSource(PagedLogSource[SearchSettings]):
    """The source of kinds `elasticsearch` and `opensearch`."""

    product = "Elasticsearch or OpenSearch"

    def __init__(self, name: str, settings: SearchSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.before, self.most = settings.before, settings.max_lines

    async def page(self, session: HttpSession, span: TimeRange, place: Opaque, query: Opaque = ()) -> LogPage:
        if place is None:
            found = await self._search(session, span, PAGE, query or (), scroll=_KEPT)
        else:
            answer = await session.send("POST", "/_search/scroll", {"scroll": _KEPT, "scroll_id": place})
            found = self.parsed(_SearchReply, answer.document)
        over = len(found.hits.hits) < PAGE
        if over and found.scroll:
            await self._forget(session, found.scroll)
        lines = [self._line(hit) for hit in found.hits.hits]
        return LogPage(lines, None if over else found.scroll, tuple(self._missing(found)))

    async def narrow_query(
        self, session: HttpSession, wanted: LogFilter, span: TimeRange
    ) -> NarrowedQuery | None:
        """Clauses for the service and for the words of the text, as far as the mapping allows for them."""
        settings = self.settings
        indices = IndexMappings((await session.get(f"/{settings.index}")).document)
        of_service: tuple[Clause, ...] = ()
        with_text: tuple[Clause, ...] = ()
        if wanted.service not in (None, _UNNAMED):
            with suppress(UncertainMappingError):
                of_service = (
                    indices.of_service(self.names_of_service(wanted.service or ""), settings.service_fields),
                )
        if wanted.text:
            with suppress(UncertainMappingError):
                with_text = (indices.with_text(wanted.text, settings.message_fields, settings.pod_fields),)
        if not of_service and not with_text:
            return None
        document = {"query": self._query(span, ())}
        answer = await session.send("POST", f"/{settings.index}/_count", document)
        counted = self.parsed(_CountReply, answer.document)
        if counted.shards.failed:
            return None  # then nobody knows how many lines there are: they are gone through
        return NarrowedQuery((*of_service, *with_text), of_service, counted.count)

    def _query(self, span: TimeRange | None, clauses: Sequence[Clause]) -> Clause:
        time, match = self.settings.time_field, self.settings.match
        within = [{"range": {time: {"gte": _to_milliseconds(span.start), "lt": _to_milliseconds(span.end), "format": "epoch_millis"}}}] if span else []  # fmt: skip
        narrowed = [{"query_string": {"query": match}}] if match else []
        return {"bool": {"filter": [*within, *narrowed, *clauses]}}

    async def _search(
        self,
        session: HttpSession,
        span: TimeRange | None,
        size: int,
        clauses: Sequence[Clause] = (),
        **parameters: str,
    ) -> _SearchReply:
        order = {self.settings.time_field: {"order": "asc" if span else "desc", "unmapped_type": "date"}}
        document = {"size": size, "query": self._query(span, clauses), "sort": [order]}
        answer = await session.send("POST", f"/{self.settings.index}/_search", document, **parameters)
        return self.parsed(_SearchReply, answer.document)

    async def _forget(self, session: HttpSession, scroll: str) -> None:
        """The cluster keeps a scroll for a minute otherwise; not being allowed to end it costs nothing."""
        try:
            await session.send("DELETE", "/_search/scroll", {"scroll_id": scroll})
        except (NotPermittedError, HttpStatusError):
            return

    def _missing(self, found: _SearchReply) -> Sequence[str]:
        shards, clusters = found.shards, found.clusters
        away = clusters.skipped + clusters.partial + clusters.failed
        return [
            *(
                [f"{shards.failed} of {shards.total} shards failed{_describe_first_failure(shards)}"]
                if shards.failed
                else []
            ),
            *([f"{away} of {clusters.total} clusters did not answer in full"] if away else []),
            *(["the search ran out of the cluster's own time"] if found.timed_out else []),
            *(["the cluster ended the search early"] if found.terminated_early else []),
        ]

    def _line(self, hit: _SearchHit) -> LogLine:
        settings, document = self.settings, hit.source
        return LogLine(
            time=_document_time(field_value(document, settings.time_field), hit.sort),
            service=self.named(_first_field_text(document, settings.service_fields) or _UNNAMED),
            message=_message_text(document, settings.message_fields),
            level=_first_field_text(document, settings.level_fields),
            pod=_first_field_text(document, settings.pod_fields),
            host=_first_field_text(document, settings.host_fields),
            trace_id=_first_field_text(document, settings.trace_fields),
        )

    async def check(self) -> Sequence[SourceCheck]:
        api = self.api()
        async with api.session() as session:
            checks = [await self._version(session), check_clock_skew(api.skew)]
            try:
                found = await self._search(session, None, _COUNTED)
            except ToolError as error:
                return [
                    *checks,
                    failed_check(
                        "documents", error, f"allow read on {self.settings.index}, or correct index"
                    ),
                ]
        partial = [
            SourceCheck("shards", "warning", text, "look at the cluster's health")
            for text in self._missing(found)
        ]
        return [*checks, *self._looked(found), *partial]

    async def _version(self, session: HttpSession) -> SourceCheck:
        try:
            version = self.parsed(_ClusterInfo, (await session.get("/")).document).version
        except (NotPermittedError, HttpStatusError):
            return SourceCheck("version", "ok", "not reported by the server")
        return SourceCheck("version", "ok", f"{version.distribution} {version.number}")

    def _looked(self, found: _SearchReply) -> Sequence[SourceCheck]:
        lines = [self._line(hit) for hit in found.hits.hits]
        if not lines:
            remedy = "set index to the pattern of the indices that hold logs"
            return [SourceCheck("documents", "warning", f"none in {self.settings.index}", remedy)]
        age = self.clock.now().timestamp() - (lines[0].time or 0.0)
        told = {
            what: sum(getattr(line, what) not in (None, "unknown") for line in lines)
            for what in ("service", "time")
        }
        checks = [SourceCheck("documents", "ok", f"the last is {age:,.0f} s old")]
        for what, number in told.items():
            if number < len(lines):
                text, field = f"{len(lines) - number} of the last {len(lines)} have none", f"{what}_field"
                checks.append(
                    SourceCheck(what, "warning", text, f"set {field}{'s' if what == 'service' else ''}")
                )
        return checks


def _describe_first_failure(shards: _ShardCounts) -> str:
    """The first failure, in the cluster's own words."""
    first = next((f for f in shards.failures if f.reason.type or f.reason.reason), None)
    if first is None:
        return ""
    return f" ({': '.join(filter(None, (first.index, first.reason.reason or first.reason.type)))})"[:300]


def field_value(document: Mapping[str, Any], name: str) -> JSON:
    """The value of a field, whose name may stand there with its dots or part by part."""
    if name in document:
        return document[name]
    head, dot, rest = name.partition(".")
    while dot:
        if (
            isinstance(inner := document.get(head), Mapping)
            and (found := field_value(inner, rest)) is not None
        ):
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def _first_field_text(document: Mapping[str, Any], names: Sequence[str]) -> str | None:
    values = (field_value(document, name) for name in names)
    return next((str(v) for v in values if isinstance(v, str | int | float) and v != ""), None)


def _message_text(document: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first message that says something; the whole document where it has no field for one."""
    values = [value for name in names if (value := field_value(document, name)) is not None]
    texts = (
        "\n".join(map(str, v)) if isinstance(v, list) else str(v) for v in values if _is_scalar_or_list(v)
    )
    found = next((text for text in texts if text), None)
    return (
        found if found is not None else "" if any(map(_is_scalar_or_list, values)) else str(document)[:2_000]
    )


def _is_scalar_or_list(value: JSON) -> bool:
    """A text or number, or a list of such: what an index holds under the field's own name."""
    return all(isinstance(v, str | int | float) for v in (value if isinstance(value, list) else [value]))


def _document_time(value: JSON, sort: Sequence[float | str | None]) -> float | None:
    """The document's own time; where its form is the index's own, the milliseconds that it was sorted by."""
    if isinstance(value, str) and "T" in value:
        try:
            moment = datetime.fromisoformat(value)
            return convert_to_utc(
                moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            ).timestamp()  # as the index reads it
        except ValueError:
            pass  # the mapping may know a form that we do not
    return sort[0] / 1000 if sort and isinstance(sort[0], int | float) else None


def _to_milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
