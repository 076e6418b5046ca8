"""Traces in files: Jaeger's JSON, OTLP as JSON (one document or one to a line, Tempo's form too), Zipkin."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opsleuth.analysis.records import TraceSpan
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.compressed_files import open_decompressed
from opsleuth.tools.sources.log_formats.encodings import decode_text
from opsleuth.tools.sources.log_formats.whole_lines import read_attributes

LARGEST_FILE = 256_000_000
"""Bytes of a file of traces that are read."""

_HEX = frozenset("0123456789abcdefABCDEF")
_FAILED = (2, "2", "STATUS_CODE_ERROR")
_FINE = (1, "1", "STATUS_CODE_OK")
_STATUS_TAGS = (
    "http.status_code",
    "http.response.status_code",
    "rpc.grpc.status_code",
    "grpc.status_code",
    "otel.status_code",
    "status.code",
)


def read_trace_document(document: JSON) -> list[TraceSpan] | None:
    """The spans of one document; None if it holds no traces. A span without a start or a duration is left out."""
    if isinstance(document, list):
        return _read_list(document)
    if not isinstance(document, Mapping):
        return None
    for name in ("resourceSpans", "batches"):
        if isinstance(document.get(name), list):
            return list(_read_otlp_batches(document[name]))
    if isinstance(inner := document.get("trace"), Mapping):
        return read_trace_document(inner)
    data = document.get("data")
    traces = [document] if isinstance(document.get("spans"), list) and "processes" in document else data
    if isinstance(traces, list) and any(isinstance(one, Mapping) and "spans" in one for one in traces):
        return [span for one in traces if isinstance(one, Mapping) for span in _read_jaeger_trace(one)]
    return None


def _read_list(document: list[Any]) -> list[TraceSpan] | None:
    """Zipkin: spans, or lists of them; or several documents of the other kinds."""
    flat = [
        span
        for one in document
        for span in (one if isinstance(one, list) else [one])
        if isinstance(span, Mapping)
    ]
    if flat and all("traceId" in span and "id" in span for span in flat[:20]):
        return list(_read_zipkin_spans(flat))
    found = [spans for one in document if (spans := read_trace_document(one)) is not None]
    return [span for spans in found for span in spans] if found else None


def _read_jaeger_trace(trace: Mapping[str, Any]) -> Iterator[TraceSpan]:
    processes = _as_mapping(trace.get("processes"))
    for span in _as_objects(trace.get("spans")):
        start, duration = _parse_number(span.get("startTime")), _parse_number(span.get("duration"))
        if start is None or duration is None:
            continue
        process = _as_mapping(span.get("process")) or _as_mapping(processes.get(str(span.get("processID"))))
        tags = {str(tag.get("key")): tag.get("value") for tag in _as_objects(span.get("tags"))}
        references = _as_objects(span.get("references"))
        parent = next(
            (r for r in references if r.get("refType") == "CHILD_OF"), references[0] if references else {}
        )
        yield TraceSpan(
            trace_id=str(span.get("traceID", "")),
            span_id=str(span.get("spanID", "")),
            parent_id=_read_text(parent.get("spanID")) or _read_text(span.get("parentSpanID")),
            service=str(process.get("serviceName") or "unknown"),
            operation=str(span.get("operationName", "")),
            start=start / 1e6,
            duration_ms=duration / 1e3,
            status=_find_status(tags),
        )


def _read_otlp_batches(batches: Iterable[Any]) -> Iterator[TraceSpan]:
    for batch in batches:
        about = read_attributes(_as_mapping(_as_mapping(batch).get("resource")).get("attributes"))
        scopes = _as_mapping(batch).get("scopeSpans") or _as_mapping(batch).get("instrumentationLibrarySpans")
        for span in (span for scope in _as_objects(scopes) for span in _as_objects(scope.get("spans"))):
            start, end = (
                _parse_number(span.get("startTimeUnixNano")),
                _parse_number(span.get("endTimeUnixNano")),
            )
            if start is None or end is None:
                continue
            code = _as_mapping(span.get("status")).get("code")
            yield TraceSpan(
                trace_id=_normalize_id(span.get("traceId")),
                span_id=_normalize_id(span.get("spanId")),
                parent_id=_normalize_id(span.get("parentSpanId")) or None,
                service=str(about.get("service.name") or "unknown"),
                operation=str(span.get("name", "")),
                start=start / 1e9,
                duration_ms=(end - start) / 1e6,
                status="ERROR"
                if code in _FAILED
                else "OK"
                if code in _FINE
                else _find_status(read_attributes(span.get("attributes"))),
            )


def _read_zipkin_spans(spans: Iterable[Mapping[str, Any]]) -> Iterator[TraceSpan]:
    for span in spans:
        start, duration = _parse_number(span.get("timestamp")), _parse_number(span.get("duration"))
        if start is None or duration is None:
            continue
        tags = _as_mapping(span.get("tags"))
        shared = (
            span.get("shared") is True and span.get("kind") == "SERVER"
        )  # both sides of a call under one id
        yield TraceSpan(
            trace_id=str(span.get("traceId", "")),
            span_id=f"{span.get('id')}-server" if shared else str(span.get("id", "")),
            parent_id=_read_text(span.get("id")) if shared else _read_text(span.get("parentId")),
            service=str(_as_mapping(span.get("localEndpoint")).get("serviceName") or "unknown"),
            operation=str(span.get("name", "")),
            start=start / 1e6,
            duration_ms=duration / 1e3,
            status="ERROR"
            if "error" in tags and str(tags["error"]).lower() != "false"
            else _find_status(tags),
        )


def _find_status(tags: Mapping[str, Any]) -> str | None:
    """ERROR where the span says that it failed, else the first status that it carries."""
    if str(tags.get("error", "")).lower() == "true":
        return "ERROR"
    return next((str(tags[name]) for name in _STATUS_TAGS if tags.get(name) not in (None, "")), None)


def _normalize_id(value: JSON) -> str:
    """An id as it is shown everywhere; some exporters write its bytes in base64."""
    text = str(value or "")
    if not text or (len(text) in (16, 32) and _HEX.issuperset(text)):
        return text.lower()
    try:
        return b64decode(text, validate=True).hex()
    except (Base64Error, ValueError):
        return text


def _parse_number(value: JSON) -> float | None:
    try:
        return float(value) if value is not None and not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _read_text(value: JSON) -> str | None:
    return str(value) if value else None


def _as_mapping(value: JSON) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_objects(value: JSON) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def read_trace_file(path: Path) -> list[TraceSpan] | None:
    """The spans of a file, one document or one to a line; None if it holds no traces. Raises OSError, Damaged."""
    with open_decompressed(path) as file:
        text = decode_text(file.read(LARGEST_FILE))
    try:
        return read_trace_document(json.loads(text))
    except (ValueError, RecursionError):
        found = [spans for line in text.splitlines() if (spans := _read_line(line)) is not None]
        return [span for spans in found for span in spans] if found else None


def _read_line(line: str) -> list[TraceSpan] | None:
    try:
        return read_trace_document(json.loads(line))
    except (ValueError, RecursionError):
        return None
