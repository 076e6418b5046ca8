"""The key of an endpoint: read from a variable, a file or a command when it is needed, and kept nowhere."""

import os
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from opsleuth.configuration.model_settings import OPENAI, ModelSettings
from opsleuth.configuration.openai_variables import named_base_url
from opsleuth.configuration.secret_references import read_command, read_secret_file, read_variable
from opsleuth.state.errors import ConfigError
from opsleuth.state.tool_errors import UnavailableError

COMMAND_SECONDS = 30


def read_key(
    settings: ModelSettings, environment: Mapping[str, str] | None = None, *, first: bool = True
) -> str | None:
    """The key, or None for an endpoint that needs none. Raises ConfigError where the named place holds none.

    Without a named place: OPSLEUTH_API_KEY, and OPENAI_API_KEY for the address that OPENAI_BASE_URL names, which is
    OpenAI itself where it names none, so that no other endpoint is ever sent that one by accident. OPSLEUTH_API_KEY
    is for the planner's address: `first` is false at another.
    """
    environment = os.environ if environment is None else environment
    if settings.key_command:
        return _read_key(partial(_key_from_command, settings.key_command))
    if settings.key_file:
        return _read_key(partial(read_secret_file, Path(settings.key_file)))
    if settings.key_env:
        return _read_key(partial(read_variable, settings.key_env, environment))
    own = environment.get("OPSLEUTH_API_KEY") if first else None
    named = named_base_url(environment)
    if not own and _same_address(settings.base_url, named or OPENAI):
        own = environment.get("OPENAI_API_KEY")
        if not own and _same_address(settings.base_url, OPENAI):
            raise ConfigError(
                "OpenAI needs a key: set OPENAI_API_KEY, or name a variable, file or command (key_env, key_file, key_command)"
            )
    if not own and _same_address(settings.base_url, OPENAI):
        raise ConfigError(
            f"OpenAI needs a key, and OPENAI_API_KEY belongs to OPENAI_BASE_URL ({named}): "
            "name another variable in key_env, or set OPSLEUTH_API_KEY"
        )
    return own.strip() if own else None


def _same_address(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def _key_from_command(command: str) -> str:
    """The command's only line of output; it is split like a shell would, but run without one."""
    return read_command(shlex.split(command), seconds=COMMAND_SECONDS)


def _read_key(read: Callable[[], str]) -> str:
    try:
        return read()
    except (UnavailableError, ValueError) as error:
        raise ConfigError(f"the model's key cannot be read: {error}") from None
