"""Running a command so that it can be ended: own session, output to a file, TERM, one second, KILL to all it started.

What a command that ends by itself leaves running is a service that it started, and goes on. Output goes to a file and not through a pipe: a grandchild that keeps the pipe open would hold us as well.
"""

import asyncio
import os
import secrets
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.process_trees import COMMAND_MARK, RunningProcess, find_process_tree, signal_process

TERM_GRACE = 1.0
_POLL = 0.05
_ROUNDS = 20


class CommandNotStartedError(OpsleuthError):
    """The program cannot be started, so nothing was done. `missing`: there is no such program."""

    exit_code = ExitCode.CONFIG

    def __init__(self, program: str, error: Exception) -> None:
        super().__init__(f"{program} cannot be started: {getattr(error, 'strerror', None) or error}")
        self.missing = isinstance(error, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class CommandOutput:
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
    end_leftovers: bool = False,
) -> CommandOutput:
    """Run `argv` (no shell) for at most `seconds`; output and errors together, in order.

    `keep` bytes of the output are returned (head and tail), more than `most` bytes end the command.
    When it is cut or cancelled, or with `end_leftovers`, all that it started is gone before this returns, unless it is
    another user's: then `ended` says that it may go on. Raises NotStarted; whatever else is raised says nothing about
    what was done.
    """
    mark = secrets.token_hex(8)
    marked = {**(os.environ if environment is None else environment), COMMAND_MARK: mark}
    with tempfile.TemporaryFile() as file:
        process = await _start_process(argv, file, folder, marked)
        gone, ended = True, "cancelled"
        try:
            ended = await _watch_until_exit(process, file, seconds, most)
        finally:
            if ended or end_leftovers:
                gone = await _end_all(process, mark)
        if not gone:
            ended = f"{ended}, and could not be ended: it runs as another user, and may go on"
        text, size = _read_head_and_tail(file, keep)
        return CommandOutput(None if ended else process.returncode, text, size, ended)


async def _start_process(
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
        raise CommandNotStartedError(argv[0], error) from None


async def _watch_until_exit(
    process: asyncio.subprocess.Process, file: IO[bytes], seconds: float, most: int
) -> str:
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


async def _end_all(process: asyncio.subprocess.Process, mark: str) -> bool:
    """Nothing that the command started and that we may signal is left afterwards, also when this is itself cancelled.

    Whether the program itself has ended.
    """
    tree = find_process_tree(process.pid, mark)
    try:
        if _signal_all(process.pid, tree, signal.SIGTERM):
            await _wait_for_end(process, tree, TERM_GRACE)
    finally:
        _kill_all(process.pid, tree, mark)
    if process.returncode is None and not _may_signal(process.pid):
        return False
    await process.wait()
    return True


def _kill_all(group: int, tree: set[RunningProcess], mark: str) -> None:
    """Kill repeatedly until no new process appears: a killed one may just have started another."""
    _signal_all(group, tree, signal.SIGKILL)
    seen = set(tree)
    for _ in range(_ROUNDS):
        if not (more := find_process_tree(group, mark) - seen):
            return
        _signal_all(group, more, signal.SIGKILL)
        seen |= more


def _may_signal(pid: int) -> bool:
    """Whether we may end this process: not one of another user, such as `sudo`."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        return True
    return True


async def _wait_for_end(
    process: asyncio.subprocess.Process, tree: set[RunningProcess], seconds: float
) -> None:
    for _ in range(round(seconds / _POLL)):
        await asyncio.sleep(_POLL)
        if not _signal_all(process.pid, tree, 0):
            return


def _signal_all(group: int, tree: set[RunningProcess], number: int) -> bool:
    """Whether anything is left of the group and of what left it."""
    left = [signal_process(process, number) for process in tree]
    return _signal_group(group, number) or any(left)


def _signal_group(group: int, number: int) -> bool:
    """Whether the group still had a member; one of another user is there, and cannot be signalled."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read_head_and_tail(file: IO[bytes], keep: int) -> tuple[str, int]:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if size <= keep:
        return file.read().decode("utf-8", "replace"), size
    head, tail = keep - keep // 3, keep // 3
    first = file.read(head)
    file.seek(size - tail)
    mark = f"\n…[{size - keep:,} bytes cut]…\n"
    return first.decode("utf-8", "replace") + mark + file.read().decode("utf-8", "replace"), size
