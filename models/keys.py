"""The key of an endpoint: read from a variable, a file or a command when it is needed, and kept nowhere."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from opsleuth.models.settings import OPENAI, ModelSettings
from opsleuth.state.errors import ConfigError
from opsleuth.state.folders import expanded

COMMAND_SECONDS = 30


def read_key(
    settings: ModelSettings, environment: Mapping[str, str] | None = None, *, first: bool = True
) -> str | None:
    """The key, or None for an endpoint that needs none. Raises ConfigError where the named place holds none.

    Without a named place: OPSLEUTH_API_KEY, and OPENAI_API_KEY for OpenAI itself, so that no other endpoint
    is ever sent that one by accident. OPSLEUTH_API_KEY is for the planner's address: `first` is false at another.
    """
    environment = os.environ if environment is None else environment
    if settings.key_command:
        return _of_command(settings.key_command)
    if settings.key_file:
        return _of_file(Path(settings.key_file))
    if settings.key_env:
        return _named(settings.key_env, environment)
    own = environment.get("OPSLEUTH_API_KEY") if first else None
    if not own and settings.base_url == OPENAI:
        own = environment.get("OPENAI_API_KEY")
        if not own:
            raise ConfigError(
                "OpenAI needs a key: set OPENAI_API_KEY, or name a variable, file or command (key_env, key_file, key_command)"
            )
    return own.strip() if own else None


def _named(name: str, environment: Mapping[str, str]) -> str:
    if key := environment.get(name, "").strip():
        return key
    raise ConfigError(f"the variable {name} that should hold the model's key is not set or empty")


def _of_file(path: Path) -> str:
    try:
        key = expanded(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the file {path} that should hold the model's key cannot be read: {error}"
        ) from None
    if not key or "\n" in key:
        raise ConfigError(f"the file {path} should hold the model's key alone, on one line")
    return key


def _of_command(command: str) -> str:
    """The command's only line of output; it is split like a shell would, but run without one."""
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own command, from the operator's own file
            shlex.split(command),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"the command for the model's key cannot be run: {type(error).__name__}") from None
    key = done.stdout.strip()
    if done.returncode or not key or "\n" in key:
        raise ConfigError(
            f"the command for the model's key ended with code {done.returncode} and should print the key alone, on one line"
        )
    return key
