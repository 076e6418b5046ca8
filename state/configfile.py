"""Configuration files: where they are, how one is read, and how its mistakes are told."""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opsleuth.state.errors import ConfigError

PROJECT_FILE = Path(".opsleuth/config.toml")


def project_file(start: Path) -> Path | None:
    """The nearest `.opsleuth/config.toml` in `start` or above it, or None."""
    folders = (start, *start.parents)
    return next((folder / PROJECT_FILE for folder in folders if (folder / PROJECT_FILE).is_file()), None)


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The file's document and the SHA-256 of its bytes; nothing and an empty text where there is no file.

    Raises ConfigError for a file that cannot be read, with its line where the TOML is broken.
    """
    try:
        content = path.read_bytes()
        return tomllib.loads(content.decode("utf-8")), hashlib.sha256(content).hexdigest()
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror or error}): check its permissions"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is no valid TOML ({error}): repair it") from None


def problems(error: ValidationError) -> str:
    """What is wrong, field by field, without the values: they may be secrets."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc'])) or 'the document'}: {e['msg']}"
        for e in error.errors(include_input=False)[:5]
    )
