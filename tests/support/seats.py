"""The program of `seat_rig` at a terminal of its own, or where nobody sits."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pexpect
from forked import run_python
from loop_rig import World
from package_path import PACKAGE_PATH
from stored_runs import HANG, REPOSITORY

RIG = str(REPOSITORY / "tests" / "support" / "seat_rig.py")


def environment(world: World) -> dict[str, str]:
    paths = f"{PACKAGE_PATH}{os.pathsep}{REPOSITORY / 'tests' / 'support'}"
    return {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(world.folder), "TERM": "xterm", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}  # fmt: skip


def seated(world: World, verb: str = "start", *, piped: str = "", lines: int = 40) -> Any:
    """The program at a terminal of its own."""
    command = [sys.executable, RIG, str(world.folder), verb]
    if piped:
        command = ["sh", "-c", f'{piped} | "$@"', "sh", *command]
    return pexpect.spawn(
        command[0],
        command[1:],
        env=environment(world),
        encoding="utf-8",
        timeout=HANG,
        dimensions=(lines, 100),
    )


def ended(child: Any) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


def away(
    world: World, verb: str = "start", *flags: str, typed: str | None = None
) -> subprocess.CompletedProcess[str]:
    """The program where nobody sits."""
    return run_python(
        [RIG, str(world.folder), verb, *flags],
        env=environment(world),
        typed=typed or "",
        timeout=HANG,
    )


def told(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """Any command of the command line, over this world."""
    return away(world, "cli", *words)


@contextmanager
def living(world: World, verb: str = "start", *flags: str) -> Iterator["subprocess.Popen[str]"]:
    """The program where nobody sits, in the middle of its work: its events come on stdout."""
    with subprocess.Popen(
        [sys.executable, RIG, str(world.folder), verb, "--json", *flags],
        env=environment(world),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        guard = threading.Timer(HANG, process.kill)
        guard.start()
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def heard(stream: IO[str] | None, text: str) -> str:
    """The next line that holds the text. Fails where the stream ends before."""
    assert stream is not None
    lines = []
    for line in iter(stream.readline, ""):
        lines.append(line)
        if text in line:
            return line
    raise AssertionError(f"the stream ended without {text!r}: {''.join(lines)}")


def left(process: "subprocess.Popen[str]") -> tuple[int, list[str]]:
    """The exit code, and the lines of stdout up to the end."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    return process.wait(), lines
