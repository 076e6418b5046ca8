"""Limits per caller: concurrency, rate, and the size and speed of a body."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from math import inf

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BURST_SECONDS = 10.0
_ROUNDING = 1e-9
MOST_CALLERS = 10_000
"""Callers that are remembered; the one that was not heard from for longest is forgotten first."""


class CallerRateLimit:
    """At most `per_minute` calls of one caller, those of ten seconds at once."""

    def __init__(self, per_minute: float, monotonic: Callable[[], float]) -> None:
        self._step, self._monotonic = 60 / per_minute, monotonic
        self._taken: OrderedDict[str, float] = OrderedDict()

    def left(self, caller: str) -> float:
        """Seconds until this caller may ask again, without counting a call."""
        now = self._monotonic()
        taken = self._next(caller, now)
        return taken - now if taken > now + _ROUNDING else 0.0

    def wait(self, caller: str) -> float:
        """Seconds until this caller may ask again; 0 counts as a call."""
        if (seconds := self.left(caller)) > 0:
            return seconds
        self._taken[caller] = self._next(caller, self._monotonic())
        self._taken.move_to_end(caller)
        if len(self._taken) > MOST_CALLERS:
            self._taken.popitem(last=False)
        return 0.0

    def _next(self, caller: str, now: float) -> float:
        return max(self._taken.get(caller, -inf), now - BURST_SECONDS) + self._step


class KnownTokens:
    """Texts of tokens that were valid lately, as hashes: others of their address are not checked against them."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, text: str) -> None:
        key = _hash_token(text)
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_CALLERS:
            self._seen.popitem(last=False)

    def discard(self, text: str) -> None:
        self._seen.pop(_hash_token(text), None)

    def __contains__(self, text: str) -> bool:
        return _hash_token(text) in self._seen


def _hash_token(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class BodyLimits:
    """Ends a request as soon as its body grows over the limit, whatever its headers say, or takes too long to come."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen, is_complete, deadline = 0, False, asyncio.get_running_loop().time() + self._seconds

        async def counted() -> Message:
            nonlocal seen, is_complete
            if is_complete:  # what comes now is that the client has left, some time
                return await receive()
            message = await self._receive_before(deadline, receive)
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise HTTPException(413, f"the request body is larger than {self._most} bytes (body_bytes)")
            is_complete = not message.get("more_body", False)
            return message

        await self._app(scope, counted, send)

    async def _receive_before(self, deadline: float, receive: Receive) -> Message:
        try:
            async with asyncio.timeout_at(deadline):
                return await receive()
        except TimeoutError:
            raise HTTPException(
                408,
                f"the request body took longer than {self._seconds:g} s (body_seconds)",
                {"Connection": "close"},
            ) from None
