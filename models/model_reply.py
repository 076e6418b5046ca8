"""What came back from a model, before anybody decides what it means."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ModelRequest(NamedTuple):
    """One request: messages in the wire's own form, the tools offered, and the form that the reply is held to."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    response_format: Mapping[str, Any] | None = None


class ModelToolCall(NamedTuple):
    """One tool call; `broken` is its text where that is not a JSON object, else None."""

    name: str
    arguments: Mapping[str, Any]
    broken: str | None = None


class TokenUsage(NamedTuple):
    """What the server counted; `cached` is the part of `sent` that it had kept."""

    sent: int
    received: int
    cached: int = 0


class ModelReply(NamedTuple):
    """One whole reply. `finish` is the server's word why it ended, empty if it gave none; `raw` the body as it came."""

    text: str
    calls: Sequence[ModelToolCall] = ()
    finish: str = ""
    refusal: str = ""
    tokens: TokenUsage | None = None
    raw: str = ""
