"""Runs as OpenTelemetry traces, by the semantic conventions for generative AI (1.41): an extra, `opsleuth[otel]`.

One trace per run: its id and those of its spans follow from the run's id, so that every attempt, in whatever process,
adds to the same trace. What was asked and answered stays here unless `content` is switched on.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from opsleuth import __version__
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.trace.events import trace_id_of_run
from opsleuth.checkpoints.trace.spans import RUN, RunSpan, build_spans
from opsleuth.state.errors import ConfigError, OpsleuthError
from opsleuth.state.run_status import FINISHED_STATUSES, ExitCode

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

# An extra: loaded by whoever exports

AGENT = "opsleuth"
Attributes = dict[str, Any]


class SpanExportError(OpsleuthError):
    """The collector did not take the spans; the text says why and what to do."""

    exit_code = ExitCode.UNREACHABLE


class OtelSettings(BaseModel):
    """Where traces go. `headers` maps names to environment variables that hold the values. `timeout` in seconds.

    `content` sends arguments, answers and messages too; they are redacted like everything that is stored.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    endpoint: str = Field(pattern=r"^https?://\S+$")
    headers: dict[str, str] = Field(default_factory=dict)
    content: bool = False
    timeout: float = Field(5.0, gt=0, le=60)


def export_run_spans(store: Store, run: str, settings: OtelSettings, *, attempt: int | None = None) -> int:
    """Send the spans of a run, or those that ended in one attempt of it; returns how many.

    Raises ConfigError without the extra, SpanExportError if the collector does not take them.
    """
    found = build_spans(store.events.read(run))
    ended = [
        span for span in _finished_spans(found, attempt) if span.id != RUN or span.status in FINISHED_STATUSES
    ]
    sent = [_readable_span(span, run, settings, store) for span in ended]
    if sent:
        _send_spans(sent, settings)
    return len(sent)


def _finished_spans(found: Sequence[RunSpan], attempt: int | None) -> Iterator[RunSpan]:
    """Spans that are over; those of one attempt are what ended after the attempt before it."""
    before = [s.end for s in found if s.kind == "attempt" and s.attempt == (attempt or 0) - 1 and s.end]
    for span in found:
        if span.end is not None and (not before or span.end > before[0]):
            yield span


def _send_spans(sent: "Sequence[ReadableSpan]", settings: OtelSettings) -> None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError:
        raise ConfigError(
            "OpenTelemetry is an extra: install opsleuth[otel], or take the endpoint out"
        ) from None
    # Its own words on a collector that is not there would break into the screen; ours say the same.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
    exporter = OTLPSpanExporter(
        endpoint=f"{settings.endpoint.rstrip('/')}/v1/traces",
        headers={name: _read_header_variable(variable) for name, variable in settings.headers.items()},
        timeout=settings.timeout,
    )
    try:
        if exporter.export(sent) is not SpanExportResult.SUCCESS:
            raise SpanExportError(
                f"the collector at {settings.endpoint} did not take the trace: is it up, and does it speak OTLP over HTTP?"
            )
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


def _read_header_variable(variable: str) -> str:
    value = os.environ.get(variable)
    if value is None:
        raise ConfigError(
            f"the variable {variable} is not set: it should hold a header for the collector of traces"
        )
    return value


def _readable_span(span: RunSpan, run: str, settings: OtelSettings, store: Store) -> "ReadableSpan":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(name: str) -> SpanContext:
        trace = int.from_bytes(bytes.fromhex(trace_id_of_run(run)[2:]))
        return SpanContext(
            trace, span_id(run, name), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
        )

    failed = _span_error(span)
    attributes = _span_attributes(span, run) | (
        _content_attributes(span, run, store) if settings.content else {}
    )
    return ReadableSpan(
        name=_span_name(span),
        context=context(span.id),
        parent=context(span.parent) if span.parent else None,
        resource=Resource({"service.name": AGENT, "service.version": __version__}),
        attributes=attributes | ({"error.type": failed} if failed else {}),
        kind=SpanKind.CLIENT if span.kind == "model" else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR) if failed else Status(StatusCode.UNSET),
        start_time=_epoch_nanoseconds(span.start),
        end_time=_epoch_nanoseconds(span.end or span.start),
        instrumentation_scope=InstrumentationScope(AGENT, __version__),
    )


