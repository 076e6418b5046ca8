"""Where opsleuth keeps things on this machine: below the base folders of XDG."""

import os
from pathlib import Path


def folder(variable: str, default: str) -> Path:
    """The folder of opsleuth under an XDG base folder; a relative one in the environment is ignored, as XDG asks."""
    base = Path(os.environ.get(variable) or "")
    return (base if base.is_absolute() else Path.home() / default) / "opsleuth"
