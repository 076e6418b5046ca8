"""One endpoint, any that speaks OpenAI's chat completions, through langchain-openai.

Retries are ours, by error class: the library's would repeat a 401. Nothing is streamed with tool calls, because
the library repairs cut JSON silently then. Importing this file costs half a second; only a run with a model does.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import openai
from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk
from langchain_openai import ChatOpenAI

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.configuration.proxies import ChosenProxy, choose_proxy
from opsleuth.models.certificates import load_tls_context
from opsleuth.models.encoded_values import describe_broken_json
from opsleuth.models.endpoint_failures import (
    REQUEST_ERRORS,
    EndpointFailure,
    FailureKind,
    explain_endpoint_error,
)
from opsleuth.models.model_reply import ModelReply, ModelRequest, ModelToolCall, TokenUsage
from opsleuth.models.planner import MalformedReplyError, ModelRefusedError, ModelUnavailableError
from opsleuth.models.response_tap import ResponseTap
from opsleuth.state.backoff import Backoff
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import ExitCode

RETRIES = Backoff(first=0.5, longest=60.0)
"""Seconds between tries; a server that asks for a longer pause than the second is given up for now."""
LOADING, LOADING_SECONDS = Backoff(first=1.0, longest=30.0), 300.0
"""Seconds between tries while a server loads its model, and how long that may take in all."""
_LENGTH_FIELDS: tuple[Literal["max_completion_tokens", "max_tokens"], ...] = (
    "max_completion_tokens",
    "max_tokens",
)

Transport = Any
"""A transport of the HTTP library that answers instead of a network: for replays."""


class UnsupportedModeError(OpsleuthError):
    """The server does not know this way of asking (tools, or a form of reply)."""

    exit_code = ExitCode.UNREACHABLE


class ContextTooLongError(OpsleuthError):
    """The request is longer than the model's window; the text holds the remedy."""

    exit_code = ExitCode.CONFIG


