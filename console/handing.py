"""Text that is handed in from stdin or a file: read whole, up to a bound, since a device or a pipe may never end."""

import sys
from typing import BinaryIO

from opsleuth.state.errors import UsageError

LARGEST = 5_000_000
"""Bytes that are read: thousands of alerts are no one's incident."""


def from_stdin(what: str) -> str:
    """What is piped in. Raises UsageError where nothing can be read, and as `text_of`."""
    if sys.stdin is None:
        raise UsageError(f"{what} was to be read from stdin, and stdin is closed: pipe it in, or name a file")
    return text_of(sys.stdin.buffer, what)


def text_of(stream: BinaryIO, what: str) -> str:
    """The stream's text. Raises UsageError for too much of it and for what is no UTF-8; OSError."""
    raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UsageError(f"{what} is too large: at most {LARGEST:,} bytes are read")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is no UTF-8 text ({error.reason} at byte {error.start})") from None
