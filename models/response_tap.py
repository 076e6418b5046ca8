"""Tap the connection to a model: keep every reply's body, bounded, or replay a recording instead of the network."""

from collections.abc import AsyncIterator
from typing import Protocol

import httpx2

from opsleuth.models.reply_normalizing import normalize_event, normalize_reply
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_status import ExitCode

MOST_BYTES = 8_000_000
"""A reply is longer only by accident or malice."""


class ReplyTooLongError(OpsleuthError):
    """The reply is longer than `MOST_BYTES`."""

    exit_code = ExitCode.UNREACHABLE


class ReplyTape(Protocol):
    """Hears the exchanges of a recording, or answers from one."""

    def heard(self, asked: bytes, status: int, headers: dict[str, str], body: str) -> None: ...

    def answer(self, asked: bytes) -> tuple[int, dict[str, str], str]: ...


class ResponseTap:
    """Listens to one client. `body` is the last reply's body, as far as it came."""

    def __init__(self, traffic: ReplyTape | None = None) -> None:
        self.body = ""
        self._traffic = traffic

    async def on_request(self, _: httpx2.Request) -> None:
        self.body = ""

    async def on_response(self, response: httpx2.Response) -> None:
        response.stream = _TappedStream(response, self)

    def ended(self, response: httpx2.Response, body: bytes, *, whole: bool) -> None:
        self.body = body.decode("utf-8", "replace")
        if whole and self._traffic is not None:
            headers = {
                name: response.headers[name]
                for name in ("content-type", "retry-after")
                if name in response.headers
            }
            self._traffic.heard(response.request.content, response.status_code, headers, self.body)


class ReplayTransport(httpx2.AsyncBaseTransport):
    """Answers from a recording."""

    def __init__(self, traffic: ReplyTape) -> None:
        self._traffic = traffic

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status, headers, body = self._traffic.answer(request.content)
        return httpx2.Response(status, headers=headers, content=body.encode(), request=request)


class _TappedStream(httpx2.AsyncByteStream):
    """A response's stream, copied while it is read; a whole body passes in the form that the library reads."""

    def __init__(self, response: httpx2.Response, tap: ResponseTap) -> None:
        self._response, self._inner, self._tap = response, response.stream, tap
        self._body = bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole, unended = False, list[bytes]()
        streams = "event-stream" in self._response.headers.get("content-type", "")
        try:
            async for part in self._inner:  # type: ignore[union-attr] # the client is an asynchronous one
                self._body += part
                if len(self._body) > MOST_BYTES:
                    raise ReplyTooLongError
                if not streams:
                    continue
                unended.append(part)
                if b"\n" not in part and b"\r" not in part:
                    continue  # joined once the line ends: a long one would be copied with every part of it
                *lines, rest = b"".join(unended).splitlines(keepends=True)
                if rest.endswith(b"\n"):
                    lines, rest = [*lines, rest], b""
                unended = [rest]
                yield b"".join(map(normalize_event, lines))
            yield b"".join(unended) if streams else normalize_reply(bytes(self._body))
            whole = True
        finally:
            self._tap.ended(self._response, bytes(self._body), whole=whole)

    async def aclose(self) -> None:
        await self._inner.aclose()  # type: ignore[union-attr]
