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
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from opsleuth.state.base import Frozen, Name
from opsleuth.state.folders import expanded
from opsleuth.tools.spec import Unavailable

COMMAND_SECONDS = 5.0

_WORDS = re.compile(r"[\w.-]+")
_Word = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class Secret(Frozen):
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
        """The value. Raises Unavailable, whose text names the place and what is wrong with it."""
        if secret not in self._known:
            value = _read(secret).strip()
            if not value or "\n" in value:
                raise Unavailable(f"the {secret.place} should hold the secret alone, on one line")
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


def shown_in(settings: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """The words of settings that name things, such as users, hosts and databases."""
    if isinstance(settings, Mapping):
        settings = settings.values()
    elif isinstance(settings, str):
        yield from _WORDS.findall(settings)
        return
    if isinstance(settings, Iterable):
        for value in settings:
            yield from shown_in(value)


def _read(secret: Secret) -> str:
    if secret.env:
        return _of_variable(secret.env)
    if secret.file:
        return _of_file(Path(secret.file))
    if secret.command:
        return _of_command(secret.command)
    return _of_keyring(secret.keyring or "", secret.user or "")


def _of_variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value.strip():
        raise Unavailable(f"the variable {name} is not set or empty: export it")
    return value


def _of_file(path: Path) -> str:
    try:
        return expanded(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise Unavailable(f"the secret's file {path} cannot be read: {reason}") from None


def _of_command(argv: tuple[str, ...]) -> str:
    """What the operator's own command prints; run without a shell, and without our standard input."""
    try:
        done = subprocess.run(  # noqa: S603 - from the operator's own, trusted configuration
            argv,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired) as error:
        raise Unavailable(
            f"the command {argv[0]} that tells a secret cannot be run: {type(error).__name__}"
        ) from None
    if done.returncode:
        raise Unavailable(f"the command {argv[0]} that tells a secret ended with code {done.returncode}")
    return done.stdout


def _of_keyring(service: str, user: str) -> str:
    try:
        import keyring  # noqa: PLC0415 - an optional package, loaded where a secret lies in a keyring
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        raise Unavailable("a secret lies in a keyring: pip install keyring") from None
    try:
        value = keyring.get_password(service, user)
    except KeyringError as error:
        raise Unavailable(f"the keyring cannot be read: {type(error).__name__}") from None
    if value is None:
        raise Unavailable(f"the keyring has no entry {service} of {user}: keyring set {service} {user}")
    return str(value)
