"""A forked program behaves like one that was started: tests that use `run_python` depend on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import servers
from forked import run_python

PROGRAMS = {
    "arguments": "import sys; print(sys.argv, __name__)",
    "exit code": "import sys; sys.exit(7)",
    "exit text": "import sys; sys.exit('no such thing')",
    "exception": "raise ValueError('broken')",
    "stdin": "import sys; print(repr(sys.stdin.read()))",
    "environment": "import os, time; print(os.environ['SHOP'], time.tzname, os.getcwd(), os.environ.get('HOSTILE'))",
    "at exit": "import atexit; atexit.register(print, 'last'); print('first')",
    "thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start(); print('main')",
    "child": "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', 'print(1); raise SystemExit(3)']).returncode)",
    "killed": "import os, signal; print('lost?', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "stderr": "import sys; print('täglich', file=sys.stderr)",
    "path": "import sys; print(sys.path)",
    "encoding": "import sys; print(*[(s.encoding, s.errors) for s in (sys.stdin, sys.stdout, sys.stderr)], 'ä')",
    "event loop": "import asyncio; print(asyncio.run(asyncio.sleep(0, 5)))",
}


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
@pytest.mark.parametrize(
    "more",
    [{}, {"PYTHONPATH": "/nowhere:/elsewhere", "PYTHONIOENCODING": "latin-1:replace"}],
    ids=["plain", "set"],
)
def test_it_ends_as_a_started_program_does(tmp_path: Path, code: str, more: dict[str, str]) -> None:
    environment = {"PATH": os.environ["PATH"], "SHOP": "orders", "TZ": "Asia/Shanghai", **more}
    encoding = "latin-1" if more else "utf-8"
    started = subprocess.run(
        [sys.executable, "-c", code, "a", "b c"],
        env=environment, cwd=tmp_path, input="typed\n", capture_output=True, encoding=encoding, check=False,
    )  # fmt: skip
    forked = run_python(
        ["-c", code, "a", "b c"], env=environment, cwd=tmp_path, typed="typed\n", encoding=encoding
    )
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


def test_one_program_leaves_nothing_to_the_next() -> None:
    environment = {"PATH": os.environ["PATH"]}
    code = "import opsleuth, os; print(hasattr(opsleuth, 'mark'), os.environ.get('MARK')); opsleuth.mark = os.environ['MARK'] = '1'"
    said = [run_python(["-c", code], env=environment).stdout for _ in range(2)]
    assert said == ["False None\n", "False None\n"]


@pytest.mark.slow
def test_a_program_that_hangs_is_killed(tmp_path: Path) -> None:
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        run_python(["-c", code, str(tmp_path / "pid")], env={"PATH": os.environ["PATH"]}, timeout=3)
    process = Path("/proc") / (tmp_path / "pid").read_text()
    servers.until(lambda: not process.exists())
