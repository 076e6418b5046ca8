"""Grafana Tempo: traces that a search finds, each fetched by its id."""

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import AliasChoices, Field

from opsleuth.analysis.records import Span, TraceSpan
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Refused, Session
from opsleuth.tools.sources.http_source import HttpSource, Reply, clock_check
from opsleuth.tools.sources.live import Check, Fetched, Surroundings
from opsleuth.tools.sources.settings import Tempo
from opsleuth.tools.spec import Unavailable
from opsleuth.tools.together import together


class _Hit(Reply):
    trace: str = Field(alias="traceID")


class _Search(Reply):
    """Where nothing was found, only what the search has cost is said."""

    traces: list[_Hit] | None = None
    metrics: dict[str, Any] | None = None


class _Attribute(Reply):
    key: str
    value: dict[str, Any] = Field(default_factory=dict)


class _Resource(Reply):
    attributes: list[_Attribute] = Field(default_factory=list)


class _Status(Reply):
    code: str | int | None = None


class _Span(Reply):
    trace: str = Field(alias="traceId")
    span: str = Field(alias="spanId")
    parent: str = Field(default="", alias="parentSpanId")
    name: str = ""
    start: int = Field(alias="startTimeUnixNano")
    end: int = Field(alias="endTimeUnixNano")
    status: _Status = Field(default_factory=_Status)


class _Scope(Reply):
    spans: list[_Span] = Field(default_factory=list)


class _Batch(Reply):
    resource: _Resource = Field(default_factory=_Resource)
    scopes: list[_Scope] = Field(
        default_factory=list,
        validation_alias=AliasChoices("scopeSpans", "instrumentationLibrarySpans"),
    )


class _Trace(Reply):
    batches: list[_Batch] = Field(validation_alias=AliasChoices("batches", "resourceSpans"))


class TempoSource(HttpSource[Tempo]):
    """The source of kind `tempo`."""

    product = "Tempo"
    capabilities: frozenset[Capability] = frozenset({"traces"})

    def __init__(self, name: str, settings: Tempo, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.sampling = f"{settings.max_traces} traces before the window and {settings.max_traces} in it"

    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        del capability
        before = Span(window.start - self.settings.before, window.start)
        ids = [id_ for span in (before, window) for id_ in await self._search(session, span)]
        traces = await together(self._trace(session, id_) for id_ in dict.fromkeys(ids))
        return Fetched({"spans": list(chain.from_iterable(traces))})

    async def _search(self, session: Session, span: Span) -> Sequence[str]:
        answer = await session.get(
            "/api/search",
            q=self.settings.match,
            start=f"{span.start:.0f}",
            end=f"{span.end:.0f}",
            limit=str(self.settings.max_traces),
        )
        found = self.parsed(_Search, answer.document)
        if found.traces is None and found.metrics is None:
            raise Unavailable(f"{self.name}: the answer is none of {self.product}")
        return [hit.trace for hit in found.traces or ()]

    async def _trace(self, session: Session, id_: str) -> Sequence[TraceSpan]:
        try:
            answer = await session.get(f"/api/traces/{id_}")
        except Refused as error:
            if error.status_code == 404:  # found by the search, and gone from the store meanwhile
                return ()
            raise
        document = answer.document
        inner = document.get("trace", document) if isinstance(document, Mapping) else document
        return [span for batch in self.parsed(_Trace, inner).batches for span in self._spans(batch)]

    def _spans(self, batch: _Batch) -> Sequence[TraceSpan]:
        named = (a.value.get("stringValue") for a in batch.resource.attributes if a.key == "service.name")
        service = self.named(next(named, None) or "unknown")
        return [
            TraceSpan(
                trace_id=_hex(span.trace),
                span_id=_hex(span.span),
                parent_id=_hex(span.parent) or None,
                service=service,
                operation=span.name,
                start=span.start / 1e9,
                duration_ms=(span.end - span.start) / 1e6,
                status=_status(span.status.code),
            )
            for scope in batch.scopes
            for span in scope.spans
        ]

    async def check(self) -> Sequence[Check]:
        api = self.api()
        now = self.clock.now().timestamp()
        async with api.session() as session:
            found = await self._search(session, Span(now - 3_600, now))
        if not found:
            return [
                clock_check(api.skew),
                Check("traces", "warning", "none in the last hour", "check url and match"),
            ]
        return [clock_check(api.skew), Check("traces", "ok", f"{len(found)} of the last hour found")]


def _status(code: str | int | None) -> str | None:
    """As OTLP in JSON writes it: by name or by number; unset is no status."""
    if code in (2, "2", "STATUS_CODE_ERROR"):
        return "ERROR"
    return "OK" if code in (1, "1", "STATUS_CODE_OK") else None


def _hex(id_: str) -> str:
    """An id as it is shown everywhere; older versions write its bytes in base64."""
    if len(id_) in (16, 32) and all(c in "0123456789abcdefABCDEF" for c in id_):
        return id_.lower()
    try:
        return b64decode(id_, validate=True).hex()
    except (NoBase64, ValueError):
        raise Unavailable(f"the trace id {id_[:40]!r} is neither hexadecimal nor base64") from None
