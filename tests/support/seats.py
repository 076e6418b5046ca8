"""The program of `seat_rig` at a terminal of its own, or where nobody sits."""

import os
import subprocess
import sys
from typing import Any

import pexpect
from loop_rig import World
from stored_runs import HANG, REPOSITORY

RIG = str(REPOSITORY / "tests" / "support" / "seat_rig.py")


def environment(world: World) -> dict[str, str]:
    paths = f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY / 'tests' / 'support'}"
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
    return subprocess.run(
        [sys.executable, RIG, str(world.folder), verb, *flags],
        env=environment(world),
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
