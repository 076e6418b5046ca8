"""Grafana Tempo: traces that a search finds, each fetched by its id."""

import asyncio
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import AliasChoices, Field

from opsleuth.analysis.records import TimeRange, TraceSpan
from opsleuth.configuration.source_settings import TempoSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.http_source import BackendReply, HttpSource, check_clock_skew
from opsleuth.tools.sources.live_source import FetchedRows, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability, QueryAnswer, QueryLanguage, SourceQuery
from opsleuth.tools.sources.traceql_queries import run_traceql
from opsleuth.tools.spec import ToolError, UnavailableError

# Of the seconds that a source has: one trace that is slow must not cost the others.
_TRACE_SECONDS = 6.0


class _TempoHit(BackendReply):
    trace: str = Field(alias="traceID")


class _TempoSearchReply(BackendReply):
    """Where nothing was found, only what the search has cost is said."""

    traces: list[_TempoHit] | None = None
    metrics: dict[str, Any] | None = None


class _OtlpAttribute(BackendReply):
    key: str
    value: dict[str, Any] = Field(default_factory=dict)


class _OtlpResource(BackendReply):
    attributes: list[_OtlpAttribute] = Field(default_factory=list)


class _OtlpStatus(BackendReply):
    code: str | int | None = None


class _OtlpSpan(BackendReply):
    trace: str = Field(alias="traceId")
    span: str = Field(alias="spanId")
    parent: str = Field(default="", alias="parentSpanId")
    name: str = ""
    start: int = Field(alias="startTimeUnixNano")
    end: int = Field(alias="endTimeUnixNano")
    status: _OtlpStatus = Field(default_factory=_OtlpStatus)


class _OtlpScope(BackendReply):
    spans: list[_OtlpSpan] = Field(default_factory=list)


class _OtlpBatch(BackendReply):
    resource: _OtlpResource = Field(default_factory=_OtlpResource)
    scopes: list[_OtlpScope] = Field(
        default_factory=list,
        validation_alias=AliasChoices("scopeSpans", "instrumentationLibrarySpans"),
    )


class _OtlpTrace(BackendReply):
    batches: list[_OtlpBatch] = Field(validation_alias=AliasChoices("batches", "resourceSpans"))


class TempoSource(HttpSource[TempoSettings]):
    """The source of kind `tempo`."""

    product = "Tempo"
    capabilities: frozenset[Capability] = frozenset({"traces"})

    def __init__(self, name: str, settings: TempoSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.sampling = f"{settings.max_traces} traces before the window and {settings.max_traces} in it"

    query_languages: frozenset[QueryLanguage] = frozenset({"traceql"})

    async def run_query(self, language: QueryLanguage, query: SourceQuery) -> QueryAnswer:
        return await self.run_in_session(
            language, lambda session: run_traceql(session, self.parsed, query, self.settings.match)
        )

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        before = TimeRange(window.start - self.settings.before, window.start)
        ids = [id_ for span in (before, window) for id_ in await self._search(session, span)]
        traces = await gather_or_cancel(self._trace(session, id_) for id_ in dict.fromkeys(ids))
        errors = [trace for trace in traces if isinstance(trace, Exception)]
        if errors and len(errors) == len(traces):
            raise errors[0]
        spans = chain.from_iterable(trace for trace in traces if not isinstance(trace, Exception))
        return FetchedRows({"spans": list(spans)}, missed=_unread_traces(errors, len(traces)))

    async def _search(self, session: HttpSession, span: TimeRange) -> Sequence[str]:
        answer = await session.get(
            "/api/search",
            q=self.settings.match,
            start=f"{span.start:.0f}",
            end=f"{span.end:.0f}",
            limit=str(self.settings.max_traces),
        )
        found = self.parsed(_TempoSearchReply, answer.document)
        if found.traces is None and found.metrics is None:
            raise UnavailableError(f"{self.name}: not a valid {self.product} response")
        return [hit.trace for hit in found.traces or ()]

    async def _trace(self, session: HttpSession, id_: str) -> Sequence[TraceSpan] | ToolError | TimeoutError:
        """The spans of one trace. One that is refused, too large or late costs itself only."""
        try:
            async with asyncio.timeout(_TRACE_SECONDS):
                answer = await session.get(f"/api/traces/{id_}")
            document = answer.document
            whole = document if isinstance(document, Mapping) else {}
            if str(whole.get("status", "")).upper() == "PARTIAL":
                session.api.partial[
                    f"trace {id_} is only a part: {whole.get('message', 'it is too large')}"[:300]
                ] = None
            batches = self.parsed(_OtlpTrace, whole.get("trace", document)).batches
            return [span for batch in batches for span in self._spans(batch)]
        except HttpStatusError as error:
            if error.status_code == 404:  # found by the search, and gone from the store meanwhile
                return ()
            return error
        except ToolError as error:
            return error
        except TimeoutError as error:
            return TimeoutError(
                str(error) or f"{self.name}: trace {id_} did not come within {_TRACE_SECONDS:g} s"
            )

    def _spans(self, batch: _OtlpBatch) -> Sequence[TraceSpan]:
        named = (a.value.get("stringValue") for a in batch.resource.attributes if a.key == "service.name")
        service = self.named(next(named, None) or "unknown")
        return [
            TraceSpan(
                trace_id=_normalize_hex_id(span.trace),
                span_id=_normalize_hex_id(span.span),
                parent_id=_normalize_hex_id(span.parent) or None,
                service=service,
                operation=span.name,
                start=span.start / 1e9,
                duration_ms=(span.end - span.start) / 1e6,
                status=_status_from_code(span.status.code),
            )
            for scope in batch.scopes
            for span in scope.spans
        ]

    async def check(self) -> Sequence[SourceCheck]:
        api = self.api()
        now = self.clock.now().timestamp()
        async with api.session() as session:
            found = await self._search(session, TimeRange(now - 3_600, now))
        if not found:
            return [
                check_clock_skew(api.skew),
                SourceCheck("traces", "warning", "none in the last hour", "check url and match"),
            ]
        return [
            check_clock_skew(api.skew),
            SourceCheck("traces", "ok", f"{len(found)} of the last hour found"),
        ]


def _unread_traces(errors: Sequence[Exception], asked: int) -> tuple[str, ...]:
    if not errors:
        return ()
    return (f"{len(errors)} of {format_count(asked, 'trace')} could not be read: {errors[0]}"[:400],)


def _status_from_code(code: str | int | None) -> str | None:
    """As OTLP in JSON writes it: by name or by number; unset is not a status."""
    if code in (2, "2", "STATUS_CODE_ERROR"):
        return "ERROR"
    return "OK" if code in (1, "1", "STATUS_CODE_OK") else None


def _normalize_hex_id(id_: str) -> str:
    """An id as it is shown everywhere; older versions write its bytes in base64."""
    if len(id_) in (16, 32) and all(c in "0123456789abcdefABCDEF" for c in id_):
        return id_.lower()
    try:
        return b64decode(id_, validate=True).hex()
    except (NoBase64, ValueError):
        raise UnavailableError(f"the trace id {id_[:40]!r} is neither hexadecimal nor base64") from None
