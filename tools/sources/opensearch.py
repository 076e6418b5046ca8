"""Elasticsearch and OpenSearch: log lines, whatever their fields are called.

Pages come by the scroll API, which both know. Shards that failed are said: their lines are missing, not absent.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from opsleuth.analysis.records import LogLine, Span
from opsleuth.state.clock import in_utc
from opsleuth.tools.sources.base import Wanted
from opsleuth.tools.sources.http import Refused, Session
from opsleuth.tools.sources.http_source import Reply, clock_check
from opsleuth.tools.sources.live import Check, Surroundings, refused
from opsleuth.tools.sources.log_pages import LogPage, Narrowed, PagedLogs
from opsleuth.tools.sources.search_fields import Clause, Indices, Unsure
from opsleuth.tools.sources.settings import Search
from opsleuth.tools.spec import NotPermitted, ToolError

# Documents of one page; the usual limit of an index (index.max_result_window) is 10,000.
PAGE = 5_000
_KEPT = "1m"
_COUNTED = 200
_UNNAMED = "unknown"


class _Hit(Reply):
    source: dict[str, Any] = Field(alias="_source")
    sort: list[float | str | None] = Field(default_factory=list)


class _Hits(Reply):
    hits: list[_Hit]


class _Shards(Reply):
    total: int = 0
    failed: int = 0


class _Found(Reply):
    scroll: str | None = Field(default=None, alias="_scroll_id")
    shards: _Shards = Field(default_factory=_Shards, alias="_shards")
    timed_out: bool = False
    hits: _Hits


class _Counted(Reply):
    count: int


class _Version(Reply):
    number: str
    distribution: str = "elasticsearch"


class _Root(Reply):
    version: _Version


class SearchSource(PagedLogs[Search]):
    """The source of kinds `elasticsearch` and `opensearch`."""

    product = "Elasticsearch or OpenSearch"

    def __init__(self, name: str, settings: Search, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.before, self.most = settings.before, settings.max_lines

    async def page(self, session: Session, span: Span, place: Any, query: Any = ()) -> LogPage:  # noqa: ANN401 - a scroll id
        if place is None:
            found = await self._search(session, span, PAGE, query or (), scroll=_KEPT)
        else:
            answer = await session.send("POST", "/_search/scroll", {"scroll": _KEPT, "scroll_id": place})
            found = self.parsed(_Found, answer.document)
        over = len(found.hits.hits) < PAGE
        if over and found.scroll:
            await self._forget(session, found.scroll)
        lines = [self._line(hit) for hit in found.hits.hits]
        return LogPage(lines, None if over else found.scroll, tuple(self._missing(found)))

    async def narrow(self, session: Session, wanted: Wanted, span: Span) -> Narrowed | None:
        """Clauses for the service and for the words of the text, as far as the mapping allows for them."""
        settings = self.settings
        indices = Indices((await session.get(f"/{settings.index}")).document)
        of_service: tuple[Clause, ...] = ()
        with_text: tuple[Clause, ...] = ()
        if wanted.service not in (None, _UNNAMED):
            with suppress(Unsure):
                of_service = (indices.of_service(self.called(wanted.service or ""), settings.service_fields),)
        if wanted.text:
            with suppress(Unsure):
                with_text = (indices.with_text(wanted.text, settings.message_fields, settings.pod_fields),)
        if not of_service and not with_text:
            return None
        document = {"query": self._query(span, ())}
        counted = await session.send("POST", f"/{settings.index}/_count", document)
        return Narrowed((*of_service, *with_text), of_service, self.parsed(_Counted, counted.document).count)

    def _query(self, span: Span | None, clauses: Sequence[Clause]) -> Clause:
        time, match = self.settings.time_field, self.settings.match
        within = [{"range": {time: {"gte": _ms(span.start), "lt": _ms(span.end), "format": "epoch_millis"}}}] if span else []  # fmt: skip
        narrowed = [{"query_string": {"query": match}}] if match else []
        return {"bool": {"filter": [*within, *narrowed, *clauses]}}

    async def _search(
        self,
        session: Session,
        span: Span | None,
        size: int,
        clauses: Sequence[Clause] = (),
        **parameters: str,
    ) -> _Found:
        order = {self.settings.time_field: {"order": "asc" if span else "desc", "unmapped_type": "date"}}
        document = {"size": size, "query": self._query(span, clauses), "sort": [order]}
        answer = await session.send("POST", f"/{self.settings.index}/_search", document, **parameters)
        return self.parsed(_Found, answer.document)

    async def _forget(self, session: Session, scroll: str) -> None:
        """The cluster keeps a scroll for a minute otherwise; not being allowed to end it costs nothing."""
        try:
            await session.send("DELETE", "/_search/scroll", {"scroll_id": scroll})
        except (NotPermitted, Refused):
            return

    def _missing(self, found: _Found) -> Sequence[str]:
        shards = found.shards
        said = [f"{shards.failed} of {shards.total} shards failed"] if shards.failed else []
        return [*said, *(["the search ran out of the cluster's own time"] if found.timed_out else [])]

    def _line(self, hit: _Hit) -> LogLine:
        settings, document = self.settings, hit.source
        return LogLine(
            time=_moment(value_of(document, settings.time_field), hit.sort),
            service=self.named(_first(document, settings.service_fields) or _UNNAMED),
            message=_message(document, settings.message_fields),
            level=_first(document, settings.level_fields),
            pod=_first(document, settings.pod_fields),
            host=_first(document, settings.host_fields),
            trace_id=_first(document, settings.trace_fields),
        )

    async def check(self) -> Sequence[Check]:
        api = self.api()
        async with api.session() as session:
            checks = [await self._version(session), clock_check(api.skew)]
            try:
                found = await self._search(session, None, _COUNTED)
            except ToolError as error:
                return [
                    *checks,
                    refused("documents", error, f"allow read on {self.settings.index}, or mend index"),
                ]
        return [*checks, *self._looked(found)]

    async def _version(self, session: Session) -> Check:
        try:
            version = self.parsed(_Root, (await session.get("/")).document).version
        except (NotPermitted, Refused):
            return Check("version", "ok", "not told by the server")
        return Check("version", "ok", f"{version.distribution} {version.number}")

    def _looked(self, found: _Found) -> Sequence[Check]:
        lines = [self._line(hit) for hit in found.hits.hits]
        if not lines:
            remedy = "set index to the pattern of the indices that hold logs"
            return [Check("documents", "warning", f"none in {self.settings.index}", remedy)]
        age = self.clock.now().timestamp() - (lines[0].time or 0.0)
        told = {
            what: sum(getattr(line, what) not in (None, "unknown") for line in lines)
            for what in ("service", "time")
        }
        checks = [Check("documents", "ok", f"the last is {age:,.0f} s old")]
        for what, number in told.items():
            if number < len(lines):
                text, field = f"{len(lines) - number} of the last {len(lines)} have none", f"{what}_field"
                checks.append(Check(what, "warning", text, f"set {field}{'s' if what == 'service' else ''}"))
        return checks


def value_of(document: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a field, whose name may stand there with its dots or part by part."""
    if name in document:
        return document[name]
    head, dot, rest = name.partition(".")
    while dot:
        if isinstance(inner := document.get(head), Mapping) and (found := value_of(inner, rest)) is not None:
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def _first(document: Mapping[str, Any], names: Sequence[str]) -> str | None:
    values = (value_of(document, name) for name in names)
    return next((str(v) for v in values if isinstance(v, str | int | float) and v != ""), None)


def _message(document: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first message that says something; the whole document where it has no field for one."""
    values = [value for name in names if (value := value_of(document, name)) is not None]
    texts = ("\n".join(map(str, v)) if isinstance(v, list) else str(v) for v in values if _is_plain(v))
    found = next((text for text in texts if text), None)
    return found if found is not None else "" if any(map(_is_plain, values)) else str(document)[:2_000]


def _is_plain(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """A text or number, or a list of such: what an index holds under the field's own name."""
    return all(isinstance(v, str | int | float) for v in (value if isinstance(value, list) else [value]))


def _moment(value: Any, sort: Sequence[float | str | None]) -> float | None:  # noqa: ANN401 - any JSON value
    """The document's own time; where its form is the index's own, the milliseconds that it was sorted by."""
    if isinstance(value, str) and "T" in value:
        try:
            moment = datetime.fromisoformat(value)
            return in_utc(
                moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            ).timestamp()  # as the index reads it
        except ValueError:
            pass  # the mapping may know a form that we do not
    return sort[0] / 1000 if sort and isinstance(sort[0], int | float) else None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
