"""Counting large logs in several processes: units go out, counts come back in the order of the units.

The processes are separate programs, started for the work and stopped after it. They end with this one, however it
ends, because their input closes.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

import opsleuth
from opsleuth.state.errors import OpsleuthError
from opsleuth.tools.sources.counting_units import (
    CountedPart,
    CountingMessage,
    CountingRules,
    CountingUnit,
)

MOST_AHEAD = 6
"""Units that are counted before the first one that is missing: what comes of them is held."""
_POLL = 0.25
_TERM_SECONDS = 2.0


class CountingProcessError(OpsleuthError):
    """A process that counted ended before its work; the text says how."""


class CountingPool:
    """Processes that count by the same rules. Use as a context: at its end none is left."""

    def __init__(self, rules: CountingRules, processes: int) -> None:
        self._messages: queue.Queue[tuple[_CountingProcess, CountingMessage | None]] = queue.Queue()
        self._rules = rules
        self._number = processes
        self._processes: list[_CountingProcess] = []

    def __enter__(self) -> Self:
        with ExitStack() as unless_all_start:
            unless_all_start.callback(self._end_all)
            for _ in range(self._number):
                self._processes.append(_CountingProcess(self._rules, self._messages))
            unless_all_start.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_all()

    @property
    def process_ids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def count(self, units: Sequence[CountingUnit], is_over: Callable[[], bool]) -> Iterator[CountingMessage]:
        """What comes of the units, numbered from 0, in their order, until `is_over`. Raises CountingProcessError."""
        waiting, front = deque(units), 0
        held: dict[int, list[CountingMessage]] = defaultdict(list)
        ended: set[int] = set()
        while front < len(units):
            self._give_out(waiting, front)
            message = self._next_message(is_over)
            if message is None:
                return
            held[message.unit].append(message)
            if not isinstance(message, CountedPart):
                ended.add(message.unit)
            yield from held.pop(front, ())
            while front in ended:
                front += 1
                yield from held.pop(front, ())

    def _give_out(self, waiting: "deque[CountingUnit]", front: int) -> None:
        for process in self._processes:
            if waiting and process.unit is None and waiting[0].number < front + MOST_AHEAD:
                process.begin_unit(waiting.popleft())

    def _next_message(self, is_over: Callable[[], bool]) -> CountingMessage | None:
        """The next message of any process; None where the work is over before one comes."""
        while not is_over():
            try:
                process, message = self._messages.get(timeout=_POLL)
            except queue.Empty:
                continue
            if message is None:
                raise CountingProcessError(process.describe_end())
            if not isinstance(message, CountedPart):
                process.unit = None
            return message
        return None

    def _end_all(self) -> None:
        for process in self._processes:
            process.end()
        self._processes.clear()


class _CountingProcess:
    """One process; a thread hands on its messages, and None when it has ended."""

    def __init__(
        self, rules: CountingRules, messages: "queue.Queue[tuple[Any, CountingMessage | None]]"
    ) -> None:
        self.unit: CountingUnit | None = None
        self._open = ExitStack()
        self._errors = self._open.enter_context(tempfile.TemporaryFile())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "opsleuth.tools.sources.counting_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_build_environment(),
        )
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)
        self._send(rules)
        self._thread = threading.Thread(target=self._hand_on, args=(messages,), daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin_unit(self, unit: CountingUnit) -> None:
        self.unit = unit
        self._send(unit)

    def describe_end(self) -> str:
        """How the process ended, for people."""
        code = self._process.wait()
        where = f" while it counted {self.unit.path.name}" if self.unit else ""
        if code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
            hint = ", which the system sends where memory runs out" if -code == signal.SIGKILL else ""
            return f"a process that counts lines was killed by {name}{hint}{where}"
        self._errors.seek(0)
        last = self._errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"a process that counts lines ended with code {code}{where}" + (f": {last[0]}" if last else "")

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_TERM_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        for stream in (self._input, self._output):
            with suppress(OSError):  # what was still to be written is of no use to anyone
                stream.close()
        self._open.close()

    def _send(self, what: CountingRules | CountingUnit) -> None:
        """A process that has ended is noticed by what it no longer answers."""
        with suppress(OSError):
            pickle.dump(what, self._input, pickle.HIGHEST_PROTOCOL)
            self._input.flush()

    def _hand_on(self, messages: "queue.Queue[tuple[Any, CountingMessage | None]]") -> None:
        with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
            while True:
                messages.put((self, pickle.load(self._output)))
        messages.put((self, None))


def _build_environment() -> dict[str, str]:
    """The environment of this process, in which its own code is found wherever it was loaded from."""
    here = str(Path(opsleuth.__file__).absolute().parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))}


def usable_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
