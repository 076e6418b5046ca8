"""Lines that are longer than anyone reads: their beginning is kept, the rest is skipped and counted."""

from collections.abc import Iterator
from typing import BinaryIO

LONGEST_LINE = 64_000
"""Bytes of a line that are looked at: one that goes on for more may be the whole file."""
_CHUNK = 1_000_000
_LONGEST_CHARACTER = 4
"""Bytes of the longest character of UTF-8."""


def is_cut(raw: bytes, longest: int) -> bool:
    """Whether a raw line that was read up to `longest` bytes goes on."""
    return len(raw) >= longest and not raw.endswith(b"\n")


def skip_rest_of_line(file: BinaryIO) -> int:
    """Go to the next line; returns how many bytes were skipped."""
    skipped = 0
    while raw := file.readline(_CHUNK):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped


def read_line_starts(file: BinaryIO, long_lines: set[int]) -> Iterator[bytes]:
    """The rest of a file by lines; where one begins that is cut is added to `long_lines`."""
    begin = 0
    while raw := file.readline(LONGEST_LINE):
        if len(raw) < LONGEST_LINE or not is_cut(raw, LONGEST_LINE):
            yield raw
            begin += len(raw)
            continue
        yield without_half_character(raw)
        skipped = skip_rest_of_line(file)
        if skipped:
            long_lines.add(begin)
        begin += len(raw) + skipped


def without_half_character(raw: bytes) -> bytes:
    """The beginning of a line without the bytes of a character that was cut in two."""
    for size in range(1, min(_LONGEST_CHARACTER, len(raw)) + 1):
        byte = raw[-size]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return raw if width == size else raw[:-size]
    return raw
