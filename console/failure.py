"""The last word on an error: what a person reads, the exit code, and where the traceback went."""

import contextlib
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from opsleuth import __version__
from opsleuth.checkpoints.harmless import harmless
from opsleuth.checkpoints.redact import Redactor
from opsleuth.state.errors import ConfigError
from opsleuth.state.folders import folder
from opsleuth.state.outcome import ExitCode

_LONGEST = 300
"""Characters of a path that are shown."""


def told(error: Exception) -> int:
    """Say on stderr what happened. An error that was foreseen knows its code; any other goes to the log file.

    A reader that went away is told nothing. A file that the machine does not give us is no error of ours.
    """
    if isinstance(error, BrokenPipeError):
        close_stdout()
        return ExitCode.SIGPIPE
    code = getattr(error, "exit_code", None)
    if isinstance(code, ExitCode):
        _say(str(error))
        return int(code)
    if isinstance(error, OSError) and error.filename is not None:
        _say(
            f"{_cut(str(error.filename))} cannot be used: {error.strerror}. Check the path and its permissions"
        )
        return ExitCode.CONFIG
    where = _kept(error)
    _say(
        f"internal error: {type(error).__name__}. What was stored is safe. "
        + (
            f"The traceback is in {where}: please report it."
            if where
            else "There is no log folder that can be written."
        )
    )
    return ExitCode.INTERNAL


def close_stdout() -> None:
    """Let nothing more be written to a stdout that nobody reads, so that the end of the process is silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _cut(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…"


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"opsleuth: {harmless(text)}\n")


def _kept(error: Exception) -> Path | None:
    try:
        path = folder("XDG_STATE_HOME", ".local/state") / "errors.log"
    except ConfigError:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    text = harmless(Redactor().text("".join(traceback.format_exception(error))).value)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
        ) as file:
            file.write(f"{now} opsleuth {__version__}\n{text}\n")
    except OSError:
        return None
    return path
