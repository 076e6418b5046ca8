"""Runbooks as Markdown files of a folder, of a source's or of a case's."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from opsleuth.analysis.records import Runbook
from opsleuth.analysis.runbooks import parse_runbook
from opsleuth.tools.spec import UnavailableError

MOST_FILES, MOST_BYTES = 1_000, 200_000
"""Files of a folder, and bytes of each, that are looked at."""


def read_runbooks(folder: Path) -> Iterator[Runbook]:
    """The runbooks of a folder, in the order of their names. Raises UnavailableError for a folder that cannot be read."""
    if not folder.is_dir():
        raise UnavailableError(f"{folder} is not a folder")
    files = sorted(path for path in folder.rglob("*.md") if path.is_file())
    for path in islice(files, MOST_FILES):
        try:
            with path.open("rb") as file:
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise UnavailableError(f"the runbook {path} cannot be read: {error.strerror}") from None
        yield parse_runbook(path.relative_to(folder).as_posix(), text.replace("\r\n", "\n"))
