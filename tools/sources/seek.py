"""Finding a stretch of time in a long log without reading what lies before it.

Most logs are written in order of time, give or take the seconds by which writers overtake each other. Whether
this one is, is probed first; one that is not is read from its start.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from opsleuth.state.canonical import from_json
from opsleuth.tools.sources.tables import Trouble

# By how much a line may stand before an older one, in seconds, in a log that counts as ordered.
SLACK = 60.0
_PROBES = 64
# Lines looked at for one with a time, and the bytes among which a search by halves need not go on.
_PATIENCE = 20
BLOCK = 65_536


TimeOf = Callable[[bytes], float | None]


def start_of(path: Path, time: float, time_of: TimeOf | None = None) -> int | None:
    """A byte offset before every line from `time` on, or None if the log is not in order of time.

    The line at the offset may be cut: skip it unless the offset is 0. `time_of` tells the time of a raw line
    (default: of a JSON object of a case).
    """
    read = time_of or _time_of
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not _ordered(file, size, read):
            return None
        low, high = 0, size
        while high - low > BLOCK:
            middle = (low + high) // 2
            seen = _time_at(file, middle, read)
            if seen is not None and seen < time - SLACK:
                low = middle
            else:
                high = middle
        return low


def _ordered(file: BinaryIO, size: int, read: TimeOf) -> bool:
    probes = (_time_at(file, size * place // _PROBES, read) for place in range(_PROBES))
    times = [time for time in probes if time is not None]
    return len(times) > _PROBES // 2 and all(b >= a - SLACK for a, b in pairwise(times))


def _time_at(file: BinaryIO, offset: int, read: TimeOf) -> float | None:
    """The time of the first line that begins after `offset` and has a time of its own."""
    file.seek(offset)
    if offset:
        file.readline()
    for _ in range(_PATIENCE):
        time = read(file.readline())
        if time is not None:
            return time
    return None


def _time_of(line: bytes) -> float | None:
    try:
        row = from_json(line)
        if row.get("timestamp_source") not in (None, "", "log"):
            return None
        return Trouble("").time(row["timestamp"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
