"""A worker process that counts units of logs: it reads jobs from stdin and writes counts to stdout.

It is a separate program, not a fork, so that it starts safely from a program with threads. It ends when its input
ends: it never outlives the process that started it.
"""

import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import IO

from opsleuth.tools.sources.counting_units import CountingMessage, CountingUnit, UnitReader

_BROKEN_PIPE = 3


def receive_jobs(stream: IO[bytes], jobs: "SimpleQueue[CountingUnit | None]") -> None:
    """Hand on the units. Where the input ends, the work is no longer wanted and the program ends at once."""
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while (unit := pickle.load(stream)) is not None:
            jobs.put(unit)
        jobs.put(None)
        stream.read()
    os._exit(0)


def count_units() -> None:
    """Count until there is nothing more to count."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    jobs: SimpleQueue[CountingUnit | None] = SimpleQueue()
    reader = UnitReader(pickle.load(sys.stdin.buffer))
    threading.Thread(target=receive_jobs, args=(sys.stdin.buffer, jobs), daemon=True).start()
    code = 0
    try:
        while (unit := jobs.get()) is not None:
            for message in reader.count(unit):
                send_message(message)
    except OSError:
        code = _BROKEN_PIPE
    os._exit(code)  # the other thread still reads: an ordinary exit would wait for it


def send_message(message: CountingMessage) -> None:
    """Write what was counted to the process that asked. Raises OSError where it has gone."""
    pickle.dump(message, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    count_units()
