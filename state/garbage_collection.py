"""Pauses of Python's cyclic garbage collector while a large tree of plain values is made.

A document of lists and dictionaries has no cycles, but each collection walks all of it: decoding 60 MB of JSON beside
what a process holds already takes eight times as long with the collector as without it.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses: list[bool] = []


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Nothing is collected while the block runs, in any thread; then it is again if it was before. Pauses may overlap."""
    with _lock:
        _pauses.append(gc.isenabled() if not _pauses else _pauses[0])
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            if _pauses.pop() and not _pauses:
                gc.enable()
