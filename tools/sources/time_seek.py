"""Finding a time range in a long log without reading what lies before it.

Most logs are written in order of time, give or take the seconds by which writers overtake each other. Whether
this one is, is probed first; one that is not is read from its start.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from opsleuth.state.canonical_json import parse_json_text
from opsleuth.tools.sources.long_lines import LONGEST_LINE, is_cut, skip_rest_of_line
from opsleuth.tools.sources.table_files import FileProblems

# By how much a line may stand before an older one, in seconds, in a log that counts as ordered.
SLACK = 60.0
_PROBES = 64
# Lines looked at for one with a time, and the bytes among which a search by halves need not go on.
_PATIENCE = 20
BLOCK = 65_536


TimeOf = Callable[[bytes], float | None]


def find_time_offset(path: Path, time: float, time_of: TimeOf | None = None) -> int | None:
    """A byte offset before every line from `time` on, or None if the log is not in order of time.

    The line at the offset may be cut: skip it unless the offset is 0. `time_of` tells the time of a raw line
    (default: of a JSON object of a case).
    """
    read = time_of or _time_from_json_line
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        probes = _TimeProbes(file, read)
        if not _is_time_ordered(probes, size):
            return None
        low, high = 0, size
        while high - low > BLOCK:
            middle = (low + high) // 2
            seen = probes.first_time_after(middle)
            if seen is not None and seen < time - SLACK:
                low = middle
            else:
                high = middle
        return low


def _is_time_ordered(probes: "_TimeProbes", size: int) -> bool:
    seen = (probes.first_time_after(size * place // _PROBES) for place in range(_PROBES))
    times = [time for time in seen if time is not None]
    return len(times) > _PROBES // 2 and all(b >= a - SLACK for a, b in pairwise(times))


class _TimeProbes:
    """Looks for times in a file. A line that many probes fall into is read through once."""

    def __init__(self, file: BinaryIO, read: TimeOf) -> None:
        self._file, self._read = file, read
        self._known: list[tuple[int, int, float | None]] = []

    def first_time_after(self, offset: int) -> float | None:
        """The time of the first line that begins after `offset` and has a time of its own."""
        for probed, start, time in self._known:
            if probed <= offset < start:
                return time
        self._file.seek(offset)
        if offset:
            skip_rest_of_line(self._file)
        start = self._file.tell()
        time = self._next_time()
        if start - offset > LONGEST_LINE:
            self._known.append((offset, start, time))
        return time

    def _next_time(self) -> float | None:
        for _ in range(_PATIENCE):
            raw = self._file.readline(LONGEST_LINE)
            time = self._read(raw)
            if time is not None or not raw:
                return time
            if is_cut(raw, LONGEST_LINE):
                skip_rest_of_line(self._file)
        return None


def _time_from_json_line(line: bytes) -> float | None:
    try:
        row = parse_json_text(line)
        if row.get("timestamp_source") not in (None, "", "log"):
            return None
        return FileProblems("").time(row["timestamp"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
