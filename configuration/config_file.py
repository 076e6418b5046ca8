"""Configuration files, weakest first: the system's, the user's, the project's. One reader for every table in them.

A project's file may have come with a clone. Until somebody trusts its bytes (`opsleuth trust`), it may not say what
to reach, to run or to allow; whoever reads a table keeps to that by `ConfigFile.trusted`.
"""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsleuth.configuration.folders import expand_home, xdg_folder
from opsleuth.configuration.project_trust import is_trusted
from opsleuth.state.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import ValidationError

SYSTEM = Path("/etc/opsleuth")
PROJECT = Path(".opsleuth")
CONFIG, POLICY = "config.toml", "policy.toml"
PROJECT_FILE = PROJECT / CONFIG


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file: `layer` is system, user, project, or another word for who named it. `digest`: SHA-256 of its bytes."""

    layer: str
    path: Path
    trusted: bool = True
    text: str = ""
    digest: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> Mapping[str, Any]:
        """The table `[NAME]`, empty where there is none. Raises ConfigError where it is something else."""
        found = self.document.get(name, {})
        if not isinstance(found, Mapping):
            raise ConfigError(f"{self.path}: {name} is a table: write it under [{name}]")
        return found

    def resolve_path(self, path: str) -> Path:
        """A path that the file names: a relative one starts at the folder that holds `.opsleuth`, else beside the file."""
        base = self.path.parent.parent if self.path.parent.name == PROJECT.name else self.path.parent
        found = expand_home(path)
        return found if found.is_absolute() else base.absolute() / found


def load_config_layers(name: str = CONFIG) -> tuple[ConfigFile, ...]:
    """The files of this name that there are, weakest first. Raises ConfigError for one that cannot be read."""
    read = (read_config_file(layer, path) for layer, path in config_file_locations(name))
    return tuple(file for file in read if file.digest)


def config_file_locations(name: str = CONFIG) -> Iterator[tuple[str, Path]]:
    """Where the files of each layer are, or would be; the project's only where it is."""
    yield "system", SYSTEM / name
    yield "user", xdg_folder("XDG_CONFIG_HOME", ".config") / name
    if found := find_project_file(name):
        yield "project", found


def find_project_file(name: str = CONFIG) -> Path | None:
    """The nearest `.opsleuth/NAME` here or in a folder above, or None."""
    try:
        here = Path.cwd()
    except OSError:  # the folder was removed under us
        return None
    return next((path for top in (here, *here.parents) if _is_file(path := top / PROJECT / name)), None)


def read_config_file(layer: str, path: Path) -> ConfigFile:
    """The file as a layer, empty where there is none. A project's counts as trusted if its bytes are.

    Raises ConfigError for a file that cannot be read, with its line where the TOML is broken.
    """
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
        document = tomllib.loads(text)
    except FileNotFoundError:
        return ConfigFile(layer, path)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror or error}): check its permissions"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML ({error}): repair it") from None
    digest = hashlib.sha256(content).hexdigest()
    return ConfigFile(layer, path, layer != "project" or is_trusted(path, digest), text, digest, document)


def format_validation_errors(error: "ValidationError") -> str:
    """What is wrong, field by field, without the values: they may be secrets."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc'])) or 'the document'}: {e['msg']}"
        for e in error.errors(include_input=False)[:5]
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that is not ours to look into
        return False
