"""Everything that an endpoint is known to do wrong, by name."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from opsleuth.models.server.chat_replies import Entry, Request, chat_completion, completion_chunks


class ModelServerResponse(NamedTuple):
    """What goes over the wire. `cut` is how much of the body is sent before the connection breaks, None all of it."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = {}
    cut: int | None = None
    stalls: bool = False


def _error_response(status: int, text: str, code: str | None = None, **headers: str) -> ModelServerResponse:
    body = {"error": {"message": text, "type": "error", "code": code}}
    return ModelServerResponse(
        status, json.dumps(body).encode(), headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def _error_body(code: int, text: str) -> ModelServerResponse:
    """An error whose status appears in the body alone."""
    body = {"error": {"message": text, "code": code}}
    return ModelServerResponse(200, json.dumps(body).encode())


FIXED_FAULTS: Mapping[str, ModelServerResponse] = {
    "unauthorized": _error_response(401, "Incorrect API key provided", "invalid_api_key"),
    "not_found": _error_response(404, "The model does not exist", "model_not_found"),
    "rate_limit": _error_response(429, "Rate limit reached", "rate_limit_exceeded", retry_after="1"),
    "rate_limit_long": _error_response(429, "Rate limit reached", "rate_limit_exceeded", retry_after="3600"),
    "rate_limit_words": _error_response(429, "Rate limit reached. Please try again in 1.2s."),
    "rate_limit_headers": _error_response(
        429,
        "Too many requests",
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="1s",
        x_ratelimit_remaining_tokens="900",
        x_ratelimit_reset_tokens="6m0s",
    ),
    "loading": _error_response(503, "Loading model"),
    "wants_max_tokens": _error_response(400, "Unrecognized request argument supplied: max_completion_tokens"),
    "no_temperature": _error_response(
        400, "Unsupported value: 'temperature' does not support 0.2 with this model"
    ),
    "error_in_200": _error_body(502, "Provider returned error: upstream is down"),
    "refusal_in_200": _error_body(403, "This model is not enabled for your plan"),
    "quota": _error_response(429, "You exceeded your current quota", "insufficient_quota"),
    "server_error": _error_response(500, "The server had an error while processing your request"),
    "overloaded": _error_response(503, "Overloaded"),
    "too_long": _error_response(
        400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"
    ),
    "no_tools": _error_response(400, "tools param requires --jinja flag"),
    "no_schema": _error_response(400, "response_format json_schema is not supported"),
    "bad_request": _error_response(400, "temperature is out of range"),
    "html": ModelServerResponse(200, b"<!doctype html><html><body>Welcome</body></html>", "text/html"),
    "html_502": ModelServerResponse(502, b"<html><body>Bad gateway</body></html>", "text/html"),
    "reset": ModelServerResponse(200, b"", cut=0),
    "stall": ModelServerResponse(200, b"", stalls=True),
    "empty_choices": ModelServerResponse(
        200, b'{"id":"1","object":"chat.completion","created":0,"model":"m","choices":[]}'
    ),
    "null_choices": ModelServerResponse(
        200, b'{"id":"1","object":"chat.completion","created":0,"model":"m","choices":null}'
    ),
    "not_json": ModelServerResponse(200, b"OK"),
}
"""Faults that need no reply to spoil."""

USAGE_FAULTS: Mapping[str, Mapping[str, Any]] = {
    "zero_usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "negative_usage": {"prompt_tokens": -7, "completion_tokens": 3},
    "fractional_usage": {"prompt_tokens": 12.5, "completion_tokens": 3},
    "huge_usage": {"prompt_tokens": 10**12, "completion_tokens": 10**12},
    "text_usage": {"prompt_tokens": "many", "completion_tokens": None},
}
"""Counts that cannot be true."""

FORM_FAULTS = (
    "object_arguments",
    "twice_encoded",
    "lists_as_text",
    "split_choices",
    "function_call",
    "no_end",
)
"""Forms of a whole reply that say the same in another way."""

REPLY_FAULTS = (
    *USAGE_FAULTS,
    *FORM_FAULTS,
    "truncated_json",
    "cut_stream",
    "length",
    "missing_usage",
    "wrong_tool",
    "empty",
    "broken_arguments",
    "overlong",
)
"""Faults that a whole reply is turned into."""

FAULT_NAMES = (*FIXED_FAULTS, *REPLY_FAULTS)


def render_response(entry: Entry, request: Request) -> ModelServerResponse:
    """An entry as it goes over the wire. Raises KeyError for a fault that there is not."""
    fault = entry.get("fault")
    if fault is not None and fault in FIXED_FAULTS:
        return FIXED_FAULTS[fault]
    if fault is not None and fault not in REPLY_FAULTS:
        raise KeyError(f"there is no fault {fault!r}: the faults are {', '.join(FAULT_NAMES)}")
    spoiled = _apply_fault(fault, entry)
    if request.get("stream"):
        return _stream_response(fault, spoiled, request)
    body = json.dumps(_change_form(fault, chat_completion(spoiled, request))).encode()
    if fault in ("truncated_json", "cut_stream"):
        return ModelServerResponse(200, body, cut=len(body) * 2 // 3)
    return ModelServerResponse(200, body)


def _change_form(fault: str | None, reply: dict[str, Any]) -> dict[str, Any]:
    """The same reply as servers with other habits send it."""
    choice = reply["choices"][0]
    message = choice["message"]
    calls = message.get("tool_calls", [])
    functions = [call["function"] for call in calls]
    match fault:
        case "object_arguments":
            for function in functions:
                function["arguments"] = json.loads(function["arguments"])
        case "twice_encoded":
            for function in functions:
                function["arguments"] = json.dumps(function["arguments"])
        case "lists_as_text":
            for function in functions:
                function["arguments"] = json.dumps(_encode_containers(json.loads(function["arguments"])))
        case "split_choices" if calls:
            text = choice | {"message": {"role": "assistant", "content": message["content"]}}
            called = choice | {"index": 1, "message": message | {"content": None}}
            reply["choices"] = [text | {"finish_reason": "stop"}, called]
        case "function_call" if len(calls) == 1:
            choice["message"] = {"role": "assistant", "content": None, "function_call": functions[0]}
    return reply


def _encode_containers(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: json.dumps(value) if isinstance(value, list | dict) else value
        for key, value in arguments.items()
    }


def _apply_fault(fault: str | None, entry: Entry) -> dict[str, Any]:
    spoiled = {key: value for key, value in entry.items() if key != "fault"}
    if fault is not None and fault in USAGE_FAULTS:
        spoiled["usage"] = USAGE_FAULTS[fault]
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


def _stream_response(fault: str | None, entry: Entry, request: Request) -> ModelServerResponse:
    parts = [f"data: {json.dumps(chunk)}\n\n" for chunk in completion_chunks(entry, request)]
    if fault == "cut_stream":
        parts = parts[: max(len(parts) - 2, 1)]  # the connection closes in order, without an end mark
    else:
        parts.append("data: [DONE]\n\n")
    return ModelServerResponse(200, "".join(parts).encode(), "text/event-stream")
