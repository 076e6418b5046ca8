"""Text that is handed in from stdin or a file: read whole, up to a bound, since a device or a pipe may never end."""

import codecs
import sys
from typing import BinaryIO

from opsleuth.state.errors import UsageError

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
LARGEST = 5_000_000
"""Bytes that are read: thousands of alerts are nobody's incident."""


def read_stdin_text(what: str) -> str:
    """What is piped in. Raises UsageError where nothing can be read, and as `text_of`."""
    if sys.stdin is None:
        raise UsageError(f"{what} was to be read from stdin, and stdin is closed: pipe it in, or name a file")
    return read_bounded_text(sys.stdin.buffer, what)


def read_bounded_text(stream: BinaryIO, what: str) -> str:
    """The stream's text, without a byte order mark. Raises UsageError for too much of it and for what is neither UTF-8 nor UTF-16; OSError."""
    raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UsageError(f"{what} is too large: at most {LARGEST:,} bytes are read")
    encoding = next((name for mark, name in _MARKS if raw.startswith(mark)), "utf-8")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8 text ({error.reason} at byte {error.start})") from None
