"""Where runs are kept: a file, or a PostgreSQL server."""

from pathlib import Path

Place = Path


def folder_of(place: Place) -> Path:
    """The folder of what is kept beside the database: files of runs, the log of errors."""
    return place.parent
