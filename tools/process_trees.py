"""The processes that a command started, also those that left its process group: by parent, and by a mark in their environment.

A child that calls setsid, or a daemon that forks twice, is in no group of ours. On Linux it still has the environment it was
started with, and until its parent dies that parent. One that replaces its environment and loses its parent is not found, and
on other systems only the process group is.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

COMMAND_MARK = "OPSLEUTH_COMMAND"
"""The variable that every command gets; its value is another for each."""
_PROC = Path("/proc")


class RunningProcess(NamedTuple):
    """A process by its number and the time when it was started, as a number is used again."""

    pid: int
    started: str


def find_process_tree(root: int, mark: str) -> set[RunningProcess]:
    """The processes below `root`, without it, and those with this mark; none where there is no /proc."""
    if not sys.platform.startswith("linux"):
        return set()
    running = dict(_list_running())
    marked = f"{COMMAND_MARK}={mark}".encode()
    found = {process for process in running if marked in _read_environment(process.pid)}
    below = {root, *(process.pid for process in found)}
    while more := {child for child, parent in running.items() if parent in below} - found:
        found |= more
        below |= {process.pid for process in more}
    return {process for process in found if process.pid != root}


def signal_process(process: RunningProcess, number: int) -> bool:
    """Whether this very process is there still; one of another user gets no signal."""
    try:
        with _open_process(process.pid) as send:
            if not _is_running(process):
                return False
            send(number)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def _open_process(pid: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that signals the process with this number; old kernels and some sandboxes know only the number."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        yield partial(os.kill, pid)
        return
    try:
        yield partial(signal.pidfd_send_signal, handle)
    finally:
        os.close(handle)


def _is_running(process: RunningProcess) -> bool:
    now = _read_process(process.pid)
    return now is not None and now[0] == process


def _list_running() -> Iterator[tuple[RunningProcess, int]]:
    """Each process, and its parent's number."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (read := _read_process(int(entry.name))):
            yield read


def _read_process(pid: int) -> tuple[RunningProcess, int] | None:
    """The process and its parent's number; None if it has ended, be it as a zombie that nobody has waited for."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (RunningProcess(pid, fields[19]), int(fields[1]))


def _read_environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
