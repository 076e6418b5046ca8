"""How a run is stopped in the middle of a call."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from langgraph.errors import GraphDrained

T = TypeVar("T")


class Stopping:
    """The wish to stop, and the tasks in flight that must hear of it."""

    def __init__(self) -> None:
        self.wished = False
        self._running: set[asyncio.Task[Any]] = set()

    def stop(self) -> None:
        """Cancel what runs; nothing new starts."""
        self.wished = True
        for task in self._running:
            task.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """`work` as a task that `stop` cancels. Raises GraphDrained if it was: the node runs again at resume."""
        if self.wished:
            work.close()
            raise GraphDrained("stopped")
        task = asyncio.ensure_future(work)
        self._running.add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            if self.wished:
                raise GraphDrained("stopped") from None
            raise
        finally:
            self._running.discard(task)
        return result
