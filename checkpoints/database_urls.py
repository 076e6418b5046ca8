"""Where runs are kept: a file, or a PostgreSQL server."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A PostgreSQL server. As text it has neither the password nor the parameters, which may hold one.

    `checkpoints` is the connection string for the framework's checkpoints, the same one by default. `folder` is the
    folder on this machine for anything that is not a row: files of runs, the log of errors. `lock_seconds` is how long a writer waits
    for another one.
    """

    url: str = field(repr=False)
    folder: Path
    checkpoints: str | None = field(default=None, repr=False)
    lock_seconds: float = field(default=30.0, repr=False)

    def __str__(self) -> str:
        return url_without_password(self.url)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every spelling of the passwords in the connection strings."""
        found = [word for url in (self.url, self.checkpoints or "") for word in _passwords_in_url(url)]
        return tuple(dict.fromkeys(word for raw in found for word in (raw, unquote(raw)) if word))


Place = Path | PostgresServer


def is_server(text: str) -> bool:
    """Whether this is a connection string of PostgreSQL; anything else is the path of a file."""
    return text.startswith(_SCHEMES)


def folder_of(place: Place) -> Path:
    """The folder of what is kept beside the database: files of runs, the log of errors."""
    return place.folder if isinstance(place, PostgresServer) else place.parent


def url_without_password(url: str) -> str:
    """A connection string without its password and its parameters."""
    scheme, _, rest = url.partition("://")
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    who, at, where = rest.rpartition("@")
    return f"{scheme}://{who.partition(':')[0]}{at}{where}"


def _passwords_in_url(url: str) -> list[str]:
    rest = url.partition("://")[2]
    before = rest.rpartition("@")[0].partition(":")[2]
    named = re.findall(r"[?&](?:password|sslpassword)=([^&#]*)", url)
    return [before, *named, *([os.environ.get("PGPASSWORD", "")] if url else [])]
