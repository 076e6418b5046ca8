"""Processes of ours that speak on pipes, for tests that stop and kill them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def program(code: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that runs this code; ended at the latest with the context."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    """The next line that it says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def say(process: "subprocess.Popen[str]", text: str) -> None:
    """Write it a line."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()