def span_id(run: str, name: str) -> int:
    """The id of a span: it follows from run and name, so that sending it again creates no duplicate."""
    return int(hashlib.sha256(f"{run} {name}".encode()).hexdigest()[:16], 16) or 1


def _epoch_nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000) * 1_000_000


def _span_error(span: RunSpan) -> str:
    """What went wrong in one word; a run that waits, or was stopped on request, has no error."""
    fine = ("ok", "completed", "waiting", "paused", "stopped", "canceled", "none_matched", "not_recorded")
    return "" if span.status in fine else span.status


def _span_name(span: RunSpan) -> str:
    if span.kind == "run":
        return f"invoke_agent {AGENT}"
    verb = {"model": "chat ", "tool": "execute_tool ", "approval": "approval "}.get(span.kind, "")
    return f"{verb}{span.name}"


def _span_attributes(span: RunSpan, run: str) -> Attributes:
    common = {"gen_ai.conversation.id": run, "opsleuth.turn": span.turn, "opsleuth.attempt": span.attempt}
    own = {"run": _of_run, "model": _of_model, "tool": _of_tool, "approval": _of_approval}.get(span.kind)
    found = common | (own(span) if own else {"opsleuth.step": span.step})
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def _of_run(span: RunSpan) -> Attributes:
    usage: Mapping[str, Any] = span.data.get("usage") or {}
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": AGENT,
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.version": __version__,
        "gen_ai.usage.input_tokens": usage.get("tokens_in"),
        "gen_ai.usage.output_tokens": usage.get("tokens_out"),
        "opsleuth.status": span.status,
        "opsleuth.stop_reason": span.data.get("stop_reason"),
        "opsleuth.verdict": span.data.get("verdict"),
        "opsleuth.cost_usd": str(usage.get("cost", "0")),
    }


def _of_model(span: RunSpan) -> Attributes:
    data = span.data
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": span.name,
        "gen_ai.response.finish_reasons": [data["finish"]] if data.get("finish") else None,
        "gen_ai.usage.input_tokens": data.get("in"),
        "gen_ai.usage.output_tokens": data.get("out"),
        "gen_ai.usage.cache_read.input_tokens": data.get("cached"),
        "opsleuth.role": data.get("role"),
        "opsleuth.cost_usd": data.get("usd"),
    }


def _of_tool(span: RunSpan) -> Attributes:
    data = span.data
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": span.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": data.get("id"),
        "opsleuth.evidence": data.get("evidence"),
        "opsleuth.risk": data.get("risk"),
        "opsleuth.tries": data.get("tries"),
    }


def _of_approval(span: RunSpan) -> Attributes:
    return {"opsleuth.tool": span.data.get("tool"), "opsleuth.decision": span.data.get("decision")}


def _content_attributes(span: RunSpan, run: str, store: Store) -> Attributes:
    """Questions and answers, for operators who want them sent."""
    if span.kind == "tool":
        arguments = json.dumps(span.data.get("args") or {}, ensure_ascii=False)
        return {
            "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": str(span.data.get("headline") or ""),
        }
    if span.kind == "model" and span.data.get("snapshot"):
        kept = store.snapshots.get(run, span.data["snapshot"])
        messages = [_message_parts(store.snapshots.get(run, name)) for name in kept["messages"]]
        reply = store.snapshots.get(run, kept["reply"])["reply"]
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": reply}], "finish_reason": span.data.get("finish") or "stop"}]  # fmt: skip
        return {
            "gen_ai.input.messages": json.dumps(messages, ensure_ascii=False),
            "gen_ai.output.messages": json.dumps(answer, ensure_ascii=False),
        }
    return {}


def _message_parts(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of a chat in the form that the conventions give it: a role and parts."""
    parts: list[dict[str, Any]] = []
    if message.get("content"):
        parts.append({"type": "text", "content": message["content"]})
    for call in message.get("tool_calls") or ():
        asked = call["function"]
        parts.append(
            {
                "type": "tool_call",
                "id": call.get("id"),
                "name": asked["name"],
                "arguments": asked["arguments"],
            }
        )
    return {"role": str(message.get("role", "user")), "parts": parts}
