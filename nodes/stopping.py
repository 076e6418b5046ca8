"""How a run is stopped in the middle of a call."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from langgraph.errors import GraphDrained

T = TypeVar("T")


class StopControl:
    """The wish to stop, and the tasks in flight that must hear of it."""

    def __init__(self) -> None:
        self._wish = asyncio.Event()
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def wished(self) -> bool:
        return self._wish.is_set()

    def stop(self) -> None:
        """Cancel what runs; nothing new starts."""
        self._wish.set()
        for task in self._running:
            task.cancel()

    def go_on(self) -> None:
        """Take the wish back."""
        self._wish.clear()

    async def patiently(self, work: Coroutine[Any, Any, T], grace: float, on_wish: Callable[[], None]) -> T:
        """`work` to its end. Wished to stop meanwhile, it is left alone for `grace` seconds, then cancelled."""
        task = asyncio.ensure_future(work)
        wish = asyncio.ensure_future(self._wish.wait())
        try:
            await asyncio.wait({task, wish}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                on_wish()
                await asyncio.wait({task}, timeout=grace)
                task.cancel()
            return await task
        finally:
            wish.cancel()

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
