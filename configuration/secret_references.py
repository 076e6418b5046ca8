"""Secrets by reference: configuration names the place, never the value; the value is read when it is needed.

```toml
token = { env = "PROMETHEUS_TOKEN" }        # a variable
token = { file = "~/.secrets/prometheus" }  # a file that holds it alone, on one line
token = { command = ["pass", "show", "prometheus"] }
token = { keyring = "prometheus", user = "oncall" }   # needs the package keyring
```
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from opsleuth.configuration.folders import expand_home
from opsleuth.state.base import FrozenModel, Name
from opsleuth.state.json_types import JSON
from opsleuth.state.tool_errors import UnavailableError

COMMAND_SECONDS = 5.0

_WORDS = re.compile(r"[\w.-]+")
_Word = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class Secret(FrozenModel):
    """Where a secret is found: exactly one of the four places."""

    env: Name | None = None
    file: Name | None = None
    command: Annotated[tuple[_Word, ...], Field(min_length=1, max_length=50)] | None = None
    keyring: Name | None = None
    user: Name | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        places = [p for p in (self.env, self.file, self.command, self.keyring) if p is not None]
        if len(places) != 1:
            raise ValueError("name one place: env, file, command or keyring (with user)")
        if (self.user is None) is not (self.keyring is None):
            raise ValueError("keyring and user belong together: the service and the account")
        return self

    @property
    def place(self) -> str:
        """The place in words; never the value."""
        if self.env:
            return f"variable {self.env}"
        if self.file:
            return f"file {self.file}"
        return f"command {self.command[0]}" if self.command else f"keyring entry {self.keyring}"


Learn = Callable[[str], None]


class Vault:
    """Reads secrets and tells each to those who must never let it out (the redactor).

    `shown` are the words that the configuration itself shows. A password that is one of them, as of the user postgres
    with the password postgres, is told to nobody: it cannot be hidden, and its name would vanish from all evidence.
    """

    def __init__(self) -> None:
        self.shown: set[str] = set()
        self._known: dict[Secret, str] = {}
        self._met: set[str] = set()
        self._listeners: list[Learn] = []

    def listen(self, learn: Learn) -> None:
        """Tell `learn` every secret that was read, and every one to come."""
        self._listeners.append(learn)
        for value in (*self._known.values(), *self._met):
            self._teach(learn, value)

    def learn(self, value: str) -> None:
        """A secret that was found in another program's files: it must never come out either."""
        if value not in self._met:
            self._met.add(value)
            for learn in self._listeners:
                self._teach(learn, value)

    def reveal(self, secret: Secret) -> str:
        """The value. Raises UnavailableError, whose text names the place and what is wrong with it."""
        if secret not in self._known:
            value = _read_secret(secret)
            self._known[secret] = value
            for learn in self._listeners:
                self._teach(learn, value)
        return self._known[secret]

    def _teach(self, learn: Learn, value: str) -> None:
        """The value, and of a connection string its password too: error texts quote parts of it."""
        parts = [value, urlsplit(value).password or ""] if "://" in value else [value]
        for part in parts:
            if part and part not in self.shown:
                learn(part)


def words_in_settings(settings: JSON) -> Iterator[str]:
    """The words of settings that name things, such as users, hosts and databases."""
    if isinstance(settings, Mapping):
        settings = settings.values()
    elif isinstance(settings, str):
        yield from _WORDS.findall(settings)
        return
    if isinstance(settings, Iterable):
        for value in settings:
            yield from words_in_settings(value)


def _read_secret(secret: Secret) -> str:
    if secret.env:
        return read_variable(secret.env)
    if secret.file:
        return read_secret_file(Path(secret.file))
    if secret.command:
        return read_command(secret.command)
    return _require_single_line(_read_keyring(secret.keyring or "", secret.user or ""), secret.place)


def read_variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """The secret in an environment variable. Raises UnavailableError, like the other readers, without the value."""
    value = (os.environ if environment is None else environment).get(name, "")
    if not value.strip():
        raise UnavailableError(f"the variable {name} is not set or empty: export it")
    return _require_single_line(value, f"variable {name}")


def read_secret_file(path: Path) -> str:
    """The secret that a file holds alone, on one line."""
    try:
        text = expand_home(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UnavailableError(f"the secret's file {path} cannot be read: {reason}") from None
    return _require_single_line(text, f"file {path}")


def read_command(argv: Sequence[str], *, seconds: float = COMMAND_SECONDS) -> str:
    """The secret that a command prints alone, on one line."""
    printed = run_secret_command(argv, seconds=seconds)
    if printed.code:
        raise UnavailableError(f"the command {argv[0]} that prints a secret ended with code {printed.code}")
    try:
        text = printed.output.decode("utf-8")
    except UnicodeDecodeError:
        raise UnavailableError(f"the command {argv[0]} printed no text where a secret was expected") from None
    return _require_single_line(text, f"command {argv[0]}")


class Printed(NamedTuple):
    """What a command left: its exit code, what it printed, and the end of its error output on one line."""

    code: int
    output: bytes
    problem: str


def run_secret_command(
    argv: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> Printed:
    """Run the operator's own command that prints a secret: without a shell, and without our standard input.

    Raises UnavailableError where it cannot be run, or does not end within `seconds`.
    """
    try:
        done = subprocess.run(  # from the operator's own, trusted configuration
            argv,
            env=environment,
            capture_output=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"the command {argv[0]} did not end within {seconds:g} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnavailableError(f"the command {argv[0]} cannot be run: {reason}") from None
    problem = " ".join(done.stderr[-2_000:].decode("utf-8", "replace").split())[-300:]
    return Printed(done.returncode, done.stdout, problem)


def _require_single_line(text: str, place: str) -> str:
    value = text.strip()
    if not value or "\n" in value:
        raise UnavailableError(f"the {place} should hold the secret alone, on one line")
    return value


def _read_keyring(service: str, user: str) -> str:
    try:
        import keyring  # an optional package, loaded where a secret lies in a keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise UnavailableError("a secret lies in a keyring: pip install keyring") from None
    try:
        value = keyring.get_password(service, user)
    except KeyringError as error:
        raise UnavailableError(f"the keyring cannot be read: {type(error).__name__}") from None
    if value is None:
        raise UnavailableError(f"the keyring has no entry {service} of {user}: keyring set {service} {user}")
    return str(value)
