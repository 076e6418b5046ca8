"""What one caller may ask for: so much at once and so often, and no body larger than what is useful."""

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

    def wait(self, caller: str) -> float:
        """Seconds until this caller may ask again; 0 counts as a call."""
        now = self._monotonic()
        taken = max(self._taken.get(caller, -inf), now - BURST_SECONDS) + self._step
        if taken > now + _ROUNDING:
            return taken - now
        self._taken[caller] = taken
        self._taken.move_to_end(caller)
        if len(self._taken) > MOST_CALLERS:
            self._taken.popitem(last=False)
        return 0.0


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
                raise HTTPException(413, f"a request may have {self._most} bytes: send less")
            return message

        await self._app(scope, counted, send)
