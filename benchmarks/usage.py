"""What processors were used for, as Linux counts it: by role of process, and how busy the busiest core was."""

import os
import re
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

FULL = 0.95
"""A core that is busier than that has no room left."""
_POSTMASTER = "SELECT pg_backend_pid()"
_Ticks = tuple[int, int]


def seconds(pids: Sequence[int]) -> float:
    """Processor seconds that these processes have used."""
    return sum(sum(map(int, _fields(pid)[11:13])) for pid in pids) / os.sysconf("SC_CLK_TCK")


def family_seconds(parent: int) -> float:
    """Processor seconds of a process, its children, and those of its children that have ended."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    children = [pid for pid in pids if _parent(pid) == parent]
    ended = sum(map(int, _fields(parent)[13:15])) / os.sysconf("SC_CLK_TCK")
    return seconds([parent, *children]) + ended


def postmaster(url: str) -> int | None:
    """The process of the PostgreSQL server, None where it is on another machine."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(_POSTMASTER).fetchone()
        pid = int(row[0]) if row else 0
        here = Path(f"/proc/{pid}/comm")
        return _parent(pid) if here.exists() and here.read_text("ascii").startswith("postgres") else None


class Usage:
    """Processor seconds by role since it was made."""

    def __init__(self, roles: Mapping[str, Callable[[], float]]) -> None:
        self._roles = dict(roles)
        self._before = {role: used() for role, used in roles.items()}

    def since(self) -> dict[str, float]:
        return {role: used() - self._before[role] for role, used in self._roles.items()}


class Cores(threading.Thread):
    """How busy the busiest core was, second by second; `also` is looked at as often."""

    def __init__(self, also: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._over, self._also = threading.Event(), also
        self._busiest: list[float] = []

    def run(self) -> None:
        before = _cores()
        while not self._over.wait(1.0):
            now = _cores()
            self._busiest.append(max(_busy(a, b) for a, b in zip(before, now, strict=True)))
            before = now
            self._also()

    def stop(self) -> dict[str, Any]:
        self._over.set()
        self.join()
        busiest = self._busiest or [0.0]
        return {
            "busiest core: median, most": [round(statistics.median(busiest), 3), round(max(busiest), 3)],
            f"seconds with a core above {FULL:.0%}, of all": [sum(b > FULL for b in busiest), len(busiest)],
        }


def _cores() -> list[_Ticks]:
    """Idle and total ticks of each core."""
    lines = [line.split() for line in Path("/proc/stat").read_text("ascii").splitlines()]
    ticks = [list(map(int, line[1:9])) for line in lines if line and re.fullmatch(r"cpu\d+", line[0])]
    return [(core[3] + core[4], sum(core)) for core in ticks]


def _busy(before: _Ticks, after: _Ticks) -> float:
    total = after[1] - before[1]
    return 1 - (after[0] - before[0]) / total if total else 0.0


def _parent(pid: int) -> int:
    return int(_fields(pid)[1])


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the state on: 1 the parent, 11 to 14 its own and its ended children's ticks."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ["0"] * 15  # it has ended meanwhile, and is among its parent's
    return stat.rpartition(")")[2].split()
