"""Everything that an endpoint is known to do wrong, by name."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from opsleuth.models.server.replies import Entry, Request, chunks, completion


class Answer(NamedTuple):
    """What goes over the wire. `cut` is how much of the body is sent before the connection breaks, None all of it."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = {}
    cut: int | None = None
    stalls: bool = False


def _error(status: int, text: str, code: str | None = None, **headers: str) -> Answer:
    body = {"error": {"message": text, "type": "error", "code": code}}
    return Answer(
        status, json.dumps(body).encode(), headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


ERRORS: Mapping[str, Answer] = {
    "unauthorized": _error(401, "Incorrect API key provided", "invalid_api_key"),
    "not_found": _error(404, "The model does not exist", "model_not_found"),
    "rate_limit": _error(429, "Rate limit reached", "rate_limit_exceeded", retry_after="1"),
    "rate_limit_long": _error(429, "Rate limit reached", "rate_limit_exceeded", retry_after="3600"),
    "quota": _error(429, "You exceeded your current quota", "insufficient_quota"),
    "server_error": _error(500, "The server had an error while processing your request"),
    "overloaded": _error(503, "Overloaded"),
    "too_long": _error(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
    "no_tools": _error(400, "tools param requires --jinja flag"),
    "no_schema": _error(400, "response_format json_schema is not supported"),
    "bad_request": _error(400, "temperature is out of range"),
    "html": Answer(200, b"<!doctype html><html><body>Welcome</body></html>", "text/html"),
    "html_502": Answer(502, b"<html><body>Bad gateway</body></html>", "text/html"),
    "reset": Answer(200, b"", cut=0),
    "stall": Answer(200, b"", stalls=True),
    "empty_choices": Answer(
        200, b'{"id":"1","object":"chat.completion","created":0,"model":"m","choices":[]}'
    ),
    "null_choices": Answer(
        200, b'{"id":"1","object":"chat.completion","created":0,"model":"m","choices":null}'
    ),
    "not_json": Answer(200, b"OK"),
}
"""Faults that need no reply to spoil."""

SPOILED = (
    "truncated_json",
    "cut_stream",
    "no_end",
    "length",
    "missing_usage",
    "wrong_tool",
    "empty",
    "broken_arguments",
    "overlong",
)
"""Faults that a whole reply is turned into."""

NAMES = (*ERRORS, *SPOILED)


def answer(entry: Entry, request: Request) -> Answer:
    """An entry as it goes over the wire. Raises KeyError for a fault that there is not."""
    fault = entry.get("fault")
    if fault is not None and fault in ERRORS:
        return ERRORS[fault]
    if fault is not None and fault not in SPOILED:
        raise KeyError(f"there is no fault {fault!r}: the faults are {', '.join(NAMES)}")
    spoiled = _spoiled(fault, entry)
    if request.get("stream"):
        return _streamed(fault, spoiled, request)
    body = json.dumps(completion(spoiled, request)).encode()
    if fault in ("truncated_json", "cut_stream"):
        return Answer(200, body, cut=len(body) * 2 // 3)
    return Answer(200, body)


def _spoiled(fault: str | None, entry: Entry) -> dict[str, Any]:
    spoiled = {key: value for key, value in entry.items() if key != "fault"}
    match fault:
        case "no_end":
            spoiled["finish"] = None
        case "length":
            spoiled["finish"] = "length"
        case "missing_usage":
            spoiled["usage"] = None
        case "empty":
            spoiled = {"text": "", "finish": "stop"}
        case "wrong_tool":
            spoiled = {"calls": [{"name": "metrics query", "arguments": {"orderId": "7", "why": "to see"}}]}
        case "broken_arguments":
            spoiled = {"calls": [{"name": "metrics_anomalies", "arguments": '{"service": "che'}]}
        case "overlong":
            spoiled = {"text": "na " * 3_000_000, "finish": "stop"}
    return spoiled


def _streamed(fault: str | None, entry: Entry, request: Request) -> Answer:
    parts = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(entry, request)]
    if fault == "cut_stream":
        parts = parts[: max(len(parts) - 2, 1)]  # the connection closes in order, without an end mark
    else:
        parts.append("data: [DONE]\n\n")
    return Answer(200, "".join(parts).encode(), "text/event-stream")