class ModelEndpoint:
    """Asks one model. Close it with `aclose` when the run is over."""

    def __init__(
        self,
        settings: ModelSettings,
        key: str | None,
        *,
        tap: ResponseTap | None = None,
        transport: Transport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._tap = tap or ResponseTap()
        self._sleep, self._jitter = sleep, jitter
        self._proxy = None if transport is not None else choose_proxy(settings.base_url, settings.proxy)
        self._http = _build_http_client(self._tap, settings, self._proxy, transport)
        self._parameters = _Parameters(settings)
        self._chat = _build_chat_client(settings, key, self._http)

    async def ask(self, asked: ModelRequest, seconds: float) -> ModelReply:
        """The model's reply within `seconds`, after as many tries as can help.

        Raises MalformedReplyError (an answer without a choice), ModelUnavailableError, ModelRefusedError, UnsupportedModeError, ContextTooLongError.
        """
        until = asyncio.get_running_loop().time() + seconds
        tries = _Tries(self.settings.tries)
        while True:
            left = until - asyncio.get_running_loop().time()
            try:
                return await self._once(asked, left)
            except REQUEST_ERRORS as error:
                failure = explain_endpoint_error(error, self._tap.body, self.settings, self._proxy)
            if failure.kind is FailureKind.PARAMETER and self._parameters.drop_parameter(failure.parameter):
                continue
            pause = tries.pause_after(failure, self._jitter())
            if pause is None or pause > until - asyncio.get_running_loop().time():
                break
            await self._sleep(pause)
        raise _error_from_failure(failure, tries.made)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _once(self, asked: ModelRequest, left: float) -> ModelReply:
        # Beside the library's own parameters: it walks through every schema of `tools` on each request, and its
        # parser of `response_format` would take a cut reply for an error of its own.
        body = self._parameters.list_values()
        if asked.tools:
            body["tools"] = asked.tools
        if asked.response_format is not None:
            body["response_format"] = asked.response_format
        async with asyncio.timeout(min(self.settings.timeout, max(left, 0.001))):
            message = await self._said([dict(m) for m in asked.messages], body)
        return _reply_from_message(message, self._tap.body)

    async def _said(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> BaseMessage:
        if not self.settings.stream or "tools" in body:
            return await self._chat.ainvoke(messages, extra_body=body)
        whole: BaseMessageChunk | None = None
        async for chunk in self._chat.astream(messages, extra_body=body):
            whole = chunk if whole is None else whole + chunk
        if whole is None:
            raise ValueError("the stream held nothing")
        return whole


class _Tries:
    """The tries of one request: how many there were, and how long to wait for the next."""

    def __init__(self, most: int) -> None:
        self._most, self._loads, self._waited = most, 0, 0.0
        self.made = 0

    def pause_after(self, failure: EndpointFailure, jitter: float) -> float | None:
        """Seconds before the next attempt, or None if there is none. A server that is loading is asked until it is ready."""
        self.made += 1
        if failure.kind is FailureKind.LOADING:
            self._loads += 1
            pause = LOADING.seconds_as_asked(self._loads, failure.wait, jitter)
            self._waited += pause or 0.0
            return pause if self._waited <= LOADING_SECONDS else None
        counted = self.made - self._loads
        if failure.kind is not FailureKind.HEALS or counted >= self._most:
            return None
        return RETRIES.seconds_as_asked(counted, failure.wait, jitter)


class _Parameters:
    """What is sent beside messages and tools, as far as this server takes it."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._lengths = [settings.max_tokens_field]
        self._lengths += [name for name in _LENGTH_FIELDS if name not in self._lengths]
        self._temperature = settings.temperature

    def list_values(self) -> dict[str, Any]:
        """The parameters of a request."""
        length: dict[str, Any] = dict.fromkeys(self._lengths[:1], self._settings.longest_reply)
        return length if self._temperature is None else {**length, "temperature": self._temperature}

    def drop_parameter(self, name: str) -> bool:
        """Stop sending this parameter; False if it is not sent. The longest reply goes under its other name, if that is left."""
        if name == "temperature" and self._temperature is not None:
            self._temperature = None
            return True
        if self._lengths[:1] == [name]:
            self._lengths.pop(0)
            return True
        return False


def _error_from_failure(failure: EndpointFailure, tries: int) -> Exception:
    """The error that a failure becomes once no further attempt helps."""
    after = f" (tried {tries} times)" if tries > 1 else ""
    match failure.kind:
        case FailureKind.MODE:
            return UnsupportedModeError(failure.text)
        case FailureKind.TOO_LONG:
            return ContextTooLongError(failure.text)
        case FailureKind.CONFIG:
            return ModelRefusedError(failure.text)
        case FailureKind.MALFORMED:
            return MalformedReplyError(failure.text)
    return ModelUnavailableError(failure.text + after)


def _build_chat_client(settings: ModelSettings, key: str | None, http: object) -> ChatOpenAI:
    async def token() -> str:
        """The key; a coroutine, so that the library makes no second, synchronous client."""
        return key if key and settings.key_header is None else "none"

    headers = {"Accept-Encoding": "identity", **settings.headers}
    if key and settings.key_header:
        headers[settings.key_header] = key
    return ChatOpenAI(
        model=settings.model,
        base_url=settings.base_url,
        api_key=token,
        organization=settings.organization,
        default_headers=headers,
        default_query=dict(settings.query) or None,
        timeout=settings.timeout,
        max_retries=0,
        stream_usage=True,
        stream_chunk_timeout=settings.timeout,
        disable_streaming="tool_calling",
        use_responses_api=False,
        http_async_client=http,
        output_version="v0",
    )


def _build_http_client(
    tap: ResponseTap, settings: ModelSettings, proxy: ChosenProxy | None, transport: Transport | None
) -> openai.DefaultAsyncHttpxClient:
    """A client with the chosen proxy, and the operator's certificates or the environment's."""
    more: dict[str, Any] = {"trust_env": False}
    if transport is not None:
        more["transport"] = transport
    else:
        more["verify"] = load_tls_context(settings.ca_file)
        if proxy is not None:
            more["proxy"] = proxy.url
    return openai.DefaultAsyncHttpxClient(
        event_hooks={"request": [tap.on_request], "response": [tap.on_response]}, **more
    )


def _reply_from_message(message: BaseMessage, raw: str) -> ModelReply:
    if not isinstance(message, AIMessage):
        raise TypeError(f"a reply of the role {message.type}")
    return ModelReply(
        text=_content_text(message.content),
        calls=[
            *(ModelToolCall(call["name"], call["args"]) for call in message.tool_calls),
            *(
                ModelToolCall(b["name"] or "?", {}, describe_broken_json(str(b["args"] or "")))
                for b in message.invalid_tool_calls
            ),
        ],
        finish=str(message.response_metadata.get("finish_reason") or ""),
        refusal=str(message.additional_kwargs.get("refusal") or ""),
        tokens=_counted_tokens(message),
        raw=raw,
    )


def _counted_tokens(message: AIMessage) -> TokenUsage | None:
    """The server's counts, None where it gave none that are whole numbers."""
    usage = message.usage_metadata
    if usage is None:
        return None
    cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
    counts = (usage["input_tokens"], usage["output_tokens"], cached)
    return TokenUsage(*counts) if all(isinstance(count, int) for count in counts) else None


def _content_text(content: JSON) -> str:
    if isinstance(content, str):
        return content
    parts = [block.get("text", "") if isinstance(block, dict) else str(block) for block in content]
    return "".join(part for part in parts if isinstance(part, str))
