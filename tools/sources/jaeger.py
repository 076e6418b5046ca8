"""Jaeger: spans of the newest traces of each service, and who calls whom."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import Field

from opsleuth.analysis.records import Dependency, Span, TraceSpan
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import HttpSource, Reply, clock_check
from opsleuth.tools.sources.live import Check, Fetched, Surroundings
from opsleuth.tools.sources.settings import Jaeger
from opsleuth.tools.spec import ToolError, Unavailable
from opsleuth.tools.together import together

_STATUS_TAGS = ("otel.status_code", "http.status_code", "http.response.status_code", "rpc.grpc.status_code")


class _Names(Reply):
    data: list[str] | None = None


class _Tag(Reply):
    key: str
    value: Any = None


class _Reference(Reply):
    kind: str = Field(alias="refType")
    span: str = Field(alias="spanID")


class _Span(Reply):
    trace: str = Field(alias="traceID")
    span: str = Field(alias="spanID")
    operation: str = Field(alias="operationName")
    references: list[_Reference] | None = None
    start: int = Field(alias="startTime")
    duration: int
    tags: list[_Tag] | None = None
    process: str = Field(default="", alias="processID")


class _Process(Reply):
    service: str = Field(alias="serviceName")


class _Trace(Reply):
    spans: list[_Span]
    processes: dict[str, _Process]


class _Traces(Reply):
    data: list[_Trace] | None = None


class _Call(Reply):
    parent: str
    child: str


class _Calls(Reply):
    data: list[_Call] | None = None


class JaegerSource(HttpSource[Jaeger]):
    """The source of kind `jaeger`."""

    product = "Jaeger"
    capabilities: frozenset[Capability] = frozenset({"traces", "topology"})

    def __init__(self, name: str, settings: Jaeger, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.sampling = f"the newest {settings.max_traces} traces of each service"

    async def discover(self) -> None:
        async with self.api().session() as session:
            for name in await self._names(session):
                self.named(name)

    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        if capability == "topology":
            return Fetched({"topology": await self._calls(session, window)})
        names = await self._names(session)
        before = Span(window.start - self.settings.before, window.start)
        wanted = [(name, span) for name in names for span in (before, window)]
        answers = await together(self._traces(session, name, span) for name, span in wanted)
        missed = dict.fromkeys(str(answer) for answer in answers if isinstance(answer, ToolError))
        if missed and len([a for a in answers if isinstance(a, ToolError)]) == len(answers):
            raise next(a for a in answers if isinstance(a, ToolError))
        traces = chain.from_iterable(a for a in answers if not isinstance(a, ToolError))
        spans = {(s.trace_id, s.span_id): s for trace in traces for s in self._spans(trace)}
        return Fetched({"spans": list(spans.values())}, missed=tuple(missed))

    async def _names(self, session: Session) -> Sequence[str]:
        if self.settings.only:
            return self.settings.only
        return sorted(self._read(_Names, (await session.get("/api/services")).document).data or [])

    async def _traces(self, session: Session, service: str, span: Span) -> Sequence[_Trace] | ToolError:
        try:
            answer = await session.get(
                "/api/traces",
                service=service,
                start=f"{span.start * 1e6:.0f}",
                end=f"{span.end * 1e6:.0f}",
                limit=str(self.settings.max_traces),
            )
        except Unavailable as error:
            return error
        return self._read(_Traces, answer.document).data or []

    async def _calls(self, session: Session, window: Span) -> Sequence[Dependency]:
        start = window.start - self.settings.before
        answer = await session.get(
            "/api/dependencies",
            endTs=f"{window.end * 1000:.0f}",
            lookback=f"{(window.end - start) * 1000:.0f}",
        )
        found = self._read(_Calls, answer.document).data or []
        return [Dependency(self.named(call.parent), self.named(call.child)) for call in found]

    def _read(self, model: type[Any], document: Any) -> Any:  # noqa: ANN401 - a model of the answer
        """The answer in its form; what the server says went wrong, in its own words."""
        errors = document.get("errors") if isinstance(document, Mapping) else None
        if errors and not document.get("data"):
            raise Unavailable(f"{self.name}: {str(errors)[:300]}")
        if not isinstance(document, Mapping) or "data" not in document:
            raise Unavailable(f"{self.name}: the answer is none of {self.product}")
        return self.parsed(model, document)

    def _spans(self, trace: _Trace) -> Sequence[TraceSpan]:
        return [
            TraceSpan(
                trace_id=span.trace,
                span_id=span.span,
                parent_id=_parent(span),
                service=self.named(
                    trace.processes[span.process].service if span.process in trace.processes else "unknown"
                ),
                operation=span.operation,
                start=span.start / 1e6,
                duration_ms=span.duration / 1e3,
                status=_status(span.tags or ()),
            )
            for span in trace.spans
        ]

    async def check(self) -> Sequence[Check]:
        api = self.api()
        async with api.session() as session:
            names = await self._names(session)
        if not names:
            return [
                clock_check(api.skew),
                Check("services", "warning", "none has sent spans", "check url, or the collector"),
            ]
        return [clock_check(api.skew), Check("services", "ok", f"{len(names)}: {', '.join(names[:8])}")]


def _parent(span: _Span) -> str | None:
    references = span.references or ()
    child_of = next((r.span for r in references if r.kind == "CHILD_OF"), None)
    return child_of or next((r.span for r in references), None)


def _status(tags: Sequence[_Tag]) -> str | None:
    """ERROR where the span says that it failed, else the first status that it carries."""
    values = {tag.key: tag.value for tag in tags}
    if str(values.get("error", "")).lower() == "true":
        return "ERROR"
    return next((str(values[tag]) for tag in _STATUS_TAGS if values.get(tag) not in (None, "")), None)
