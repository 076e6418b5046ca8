"""The lab's processes: each tied to the keeper's life, waited for until it answers, and ended in order."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from opsleuth.state.errors import OpsleuthError

READY_SECONDS = 60.0
END_SECONDS = 10.0
_TETHER = "opsleuth.scenarios.lab.tether"


class LabStartError(OpsleuthError):
    """A process of the lab did not come up; the text says which, and the end of what it wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabProgram:
    """What to start: `stop` ends it in good order, `ready` tells whether it answers, `output` is the file of what it prints."""

    name: str
    argv: Sequence[str]
    ready: Callable[[], bool]
    port: int = 0
    user: str = "-"
    stop: signal.Signals = signal.SIGTERM
    output: Path | None = None


class LabProcesses:
    """The programs that run, by name. All are started by one thread: the tie is to the thread that starts them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="starter")
        self._running: dict[str, tuple[LabProgram, subprocess.Popen[bytes]]] = {}

    def start(self, program: LabProgram) -> None:
        """Start it and wait until it is ready. Raises NotStarted."""
        process = self._starter.submit(self._spawn, program).result()
        self._running[program.name] = program, process
        until, pause = time.monotonic() + READY_SECONDS, 0.01
        while not program.ready():
            if process.poll() is not None or time.monotonic() > until:
                raise LabStartError(f"{program.name} did not come up: {self._said(program)}")
            time.sleep(pause)
            pause = min(2 * pause, 0.2)

    def end(self, name: str) -> None:
        if name not in self._running:
            return
        program, process = self._running.pop(name)
        process.send_signal(program.stop)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end_all(self) -> None:
        """The last that was started first."""
        for name in reversed(list(self._running)):
            self.end(name)
        self._starter.shutdown()

    def listed(self) -> list[dict[str, object]]:
        """Name, process id, port and whether it runs, of each."""
        return [
            {"name": name, "pid": process.pid, "port": program.port, "runs": process.poll() is None}
            for name, (program, process) in self._running.items()
        ]

    def _spawn(self, program: LabProgram) -> "subprocess.Popen[bytes]":
        argv = [
            *(sys.executable, "-m", _TETHER, str(int(signal.SIGQUIT if program.user != "-" else signal.SIGKILL))),
            *(str(os.getpid()), program.user, *program.argv),
        ]  # fmt: skip
        with self._output(program).open("ab") as log:
            return subprocess.Popen(  # the lab's own programs
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )

    def _output(self, program: LabProgram) -> Path:
        return program.output or self._folder / "output" / f"{program.name}.txt"

    def _said(self, program: LabProgram) -> str:
        return self._output(program).read_text(errors="replace")[-1_500:].strip() or "it wrote nothing"


def free_ports(count: int) -> list[int]:
    """Ports on loopback that are free now, each another one."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def make_readiness_check(url: str) -> Callable[[], bool]:
    """Whether the address answers 200."""

    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:  # our own server on loopback
                return bool(answer.status == 200)
        except (OSError, ValueError):
            return False

    return ready
