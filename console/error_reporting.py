"""Report an error to the user: the message, the exit code, and where the traceback went."""

import contextlib
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from opsleuth import __version__
from opsleuth.configuration.folders import xdg_folder
from opsleuth.redaction.control_characters import escape_control_characters
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.errors import ConfigError, OpsleuthError
from opsleuth.state.run_status import ExitCode

_LONGEST = 300
"""Characters of a path that are shown."""


def report_error(error: Exception) -> int:
    """Say on stderr what happened. An error that was foreseen knows its code; any other goes to the log file.

    A reader that went away is told nothing. A file that the machine withholds is not our error.
    """
    if isinstance(error, BrokenPipeError):
        close_stdout()
        return ExitCode.SIGPIPE
    if isinstance(error, OpsleuthError):
        _write_to_stderr(str(error))
        return int(error.exit_code)
    if isinstance(error, OSError) and error.filename is not None:
        _write_to_stderr(
            f"{_shorten_path(str(error.filename))} cannot be used: {error.strerror}. Check the path and its permissions"
        )
        return ExitCode.CONFIG
    if isinstance(error, ModuleNotFoundError) and (missing := _explain_missing_module(error)):
        _write_to_stderr(missing)
        return ExitCode.CONFIG
    where = _log_traceback(error)
    _write_to_stderr(
        f"internal error: {type(error).__name__}. What was stored is safe. "
        + (
            f"The traceback is in {where}: please report it."
            if where
            else "There is no log folder that can be written."
        )
    )
    return ExitCode.INTERNAL


def _explain_missing_module(error: ModuleNotFoundError) -> str | None:
    from opsleuth.console.missing_packages import explain_missing_package  # no command that works loads it

    return explain_missing_package(error.name or "")


def close_stdout() -> None:
    """Let nothing more be written to a stdout that nobody reads, so that the end of the process is silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shorten_path(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…"


def _write_to_stderr(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"opsleuth: {escape_control_characters(text)}\n")


def _log_traceback(error: Exception) -> Path | None:
    try:
        path = xdg_folder("XDG_STATE_HOME", ".local/state") / "errors.log"
    except ConfigError:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    text = escape_control_characters(Redactor().text("".join(traceback.format_exception(error))).value)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
        ) as file:
            file.write(f"{now} opsleuth {__version__}\n{text}\n")
    except OSError:
        return None
    return path
