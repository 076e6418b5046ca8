"""Listens at the connection: every reply's body as it came, bounded, for the trace and for recordings."""

from collections.abc import AsyncIterator, Callable
from typing import Any

MOST_BYTES = 8_000_000
"""A reply is longer only by accident or malice."""


class TooLong(Exception):
    """The reply is longer than `MOST_BYTES`."""


class Tap:
    """What the last reply's body was. `heard` is called with status, headers and body when a reply is whole."""

    def __init__(self, heard: "Callable[[Any, str], None] | None" = None) -> None:
        self.body = ""
        self._heard = heard

    async def on_request(self, _: Any) -> None:  # noqa: ANN401 - the HTTP library's own type
        self.body = ""

    async def on_response(self, response: Any) -> None:  # noqa: ANN401 - the HTTP library's own type
        response.stream = _Heard(response, self)

    def ended(self, response: Any, body: bytes, *, whole: bool) -> None:  # noqa: ANN401 - the HTTP library's own type
        self.body = body.decode("utf-8", "replace")
        if whole and self._heard is not None:
            self._heard(response, self.body)


class _Heard:
    """A response's stream, copied while it is read."""

    def __init__(self, response: Any, tap: Tap) -> None:  # noqa: ANN401 - the HTTP library's own type
        self._response, self._inner, self._tap = response, response.stream, tap
        self._body = bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = False
        try:
            async for part in self._inner:
                self._body += part
                if len(self._body) > MOST_BYTES:
                    raise TooLong
                yield part
            whole = True
        finally:
            self._tap.ended(self._response, bytes(self._body), whole=whole)

    async def aclose(self) -> None:
        await self._inner.aclose()
