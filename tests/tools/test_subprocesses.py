"""A command can always be ended, with everything it started, and its output so far is kept."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from opsleuth.tools.subprocesses import CommandNotStartedError, run_command

HANG_GUARD = 20.0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"


async def test_output_and_exit_code() -> None:
    output = await run_command(["sh", "-c", "echo out; echo err >&2; exit 3"], seconds=HANG_GUARD)
    assert (output.code, output.text, output.ended) == (3, "out\nerr\n", "")


@pytest.mark.slow
async def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    script = "echo before; sleep 300 | cat & echo $! > child; sleep 300 | cat"
    async with asyncio.timeout(HANG_GUARD):
        output = await run_command(["sh", "-c", script], seconds=1.0, folder=tmp_path)
    assert output.code is None
    assert output.text.splitlines()[0] == "before"  # a shell may add that its job was terminated
    assert "1 s" in output.ended
    assert not alive(int((tmp_path / "child").read_text()))


_LEAVERS = {
    "setsid": "setsid sh -c 'echo $$ > child.new; mv child.new child; sleep 300' & ",
    "daemon": "(setsid sh -c '(echo $$ > /dev/null; sh -c \"echo \\$\\$ > child.new; mv child.new child; sleep 300\" &) ; exit 0' &) ; ",
    "deaf": "setsid sh -c 'trap \"\" TERM; echo $$ > child.new; mv child.new child; while :; do sleep 0.1; done' & ",
    "no environment": "env -i setsid sh -c 'echo $$ > child.new; mv child.new child; sleep 300' & ",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who belongs to a command")
@pytest.mark.parametrize("way", _LEAVERS)
async def test_what_left_the_group_does_not_outlive_a_killed_command(tmp_path: Path, way: str) -> None:
    script = _LEAVERS[way] + "while [ ! -e child ]; do sleep 0.02; done; sleep 300"
    async with asyncio.timeout(HANG_GUARD):
        output = await run_command(["sh", "-c", script], seconds=0.7, folder=tmp_path)
    assert "ended after its limit" in output.ended
    assert not alive(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("end_leftovers", [False, True])
@pytest.mark.parametrize("code", [0, 3])
async def test_a_daemon_outlives_a_command_that_ended_by_itself_unless_declared(
    tmp_path: Path, code: int, *, end_leftovers: bool
) -> None:
    script = f"sleep 300 & echo $! > child; exit {code}"
    async with asyncio.timeout(HANG_GUARD):
        output = await run_command(
            ["sh", "-c", script], seconds=HANG_GUARD, folder=tmp_path, end_leftovers=end_leftovers
        )
    child = int((tmp_path / "child").read_text())
    try:
        assert (output.code, output.ended) == (code, "")
        assert alive(child) is not end_leftovers
    finally:
        if alive(child):
            os.kill(child, signal.SIGKILL)


@pytest.mark.slow
async def test_a_command_that_ignores_term_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > pid; echo deaf; while :; do sleep 0.1; done"
    async with asyncio.timeout(HANG_GUARD):
        output = await run_command(["sh", "-c", script], seconds=1.0, folder=tmp_path)
    assert (output.code, output.text) == (None, "deaf\n")
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_cancelling_ends_the_group(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    task = asyncio.create_task(
        run_command(["sh", "-c", "echo $$ > started; sleep 300"], seconds=HANG_GUARD, folder=tmp_path)
    )
    pid = int(await asyncio.to_thread((tmp_path / "started").read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_long_output_keeps_head_and_tail() -> None:
    program = "print('first'); print('x' * 1_000_000); print('last')"
    output = await run_command([sys.executable, "-c", program], seconds=HANG_GUARD, keep=3_000)
    assert output.text.startswith("first\n")
    assert output.text.endswith("last\n")
    assert (output.size, len(output.text) < 3_200) == (1_000_012, True)
    assert "bytes cut" in output.text


async def test_too_much_output_ends_the_command() -> None:
    async with asyncio.timeout(HANG_GUARD):
        output = await run_command(["yes"], seconds=HANG_GUARD, most=1_000_000)
    assert "more than 1,000,000 bytes" in output.ended


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(
        CommandNotStartedError, match="no-such-program-anywhere cannot be started: No such file"
    ) as refused:
        await run_command(["no-such-program-anywhere"], seconds=1)
    assert refused.value.missing
    with pytest.raises(CommandNotStartedError, match="null byte"):
        await run_command(["sh", "-c", "\0"], seconds=1)


AS_ROOTS_CHILD = """
import asyncio, os, sys, threading
from pathlib import Path
from types import SimpleNamespace
from opsleuth.tools.declared.commands import DeclaredCommand, build_command_tool
from opsleuth.tools.spec import ToolError

fifo, argv = sys.argv[1], ["sh", "-c", "echo $$ > " + sys.argv[1] + "; trap '' TERM; sleep 300 & wait; wait"]
tool = build_command_tool(DeclaredCommand(name="c", argv=argv, purpose="p", seconds=3))

def give_up_root():
    print(int(Path(fifo).read_text()), flush=True)
    os.setresuid(65534, 65534, 65534)

async def main():
    threading.Thread(target=give_up_root, daemon=True).start()
    try:
        await tool.run(tool.arguments(), SimpleNamespace(idempotency_key=None))
    except ToolError as error:
        print(type(error).__name__, error, flush=True)
    finally:
        os._exit(0)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start what another user may not end")
def test_a_command_that_may_not_be_ended_is_no_command_that_was_never_started(tmp_path: Path) -> None:
    """What `sudo` starts is root's: the kernel refuses our signals, and it goes on."""
    os.mkfifo(tmp_path / "started")
    done = subprocess.run(
        [sys.executable, "-c", AS_ROOTS_CHILD, str(tmp_path / "started")],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
        check=True,
    )
    pid, said = done.stdout.splitlines()
    assert alive(int(pid))
    os.killpg(int(pid), signal.SIGKILL)
    assert said.startswith(
        "OutcomeUnknownError c ended (ended after its limit of 3 s, and could not be ended"
    )
