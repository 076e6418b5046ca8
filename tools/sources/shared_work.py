"""Long work in a thread of its own, which several callers may wait for.

A caller that is cut off does not end it at once: the next caller finds it further along, and nothing is done twice.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from opsleuth.state.clock import Clock
from opsleuth.state.errors import OpsleuthError
from opsleuth.tools.spec import ToolError

Result = TypeVar("Result")
PATIENCE = 20.0
"""Seconds for which work continues that nobody waits for."""
_FIRST_POLL, _LAST_POLL = 0.001, 0.05


class SharedWork(Generic[Result]):
    """`work` is given a function that says whether nobody waits for it any more; it then may end with any result."""

    def __init__(self, work: Callable[[Callable[[], bool]], Result], clock: Clock) -> None:
        self._clock = clock
        self._done = threading.Event()
        self._results: list[Result] = []
        self._error: Exception | None = None
        self._waiting = 0
        self._left_at = clock.monotonic()
        self._work = work
        thread = threading.Thread(target=contextvars.copy_context().run, args=(self._run,), daemon=True)
        thread.start()

    def is_abandoned(self) -> bool:
        return self._waiting == 0 and self._clock.monotonic() - self._left_at > PATIENCE

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    async def wait_for_result(self) -> Result:
        """The result, or the error that the work ended with."""
        self._waiting += 1
        pause = _FIRST_POLL
        try:
            while not self._done.is_set():
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LAST_POLL)
        finally:
            self._waiting -= 1
            self._left_at = self._clock.monotonic()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work(self.is_abandoned))
        except (OpsleuthError, ToolError, OSError, ValueError) as error:
            self._error = error
        finally:  # another error is a defect: it is shown by its thread, and there is no result
            self._done.set()
