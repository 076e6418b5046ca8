"""Replies in the form of chat completions: whole, or as server-sent events.

An entry of a script is one of

    {"decision": {…}}     in whatever form the request asks for: tool calls, or JSON text
    {"text": "…"}         these words
    {"calls": [{"name": …, "arguments": {…} or "raw text"}], "text": "…"}

and may carry `finish`, `usage` (null: none is told) and `fault` (see `faults.py`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
Request = Mapping[str, Any]


def assistant_message(entry: Entry, request: Request) -> dict[str, Any]:
    """The assistant's message of an entry."""
    if "decision" in entry:
        entry = (
            _decision_as_calls(entry["decision"])
            if request.get("tools")
            else _decision_as_text(entry["decision"])
        )
    calls = [_tool_call(i, call) for i, call in enumerate(entry.get("calls", ()))]
    said: dict[str, Any] = {"role": "assistant", "content": entry.get("text", "") or None}
    return said | ({"tool_calls": calls} if calls else {"content": said["content"] or ""})


def chat_completion(entry: Entry, request: Request) -> dict[str, Any]:
    """The whole reply."""
    said = assistant_message(entry, request)
    choice = {"index": 0, "message": said, "finish_reason": _finish_reason(entry, said)}
    reply = _reply_header(request, "chat.completion") | {"choices": [choice]}
    if (usage := _token_usage(entry, request, said)) is not None:
        reply["usage"] = usage
    return reply


def completion_chunks(entry: Entry, request: Request) -> Iterator[dict[str, Any]]:
    """The same reply in pieces, as a streaming server sends it."""
    said = assistant_message(entry, request)
    about = _reply_header(request, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return about | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    text = said["content"] or ""
    for at in range(0, len(text), 40):
        yield chunk({"content": text[at : at + 40]})
    for i, call in enumerate(said.get("tool_calls", ())):
        yield chunk({"tool_calls": [{"index": i, **call}]})
    yield chunk({}, _finish_reason(entry, said))
    if (usage := _token_usage(entry, request, said)) is not None:
        yield about | {"choices": [], "usage": usage}


def _decision_as_calls(decision: Mapping[str, Any]) -> Entry:
    """A decision as the tool calls that make it up."""
    calls: list[dict[str, Any]] = []
    if decision.get("plan"):
        new = [step["text"] for step in decision["plan"] if "id" not in step]
        done = [step["id"] for step in decision["plan"] if step.get("status") == "done"]
        calls.append({"name": "plan_update", "arguments": {"add": new, "done": done}})
    if decision.get("hypotheses"):
        calls.append({"name": "hypothesis_update", "arguments": {"changes": decision["hypotheses"]}})
    for call in decision.get("calls", ()):
        carried = {key: call[key] for key in ("why", "tests", "repeat_of") if key in call}
        calls.append({"name": call["tool"], "arguments": {**call.get("arguments", {}), **carried}})
    if decision.get("conclusion"):
        calls.append({"name": "conclude", "arguments": decision["conclusion"]})
    return {"text": decision.get("reason", ""), "calls": calls}


def _decision_as_text(decision: Mapping[str, Any]) -> Entry:
    return {"text": json.dumps(decision, ensure_ascii=False)}


def _tool_call(place: int, call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": f"call_{place}", "type": "function", "function": {"name": call["name"], "arguments": text}}


def _finish_reason(entry: Entry, said: Mapping[str, Any]) -> str | None:
    if "finish" in entry:
        finish: str | None = entry["finish"]
        return finish
    return "tool_calls" if said.get("tool_calls") else "stop"


def _token_usage(entry: Entry, request: Request, said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if "usage" in entry:
        told: Mapping[str, Any] | None = entry["usage"]
        return told
    sent = len(json.dumps([request.get("messages"), request.get("tools")])) // 4
    received = max(len(json.dumps(said)) // 4, 1)
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}


def _reply_header(request: Request, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": request.get("model", "scripted")}


def build_scripted_model(entries: Sequence[Entry]) -> "ScriptedModel":
    """Answers with one entry after the other; the last repeats."""
    return ScriptedModel(entries)


class ScriptedModel:
    """A script that is read once from its beginning, whoever asks."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        if not entries:
            raise ValueError("a script needs at least one entry")
        self._entries, self._next = tuple(entries), 0

    def __call__(self, _: Request) -> Entry:
        entry = self._entries[min(self._next, len(self._entries) - 1)]
        self._next += 1
        return entry
