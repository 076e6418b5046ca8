"""Jaeger: spans of the newest traces of each service, and who calls whom."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import Field

from opsleuth.analysis.records import ServiceDependency, TimeRange, TraceSpan
from opsleuth.configuration.source_settings import JaegerSettings
from opsleuth.state.json_types import JSON
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply, HttpSource, Part, check_clock_skew
from opsleuth.tools.sources.live_source import FetchedRows, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError, ToolError, TransientError, UnavailableError

_STATUS_TAGS = ("otel.status_code", "http.status_code", "http.response.status_code", "rpc.grpc.status_code")


class _JaegerNames(BackendReply):
    data: list[str] | None = None


class _JaegerTag(BackendReply):
    key: str
    value: Any = None


class _JaegerReference(BackendReply):
    kind: str = Field(alias="refType")
    span: str = Field(alias="spanID")


class _JaegerSpan(BackendReply):
    trace: str = Field(alias="traceID")
    span: str = Field(alias="spanID")
    operation: str = Field(alias="operationName")
    references: list[_JaegerReference] | None = None
    start: int = Field(alias="startTime")
    duration: int
    tags: list[_JaegerTag] | None = None
    process: str = Field(default="", alias="processID")


class _JaegerProcess(BackendReply):
    service: str = Field(alias="serviceName")


class _JaegerTrace(BackendReply):
    spans: list[_JaegerSpan]
    processes: dict[str, _JaegerProcess]


class _JaegerTraces(BackendReply):
    data: list[_JaegerTrace] | None = None


class _JaegerCall(BackendReply):
    parent: str
    child: str


class _JaegerCalls(BackendReply):
    data: list[_JaegerCall] | None = None


class JaegerSource(HttpSource[JaegerSettings]):
    """The source of kind `jaeger`."""

    product = "Jaeger"
    capabilities: frozenset[Capability] = frozenset({"traces", "topology"})

    def __init__(self, name: str, settings: JaegerSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.sampling = f"the newest {settings.max_traces} traces of each service"

    async def discover(self) -> None:
        async with self.api().session() as session:
            for name in await self._names(session):
                self.named(name)

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        if capability == "topology":
            return FetchedRows({"topology": await self._calls(session, window)})
        names = await self._names(session)
        before = TimeRange(window.start - self.settings.before, window.start)
        wanted = [(name, span) for name in names for span in (before, window)]
        answers = await gather_or_cancel(self._traces(session, name, span) for name, span in wanted)
        missed = dict.fromkeys(str(answer) for answer in answers if isinstance(answer, ToolError))
        if missed and len([a for a in answers if isinstance(a, ToolError)]) == len(answers):
            raise next(a for a in answers if isinstance(a, ToolError))
        traces = chain.from_iterable(a for a in answers if not isinstance(a, ToolError))
        spans = {(s.trace_id, s.span_id): s for trace in traces for s in self._spans(trace)}
        return FetchedRows({"spans": list(spans.values())}, missed=tuple(missed))

    async def _names(self, session: HttpSession) -> Sequence[str]:
        if self.settings.only:
            return self.settings.only
        return sorted(self._read(_JaegerNames, (await session.get("/api/services")).document).data or [])

    async def _traces(
        self, session: HttpSession, service: str, span: TimeRange
    ) -> Sequence[_JaegerTrace] | ToolError:
        try:
            answer = await session.get(
                "/api/traces",
                service=service,
                start=f"{span.start * 1e6:.0f}",
                end=f"{span.end * 1e6:.0f}",
                limit=str(self.settings.max_traces),
            )
            return self._read(_JaegerTraces, answer.document, session).data or []
        except (NotPermittedError, TransientError, UnavailableError) as error:
            return error

    async def _calls(self, session: HttpSession, window: TimeRange) -> Sequence[ServiceDependency]:
        start = window.start - self.settings.before
        answer = await session.get(
            "/api/dependencies",
            endTs=f"{window.end * 1000:.0f}",
            lookback=f"{(window.end - start) * 1000:.0f}",
        )
        found = self._read(_JaegerCalls, answer.document).data or []
        return [ServiceDependency(self.named(call.parent), self.named(call.child)) for call in found]

    def _read(self, model: type[Part], document: JSON, session: HttpSession | None = None) -> Part:
        """The answer in its form; what the server says went wrong, in its own words, also beside a part of it."""
        errors = document.get("errors") if isinstance(document, Mapping) else None
        if errors and not document.get("data"):
            raise UnavailableError(f"{self.name}: {str(errors)[:300]}")
        if errors and session:
            session.api.partial[f"a part of the traces is missing: {str(errors)[:300]}"] = None
        if not isinstance(document, Mapping) or "data" not in document:
            raise UnavailableError(f"{self.name}: not a valid {self.product} response")
        return self.parsed(model, document)

    def _spans(self, trace: _JaegerTrace) -> Sequence[TraceSpan]:
        return [
            TraceSpan(
                trace_id=span.trace,
                span_id=span.span,
                parent_id=_parent_span_id(span),
                service=self.named(
                    trace.processes[span.process].service if span.process in trace.processes else "unknown"
                ),
                operation=span.operation,
                start=span.start / 1e6,
                duration_ms=span.duration / 1e3,
                status=_status_from_tags(span.tags or ()),
            )
            for span in trace.spans
        ]

    async def check(self) -> Sequence[SourceCheck]:
        api = self.api()
        async with api.session() as session:
            names = await self._names(session)
        if not names:
            return [
                check_clock_skew(api.skew),
                SourceCheck("services", "warning", "none has sent spans", "check url, or the collector"),
            ]
        return [
            check_clock_skew(api.skew),
            SourceCheck("services", "ok", f"{len(names)}: {', '.join(names[:8])}"),
        ]


def _parent_span_id(span: _JaegerSpan) -> str | None:
    references = span.references or ()
    child_of = next((r.span for r in references if r.kind == "CHILD_OF"), None)
    return child_of or next((r.span for r in references), None)


def _status_from_tags(tags: Sequence[_JaegerTag]) -> str | None:
    """ERROR where the span says that it failed, else the first status that it carries."""
    values = {tag.key: tag.value for tag in tags}
    if str(values.get("error", "")).lower() == "true":
        return "ERROR"
    return next((str(values[tag]) for tag in _STATUS_TAGS if values.get(tag) not in (None, "")), None)
