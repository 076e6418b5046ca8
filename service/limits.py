"""What one caller may ask for: so much at once and so often, and no body larger than what is useful."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from math import inf

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BURST_SECONDS = 10.0
_ROUNDING = 1e-9
MOST_CALLERS = 10_000
"""Callers that are remembered; the one that was not heard of for longest is forgotten first."""


class Pace:
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


class Familiar:
    """Texts of tokens that were valid lately, as hashes: others of their address are not held against them."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, text: str) -> None:
        key = _hash(text)
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_CALLERS:
            self._seen.popitem(last=False)

    def discard(self, text: str) -> None:
        self._seen.pop(_hash(text), None)

    def __contains__(self, text: str) -> bool:
        return _hash(text) in self._seen


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class BodyLimit:
    """Ends a request as soon as its body grows over the limit, whatever its headers say."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise HTTPException(413, f"the request body is larger than {self._most} bytes (body_bytes)")
            return message

        await self._app(scope, counted, send)
