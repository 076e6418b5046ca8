"""Start Python programs by forking a process that has imported opsleuth: each start saves about a second of imports.

Only for programs that run to their end without a terminal. Tests of signals, kills, terminals, imports and start-up
time start a real process with `subprocess`.
"""

import atexit
import codecs
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

PRELOADED = ("cli", "console", "evals", "graph", "models", "nodes", "tools", "checkpoints", "state", "analysis", "verification")  # fmt: skip
"""Rooms of opsleuth whose modules are imported before the first fork; a module whose package is missing is skipped."""

SEED = ("LANG", "LANGUAGE", "LC_", "PYTHON")
APPLIED = ("PYTHONPATH", "PYTHONIOENCODING")
"""Python reads the variables that begin with a SEED once, at its start: programs that differ in them need different
servers, except for those that a forked program can still apply."""
PLAIN_PATH = tuple(sys.path[1:])
"""Where a program without PYTHONPATH finds its modules; in the server, whose own start had none."""

Streams = tuple[IO[bytes], IO[bytes], IO[bytes]]


def run_python(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    typed: str = "",
    timeout: float = 60,
    encoding: str = "utf-8",
) -> "subprocess.CompletedProcess[str]":
    """What `subprocess.run([sys.executable, *arguments])` returns; stdin holds `typed` and then ends.

    `arguments` begin with `-m MODULE`, `-c CODE` or the path of a script. Raises subprocess.TimeoutExpired.
    """
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        stdin.write(typed.encode(encoding))
        stdin.seek(0)
        request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        code = _fork_server(_seed_of(env)).run(request, (stdin, out, errors), timeout)
        texts = [_text_of(stream, encoding) for stream in (out, errors)]
    return subprocess.CompletedProcess([sys.executable, *arguments], code, *texts)


def _seed_of(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((name, value) for name, value in env.items() if name.startswith(SEED) and name not in APPLIED)
    )


def _text_of(stream: IO[bytes], encoding: str) -> str:
    """The text with line ends as subprocess's text mode returns them."""
    stream.seek(0)
    return stream.read().decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


class ForkServer:
    """The client's end of one server process. The server ends when this process does."""

    def __init__(self, seed: Mapping[str, str]) -> None:
        from package_path import find_package_path

        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), str(find_package_path())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], **seed},
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def run(self, request: Mapping[str, Any], streams: Streams, timeout: float) -> int:
        """The exit code of the program, as `subprocess` counts: minus the signal that ended it."""
        reply, theirs = os.pipe()
        try:
            with tempfile.TemporaryFile() as written:
                written.write(json.dumps(request).encode())
                written.seek(0)
                descriptors = [written.fileno(), *(stream.fileno() for stream in streams), theirs]
                try:
                    socket.send_fds(self._socket, [b"."], descriptors)
                finally:
                    os.close(theirs)
            program = _next_number(reply, time.monotonic() + 60)
            code = _next_number(reply, time.monotonic() + timeout)
            if code is None and program is not None:
                os.kill(program, signal.SIGKILL)
                raise subprocess.TimeoutExpired(request["arguments"], timeout)
        finally:
            os.close(reply)
        assert program is not None, "the fork server did not start the program"
        assert code is not None
        return code


def _next_number(reply: int, until: float) -> int | None:
    """The next line of the pipe as a number; None if the time is over. Raises RuntimeError if the server ended."""
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([reply], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        read = os.read(reply, 1)
        if not read:
            raise RuntimeError("the fork server ended before the program did: its stderr is above")
        line += read
    return int(line)


@cache
def _fork_server(seed: tuple[tuple[str, str], ...]) -> ForkServer:
    return ForkServer(dict(seed))


class ProgramRequest:
    """One request as the server received it."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        written, *self.streams, self.reply = descriptors
        with os.fdopen(written, "rb") as file:
            asked = json.loads(file.read())
        self.arguments: list[str] = asked["arguments"]
        self.env: dict[str, str] = asked["env"]
        self.cwd: str = asked["cwd"]

    def take_over(self) -> None:
        """Make this process look as if it had been started for the request."""
        for number, descriptor in enumerate(self.streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(self.env)
        time.tzset()
        os.chdir(self.cwd)
        given = self.env["PYTHONPATH"].split(os.pathsep) if self.env.get("PYTHONPATH") else []
        sys.path[1:] = [*given, *(place for place in PLAIN_PATH if place not in given)]
        if streams := self.env.get("PYTHONIOENCODING"):
            _reopen_streams(*streams.split(":"))


def _reopen_streams(encoding: str, errors: str = "strict") -> None:
    name = codecs.lookup(encoding).name if encoding else None
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding=name, errors=errors)  # type: ignore[union-attr]
    sys.stderr.reconfigure(encoding=name, errors="backslashreplace")  # type: ignore[union-attr]


def _preload() -> None:
    import pkgutil

    import opsleuth

    for room in PRELOADED:
        _import_if_possible(f"opsleuth.{room}")
    for module in pkgutil.walk_packages(opsleuth.__path__, "opsleuth."):
        if module.name.split(".")[1] in PRELOADED and not module.name.endswith("__main__"):
            _import_if_possible(module.name)


def _import_if_possible(module: str) -> None:
    import importlib

    try:
        importlib.import_module(module)
    except ImportError:
        return


def serve(listening: socket.socket) -> ProgramRequest:
    """Fork once for each request. Returns in the process that has to become the program; the server itself never returns."""
    while True:
        said, descriptors, *_ = socket.recv_fds(listening, 1, 5)
        if not said:
            _reap()
            os._exit(0)
        if os.fork() == 0:
            listening.close()
            request = ProgramRequest(descriptors)
            _keep_watch(request)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        _reap()


def _reap() -> None:
    """Collect the watching processes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep_watch(request: ProgramRequest) -> None:
    """Fork the program's process and return in it; the process that waits for it reports its id and its exit code."""
    program = os.fork()
    if program == 0:
        os.close(request.reply)
        return
    os.write(request.reply, f"{program}\n".encode())
    _, status = os.waitpid(program, 0)
    os.write(request.reply, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def execute(arguments: Sequence[str]) -> None:
    """Run what `python ARGUMENTS` would run, as `__main__` of this process."""
    import runpy

    first, *rest = arguments
    if first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()  # noqa: PTH109 - as Python itself does
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - a test's own program
    else:
        sys.argv, sys.path[0] = [first, *rest], str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def main() -> None:
    import gc

    sys.path.insert(1, sys.argv[2])
    _preload()
    gc.freeze()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    request.take_over()
    try:
        execute(request.arguments)
    except SystemExit as leaving:
        _leave(_code_of(leaving))
    except BaseException:  # noqa: BLE001 - as Python does at its outermost border
        sys.excepthook(*sys.exc_info())
        _leave(1)
    _leave(0)


def _code_of(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return leaving.code or 0
    print(leaving.code, file=sys.stderr)
    return 1


def _leave(code: int) -> NoReturn:
    """End the process in Python's order, except that it does not take apart the preloaded modules."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
