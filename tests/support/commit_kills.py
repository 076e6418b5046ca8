"""A process that dies in the middle of its work, and the way to run it."""

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

GUARD = 60
"""Seconds after which a hang is a failure; nothing here should take a tenth of it."""
FORK = multiprocessing.get_context("fork")


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked process that did `work`: minus the signal's number if it was killed."""
    process: BaseProcess = FORK.Process(target=work)
    process.start()
    process.join(GUARD)
    assert process.exitcode is not None, "the child hangs"
    return process.exitcode


def kill_at_commit(number: int) -> None:
    """From now on in this process, die just before the n-th commit of any connection."""
    connect = sqlite3.connect
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        if statement.startswith("COMMIT"):
            commits += 1
            if commits == number:
                os.kill(os.getpid(), signal.SIGKILL)

    def counted(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = counted  # type: ignore[assignment]
