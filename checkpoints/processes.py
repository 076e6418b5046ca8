"""Which process works on a run, read from its row: pid, host and start, so that a reused pid is recognised."""

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from opsleuth.state.run_status import Status


class ProcessIdentity(NamedTuple):
    """`start` distinguishes two processes that had the same pid; empty where the system does not say."""

    pid: int
    host: str
    start: str


class HasHolder(Protocol):
    """What is needed to tell whether a run is alive."""

    @property
    def status(self) -> Status: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def host(self) -> str | None: ...
    @property
    def process_start(self) -> str | None: ...


def this_process() -> ProcessIdentity:
    return ProcessIdentity(os.getpid(), os.uname().nodename, start_of(os.getpid()))


def start_of(pid: int) -> str:
    """When a process started, as boot id and clock ticks; empty if there is none, or no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{boot[:8]}:{fields[19]}"


def is_alive(run: HasHolder) -> bool:
    """Whether the process in the run's row still runs. On another host we cannot know: taken for alive."""
    if run.pid is None:
        return False
    if run.host != os.uname().nodename:
        return True
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return start_of(run.pid) == (run.process_start or "")


def is_held(run: HasHolder) -> bool:
    """Whether a live process works on the run, or waits at its terminal for an answer: no other may take it."""
    return run.status in (Status.RUNNING, Status.WAITING) and is_alive(run)


def status_to_show(run: HasHolder) -> Status:
    """The status to show: a run that is stored as running without a live process was interrupted."""
    if run.status is Status.RUNNING and not is_alive(run):
        return Status.INTERRUPTED
    return run.status
