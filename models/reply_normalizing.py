"""A chat completion in the one form that the client library reads, whatever form a server gives it.

Only the form changes, never what is said: arguments as an object or encoded twice become JSON text, a call in another
choice than its text is put beside it, a missing end mark of a whole body is filled in, counts that are not counts go.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_COUNTS = ("prompt_tokens", "completion_tokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")
_LENGTH_MARKS = frozenset({"max_tokens", "max_output_tokens"})
"""How others than OpenAI name the end of a reply that was cut at its longest length."""


def normalize_reply(body: bytes) -> bytes:
    """The body in the usual form; unchanged where it holds no choices."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(document, dict) or not isinstance(document.get("choices"), list):
        return body
    choices = [choice for choice in document["choices"] if isinstance(choice, dict)]
    if choices and (error := choices[0].get("error")) and not choices[0].get("message"):
        return json.dumps({"error": error}).encode()
    document["choices"] = [_merge_choices(choices)] if choices else []
    if "usage" in document:
        document["usage"] = normalize_usage(document["usage"])
    return json.dumps(document, ensure_ascii=False).encode()


def normalize_event(line: bytes) -> bytes:
    """A line of a stream with its counts in the usual form; every other line unchanged."""
    if not line.startswith(b"data:") or b'"usage"' not in line:
        return line
    try:
        chunk = json.loads(line[5:])
    except (ValueError, RecursionError):
        return line
    if not isinstance(chunk, dict) or "usage" not in chunk:
        return line
    chunk["usage"] = normalize_usage(chunk["usage"])
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n"


def normalize_usage(usage: object) -> dict[str, Any] | None:
    """Token counts, None where one of them is not a whole number of 0 or more."""
    if not isinstance(usage, Mapping):
        return None
    counts = {name: _read_count(usage.get(name)) for name in _COUNTS}
    if None in counts.values():
        return None
    details = {name: _keep_counts(usage[name]) for name in _DETAILS if isinstance(usage.get(name), Mapping)}
    return {**counts, "total_tokens": sum(filter(None, counts.values())), **details}


def _keep_counts(details: Mapping[str, Any]) -> dict[str, int]:
    read = {name: _read_count(value) for name, value in details.items()}
    return {name: count for name, count in read.items() if count is not None}


def _read_count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 and value < 2**53 else None


def _merge_choices(choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One choice: the first, with the calls of the first choice that has some."""
    messages = [_normalize_message(choice.get("message")) for choice in choices]
    calling = next((i for i, message in enumerate(messages) if message.get("tool_calls")), 0)
    talking = next((i for i, message in enumerate(messages) if message.get("content")), 0)
    message = messages[calling]
    if not message.get("content"):
        message = message | {"content": messages[talking].get("content")}
    finish = choices[calling].get("finish_reason")
    return choices[calling] | {"index": 0, "message": message, "finish_reason": _end_mark(finish, message)}


def _end_mark(finish: object, message: Mapping[str, Any]) -> object:
    """The server's end mark; a whole body without one has ended with what it holds."""
    if not finish:
        return "tool_calls" if message.get("tool_calls") else "stop"
    return "length" if str(finish).lower() in _LENGTH_MARKS else finish


def _normalize_message(message: object) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        return {"role": "assistant", "content": None}
    calls = message.get("tool_calls")
    if not calls and isinstance(legacy := message.get("function_call"), Mapping):
        calls = [{"function": legacy}]
    if isinstance(calls, Mapping):
        calls = [calls]
    if not isinstance(calls, list):
        return dict(message)
    kept = {key: value for key, value in message.items() if key != "function_call"}
    return kept | {
        "tool_calls": [
            _normalize_call(i, call)
            for i, call in enumerate(calls)
            if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)
        ]
    }


def _normalize_call(place: int, call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    function["arguments"] = _arguments_text(function.get("arguments"))
    return {**call, "id": call.get("id") or f"call_{place}", "type": "function", "function": function}


def _arguments_text(arguments: object) -> str:
    """The arguments as JSON text, encoded once."""
    if arguments in (None, ""):
        return "{}"
    if not isinstance(arguments, str):
        return json.dumps(arguments, ensure_ascii=False)
    try:
        inner = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return inner if isinstance(inner, str) and inner.lstrip().startswith("{") else arguments
