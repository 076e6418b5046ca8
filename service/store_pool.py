"""A few threads, each with a store of its own, for a program whose loop must not wait for the database."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from opsleuth.checkpoints.errors import StoreFailedError
from opsleuth.checkpoints.store import Store

Answer = TypeVar("Answer")


class StorePool:
    """Work on the store, off the loop. A connection that broke is reopened by the next one who needs it.

    `open_store` is called in the thread that will use the store.
    """

    def __init__(self, open_store: Callable[[], Store], size: int = 4) -> None:
        self._open, self._size = open_store, size
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(size, "store")
        self._in_each(self._store)

    async def __call__(self, work: Callable[[Store], Answer]) -> Answer:
        """What `work` makes of a store. Raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._do, work)

    def close(self) -> None:
        """Close every store in its own thread, then end the threads."""
        self._in_each(self._drop)
        self._pool.shutdown()

    def _do(self, work: Callable[[Store], Answer]) -> Answer:
        try:
            return work(self._store())
        except StoreFailedError:
            self._drop()
            raise

    def _store(self) -> Store:
        if getattr(self._own, "store", None) is None:
            self._own.store = self._open()
        store: Store = self._own.store
        return store

    def _drop(self) -> None:
        store, self._own.store = getattr(self._own, "store", None), None
        if store is not None:
            store.close()

    def _in_each(self, work: Callable[[], object]) -> None:
        """Once in every thread: none takes a second turn before all have come. Raises what one of them raises."""
        together = threading.Barrier(self._size)

        def once() -> None:
            together.wait()
            work()

        for done in [self._pool.submit(once) for _ in range(self._size)]:
            done.result()
