"""One endpoint, any that speaks OpenAI's chat completions, through langchain-openai.

Retries are ours, by error class: the library's would repeat a 401. Nothing is streamed with tool calls, because
the library mends cut JSON silently then. Importing this file costs half a second; only a run with a model does.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import openai
from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk
from langchain_openai import ChatOpenAI

from opsleuth.models.certificates import certificates
from opsleuth.models.failures import RAISED, Failure, Kind, explain
from opsleuth.models.http import Tap
from opsleuth.models.planner import Malformed, ModelRefused, ModelUnavailable
from opsleuth.models.reply import Asked, Reply, Tokens, ToolCall
from opsleuth.models.settings import ModelSettings

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds between tries; a server that asks for a longer pause than the second is given up for now."""

Transport = Any
"""A transport of the HTTP library that answers instead of a network: for replays."""


class Unsupported(Exception):
    """The server does not know this way of asking (tools, or a form of reply)."""


class ContextTooLong(Exception):
    """The request is longer than the model's window; the text holds the remedy."""


class Endpoint:
    """Asks one model. Close it with `aclose` when the run is over."""

    def __init__(
        self,
        settings: ModelSettings,
        key: str | None,
        *,
        tap: Tap | None = None,
        transport: Transport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._tap = tap or Tap()
        self._sleep, self._jitter = sleep, jitter
        self._http = _http_client(settings, self._tap, transport)
        self._chat = _chat(settings, key, self._http)

    async def ask(self, asked: Asked, seconds: float) -> Reply:
        """The model's reply within `seconds`, after as many tries as can help.

        Raises Malformed (an answer without a choice), ModelUnavailable, ModelRefused, Unsupported, ContextTooLong.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        for tries in range(1, self.settings.tries + 1):
            try:
                return await self._once(asked, until - loop.time())
            except RAISED as error:
                failure = explain(error, self._tap.body, self.settings)
            pause = self._pause(failure, tries)
            if pause is None or pause > until - loop.time():
                break
            await self._sleep(pause)
        raise _raised(failure, tries)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _once(self, asked: Asked, left: float) -> Reply:
        # Beside the library's own parameters: it walks through every schema of `tools` on each request, and its
        # parser of `response_format` would take a cut reply for an error of its own.
        body = _extra(self.settings)
        if asked.tools:
            body["tools"] = asked.tools
        if asked.response_format is not None:
            body["response_format"] = asked.response_format
        async with asyncio.timeout(min(self.settings.timeout, max(left, 0.001))):
            message = await self._said([dict(m) for m in asked.messages], body)
        return _reply(message, self._tap.body)

    async def _said(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> BaseMessage:
        if not self.settings.stream or "tools" in body:
            return await self._chat.ainvoke(messages, extra_body=body)
        whole: BaseMessageChunk | None = None
        async for chunk in self._chat.astream(messages, extra_body=body):
            whole = chunk if whole is None else whole + chunk
        if whole is None:
            raise ValueError("the stream held nothing")
        return whole

    def _pause(self, failure: Failure, tries: int) -> float | None:
        """Seconds before the next try, or None if there is none."""
        if failure.kind is not Kind.HEALS or tries >= self.settings.tries:
            return None
        pause = max(failure.wait, FIRST_PAUSE * 2 ** (tries - 1) * (0.5 + self._jitter()))
        return pause if pause <= LONGEST_PAUSE else None


def _raised(failure: Failure, tries: int) -> Exception:
    """The error that a failure becomes once no further try helps."""
    after = f" (tried {tries} times)" if tries > 1 else ""
    match failure.kind:
        case Kind.MODE:
            return Unsupported(failure.text)
        case Kind.TOO_LONG:
            return ContextTooLong(failure.text)
        case Kind.CONFIG:
            return ModelRefused(failure.text)
        case Kind.MALFORMED:
            return Malformed(failure.text)
    return ModelUnavailable(failure.text + after)


def _chat(settings: ModelSettings, key: str | None, http: Any) -> ChatOpenAI:  # noqa: ANN401 - the HTTP library's own type
    async def token() -> str:
        """The key; a coroutine, so that the library makes no second, synchronous client."""
        return key if key and settings.key_header is None else "none"

    headers = {"Accept-Encoding": "identity", **settings.headers}
    if key and settings.key_header:
        headers[settings.key_header] = key
    longest = (
        {"max_tokens": settings.output_tokens} if settings.max_tokens_field == "max_completion_tokens" else {}
    )
    return ChatOpenAI(
        model=settings.model,
        base_url=settings.base_url,
        api_key=token,
        organization=settings.organization,
        default_headers=headers,
        default_query=dict(settings.query) or None,
        temperature=settings.temperature,
        timeout=settings.timeout,
        max_retries=0,
        stream_usage=True,
        stream_chunk_timeout=settings.timeout,
        disable_streaming="tool_calling",
        use_responses_api=False,
        http_async_client=http,
        output_version="v0",
        **longest,
    )


def _extra(settings: ModelSettings) -> dict[str, Any]:
    return {"max_tokens": settings.output_tokens} if settings.max_tokens_field == "max_tokens" else {}


def _http_client(settings: ModelSettings, tap: Tap, transport: Transport | None) -> Any:  # noqa: ANN401 - the HTTP library's own type
    """A client with the operator's proxy and certificates; without them the environment's."""
    more: dict[str, Any] = {}
    if settings.proxy:
        more["proxy"] = settings.proxy
    if transport is not None:
        more["transport"] = transport
    else:
        more["verify"] = certificates(settings.ca_file)
    return openai.DefaultAsyncHttpxClient(
        event_hooks={"request": [tap.on_request], "response": [tap.on_response]}, **more
    )


def _reply(message: BaseMessage, raw: str) -> Reply:
    if not isinstance(message, AIMessage):
        raise TypeError(f"a reply of the role {message.type}")
    usage = message.usage_metadata
    tokens = None
    if usage is not None:
        details = usage.get("input_token_details") or {}
        tokens = Tokens(usage["input_tokens"], usage["output_tokens"], details.get("cache_read") or 0)
    return Reply(
        text=_text(message.content),
        calls=[
            *(ToolCall(call["name"], call["args"]) for call in message.tool_calls),
            *(
                ToolCall(b["name"] or "?", {}, str(b["error"] or b["args"])[-300:])
                for b in message.invalid_tool_calls
            ),
        ],
        finish=str(message.response_metadata.get("finish_reason") or ""),
        refusal=str(message.additional_kwargs.get("refusal") or ""),
        tokens=tokens,
        raw=raw,
    )


def _text(content: Any) -> str:  # noqa: ANN401 - text, or a list of content blocks
    if isinstance(content, str):
        return content
    parts = [block.get("text", "") if isinstance(block, dict) else str(block) for block in content]
    return "".join(part for part in parts if isinstance(part, str))
