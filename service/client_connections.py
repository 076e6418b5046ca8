"""Slow clients and clients that break the protocol: neither can hold a connection forever or fill the log."""

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEADER_SECONDS: Final = 15.0
"""So long, and at most twice as long, a connection may be open without a request that is being answered."""


class TimedConnection(H11Protocol):
    """A connection that is closed if its client sends no complete request head in time."""

    patience = HEADER_SECONDS
    _watch: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer anything that is not HTTP. The request that it belongs to gets no second answer, and is not our error."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            if self.cycle.response_started:
                self.transport.close()
                return
        super().send_400_response(msg)

    def _look_later(self) -> None:
        self._watch = self.loop.call_later(self.patience, self._end_if_silent, self.cycle)

    def _end_if_silent(self, seen: RequestResponseCycle | None) -> None:
        """Close it where nothing is being answered, and nothing was since the last look."""
        if self.cycle is seen and (seen is None or seen.response_complete):
            self.transport.close()
        else:
            self._look_later()
