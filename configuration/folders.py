"""Where opsleuth keeps things on this machine: below the base folders of XDG."""

import os
from pathlib import Path

from opsleuth.state.errors import ConfigError


def xdg_folder(variable: str, default: str) -> Path:
    """The folder of opsleuth under an XDG base folder; a relative one in the environment is ignored, as XDG asks."""
    base = Path(os.environ.get(variable) or "")
    return (base if base.is_absolute() else expand_home("~") / default) / "opsleuth"


def expand_home(path: str | Path) -> Path:
    """The path with a leading `~` or `~user` as that user's folder. Raises ConfigError where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path} leads nowhere: this user has no home folder. Set HOME, or write paths without ~"
        ) from None
