"""Write a file atomically: readers never see half of it, and a failure leaves the old one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replace_file_atomically(path: Path) -> Iterator[Path]:
    """Where to write what will be at `path`; it moves there at the end, unless that ends with an error.

    A link stays: what it points at is replaced. A device or a pipe is written to itself: it is not a file to be replaced.
    Raises OSError.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    place = Path(os.path.realpath(path))
    part = place.with_name(f".{place.name[:200]}.{os.getpid()}.part")
    try:
        yield part
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
