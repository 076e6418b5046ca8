"""How long a call is waited for: by the CPU that this process gets while it works, by the clock while it only waits."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

BUSY_SHARE = 0.1
"""The share of one core above which a process computes; a busy machine may leave it little more."""
LONGEST_FACTOR = 30.0
"""Times that a limit may be stretched where the machine is busy with others."""


async def wait_fairly(
    task: "asyncio.Future[Any]",
    seconds: float,
    longest: float,
    cpu_seconds: Callable[[], float] = time.process_time,
) -> None:
    """Wait until the task is done or has had its `seconds`, and never longer than `longest` by the clock.

    The seconds are those of the clock as long as nothing is computed. Where this process computed in the time that has
    passed, it goes on until it has used as many seconds of CPU: what is slow only because the machine is busy is not
    cut short.
    """
    began, waited, pause = cpu_seconds(), 0.0, seconds
    while not task.done() and pause > 0:
        before = cpu_seconds()
        await asyncio.wait({task}, timeout=pause)
        waited += pause
        now = cpu_seconds()
        if now - before < BUSY_SHARE * pause or now - began >= seconds:
            return
        pause = min(seconds, longest - waited)
