"""At the connection to a model: every reply's body as it came, bounded; and a recording in place of the network."""

from collections.abc import AsyncIterator
from typing import Protocol

import httpx2

MOST_BYTES = 8_000_000
"""A reply is longer only by accident or malice."""


class TooLong(Exception):
    """The reply is longer than `MOST_BYTES`."""


class Traffic(Protocol):
    """Hears the exchanges of a recording, or answers from one."""

    def heard(self, asked: bytes, status: int, headers: dict[str, str], body: str) -> None: ...

    def answer(self, asked: bytes) -> tuple[int, dict[str, str], str]: ...


class Tap:
    """Listens to one client. `body` is the last reply's body, as far as it came."""

    def __init__(self, traffic: Traffic | None = None) -> None:
        self.body = ""
        self._traffic = traffic

    async def on_request(self, _: httpx2.Request) -> None:
        self.body = ""

    async def on_response(self, response: httpx2.Response) -> None:
        response.stream = _Heard(response, self)

    def ended(self, response: httpx2.Response, body: bytes, *, whole: bool) -> None:
        self.body = body.decode("utf-8", "replace")
        if whole and self._traffic is not None:
            headers = {
                name: response.headers[name]
                for name in ("content-type", "retry-after")
                if name in response.headers
            }
            self._traffic.heard(response.request.content, response.status_code, headers, self.body)


class Replaying(httpx2.AsyncBaseTransport):
    """Answers from a recording."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status, headers, body = self._traffic.answer(request.content)
        return httpx2.Response(status, headers=headers, content=body.encode(), request=request)


class _Heard(httpx2.AsyncByteStream):
    """A response's stream, copied while it is read."""

    def __init__(self, response: httpx2.Response, tap: Tap) -> None:
        self._response, self._inner, self._tap = response, response.stream, tap
        self._body = bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = False
        try:
            async for part in self._inner:  # type: ignore[union-attr] # the client is an asynchronous one
                self._body += part
                if len(self._body) > MOST_BYTES:
                    raise TooLong
                yield part
            whole = True
        finally:
            self._tap.ended(self._response, bytes(self._body), whole=whole)

    async def aclose(self) -> None:
        await self._inner.aclose()  # type: ignore[union-attr]
