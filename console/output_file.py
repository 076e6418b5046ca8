"""The file that `-o` names: written as a whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from opsleuth.state.atomic_write import replace_file_atomically


@contextmanager
def open_output_path(path: Path) -> Iterator[Path]:
    """The path to write to; on success it replaces `path`. Raises BadParameter where it cannot be written."""
    try:
        with replace_file_atomically(path) as place:
            yield place
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be written: {error.strerror}", param_hint="-o") from None
