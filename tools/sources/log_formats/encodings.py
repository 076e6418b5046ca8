"""Text in files as systems write it: UTF-8 with or without a mark, UTF-16, and what Windows and Latin-1 write."""

import codecs
import io
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    b"\x7fELF", b"\x89PNG", b"\x1f\x8b", b"PK\x03\x04", b"SQLite format 3", b"%PDF", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd", b"GIF8", b"\xff\xd8\xff",
    b"PAR1", b"LPKSHHRH", b"\xca\xfe\xba\xbe",
)  # fmt: skip
"""How files begin that are not text: programs, pictures, archives, databases, a journal."""
_BLOCK = 65_536
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1")


def detect_encoding(head: bytes) -> str | None:
    """The encoding by a mark, by the place of zeros, or by what can be decoded; None for anything that is not text."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if head.startswith(_BINARY):
        return None
    zeros = head.count(0)
    if zeros * 5 > len(head):
        return _utf16_by_zeros(head)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "latin-1" if _is_mostly_text(head) else None
    return "utf-8"


def _utf16_by_zeros(head: bytes) -> str | None:
    """Text of the West in UTF-16 has a zero in every second byte; a few zeros in a log are no sign of anything."""
    odd, even = head[1::2].count(0), head[0::2].count(0)
    if odd * 3 > len(head) and even * 20 < odd:
        return "utf-16-le"
    return "utf-16-be" if even * 3 > len(head) and odd * 20 < even else None


def _is_mostly_text(head: bytes) -> bool:
    """What is packed has bytes of all kinds."""
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    high = sum(byte > 127 for byte in head)
    return controls * 30 < len(head) or high * 4 < len(head)


def is_bytewise(encoding: str) -> bool:
    """Whether lines end on a byte and can be read from any of them."""
    return not encoding.startswith("utf-16")


def as_utf8(stream: BinaryIO, encoding: str) -> BinaryIO:
    """A stream of UTF-16 as UTF-8, without its mark; any other stream as it is."""
    if is_bytewise(encoding):
        return stream
    return cast(BinaryIO, io.BufferedReader(_Recoded(stream, encoding)))


def decode_text(raw: bytes) -> str:
    """The whole of a small file as text, without a mark; what is in no known encoding is read as Latin-1."""
    encoding = detect_encoding(raw[:_BLOCK]) or "latin-1"
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def decode_line(raw: bytes) -> str:
    """The line's text without its end: UTF-8, else as Windows and Latin-1 write it."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = decode_latin(raw)
    return text.rstrip("\r\n")


def decode_latin(raw: bytes) -> str:
    try:
        return raw.decode("cp1252")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class _Recoded(io.RawIOBase):
    """A stream of UTF-16, read as UTF-8."""

    def __init__(self, inner: BinaryIO, encoding: str) -> None:
        self._inner = inner
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._waiting = b""
        self._ended = self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        while not self._waiting and not self._ended:
            raw = self._inner.read(_BLOCK)
            self._ended = not raw
            text = self._decoder.decode(raw, final=self._ended)
            if text and not self._begun:
                text, self._begun = text.removeprefix("\ufeff"), True
            self._waiting = text.encode("utf-8", "replace")
        data, self._waiting = self._waiting[: len(view)], self._waiting[len(view) :]
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()
