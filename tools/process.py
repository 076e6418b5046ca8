"""Running a command so that it can be ended: own session, output to a file, TERM, one second, KILL to the group.

Output goes to a file and not through a pipe: a grandchild that keeps the pipe open would hold us as well.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TERM_GRACE = 1.0
_POLL = 0.05


class NotStarted(Exception):
    """The program cannot be started, so nothing was done. `missing`: there is no such program."""

    def __init__(self, program: str, error: Exception) -> None:
        super().__init__(f"{program} cannot be started: {getattr(error, 'strerror', None) or error}")
        self.missing = isinstance(error, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left: `code` None if it was ended by us; `text` with its middle cut if it was long."""

    code: int | None
    text: str
    size: int
    ended: str = ""


async def run_command(
    argv: Sequence[str],
    *,
    seconds: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    keep: int = 64_000,
    most: int = 64_000_000,
) -> Output:
    """Run `argv` (no shell) for at most `seconds`; output and errors together, in order.

    `keep` bytes of the output are returned (head and tail), more than `most` bytes end the command.
    When it is cut or cancelled its whole process group is gone before this returns, unless it is another user's:
    then `ended` says that it may go on. Raises NotStarted; whatever else is raised says nothing about what was done.
    """
    with tempfile.TemporaryFile() as file:
        process = await _started(argv, file, folder, environment)
        try:
            ended = await _watch(process, file, seconds, most)
        finally:
            gone = await _end_group(process)
        if not gone:
            ended = f"{ended}, and could not be ended: it runs as another user, and may go on"
        text, size = _head_and_tail(file, keep)
        return Output(None if ended else process.returncode, text, size, ended)


async def _started(
    argv: Sequence[str], file: IO[bytes], folder: Path | None, environment: Mapping[str, str] | None
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=asyncio.subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotStarted(argv[0], error) from None


async def _watch(process: asyncio.subprocess.Process, file: IO[bytes], seconds: float, most: int) -> str:
    """Wait for the end of the program; why it must be ended, if it does not end by itself."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    waiting = asyncio.ensure_future(process.wait())
    try:
        while (left := deadline - loop.time()) > 0:
            done, _ = await asyncio.wait({waiting}, timeout=min(left, 0.25))
            if done:
                return ""
            if os.fstat(file.fileno()).st_size > most:
                return f"ended after more than {most:,} bytes of output"
    finally:
        waiting.cancel()
    return f"ended after its limit of {seconds:g} s"


async def _end_group(process: asyncio.subprocess.Process) -> bool:
    """Nobody of the group that we may signal is left afterwards, also when this is itself cancelled.

    Whether the program itself has ended.
    """
    try:
        if _signal(process.pid, signal.SIGTERM):
            await _gone(process, TERM_GRACE)
    finally:
        _signal(process.pid, signal.SIGKILL)
    if process.returncode is None and not _ours(process.pid):
        return False
    await process.wait()
    return True


def _ours(pid: int) -> bool:
    """Whether we may end this process: not one of another user, such as `sudo`."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        return True
    return True


async def _gone(process: asyncio.subprocess.Process, seconds: float) -> None:
    for _ in range(round(seconds / _POLL)):
        await asyncio.sleep(_POLL)
        if not _signal(process.pid, 0):
            return


def _signal(group: int, number: int) -> bool:
    """Whether the group still had a member; one of another user is there, and cannot be signalled."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _head_and_tail(file: IO[bytes], keep: int) -> tuple[str, int]:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if size <= keep:
        return file.read().decode("utf-8", "replace"), size
    head, tail = keep - keep // 3, keep // 3
    first = file.read(head)
    file.seek(size - tail)
    mark = f"\n…[{size - keep:,} bytes cut]…\n"
    return first.decode("utf-8", "replace") + mark + file.read().decode("utf-8", "replace"), size
