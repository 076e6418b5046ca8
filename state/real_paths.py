"""Where a path leads, without an error for links that lead around in a circle."""

import os
from pathlib import Path


def resolve_path(path: Path) -> Path:
    """The absolute path without links. One in a circle of links stays as it is: `Path.resolve` raises RuntimeError there."""
    return Path(os.path.realpath(path))
