"""Finds the files that the glob patterns of a source's settings match."""

import glob
from collections.abc import Iterable
from pathlib import Path


def find_matching_paths(patterns: Iterable[str]) -> set[Path]:
    """Every path, folders included, that one of the patterns matches; `**` crosses folders."""
    # Path.glob refuses absolute patterns.
    return {Path(path) for pattern in patterns for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207
