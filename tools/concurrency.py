"""Run several requests at once; if one fails, the others are cancelled."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_or_cancel(waiting: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in the order given.

    Unlike `asyncio.gather`, the first error ends the others before it is raised: none of them goes on asking over
    a connection that is being closed.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in waiting]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
