"""Words of base64 or hexadecimal digits that spell readable text, which may hold a secret.

Hashes, ids and pictures decode to bytes that nobody can read: they are left alone.
"""

import re
from binascii import a2b_base64
from collections.abc import Iterator
from typing import NamedTuple

# Lines of one length that follow each other are one word: base64 is often broken at 64 or 76 characters.
_BREAK = r"(?:\r?\n|\\{1,4}n)"
_WORD = re.compile(
    r"(?:\\[nrtbf]|(?<![A-Za-z0-9+/_-]))(?P<word>(?=[A-Za-z0-9+/_-]{16})[A-Za-z0-9+/_-]++"
    rf"(?:{_BREAK}[A-Za-z0-9+/_-]{{60,}}+)*+(?:{_BREAK}[A-Za-z0-9+/_-]{{4,}}+(?==|\r?\n|\\|\Z))?={{0,2}})"
)
_LINE_BREAK = re.compile(_BREAK)
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{24,})")
_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = bytes([9, 10, 13, *range(32, 127)])
_SHORTEST = 12
_SAMPLE = 65_536
"""Characters of a long word that are read first: anything that is not text in the beginning is not decoded as a whole."""

_KEY_LINE = 64
"""The characters of a full line of a PEM block."""


class EncodedWord(NamedTuple):
    """What stands encoded at `[start:end]` of a text; decoded to nothing, it is a full line of a private key."""

    start: int
    end: int
    decoded: str


def read_encoded_words(text: str) -> Iterator[EncodedWord]:
    """Every word that decodes to readable text, and the lines of a private key that a log took apart."""
    certificate = "CERTIFICATE" in text
    for match in _WORD.finditer(text):
        start, end = match.span("word")
        if end - start > _SAMPLE and not _read_word(text[start : start + _SAMPLE]):
            continue
        word = match["word"]
        decoded = _read_word(word)
        if decoded:
            yield EncodedWord(start, end, decoded)
        elif "\n" in word or "\\" in word:
            yield from _read_lines(match)
        elif (
            end - start == _KEY_LINE
            and not certificate
            and _looks_random(word)
            and _ends_line(text, start, end)
        ):
            yield EncodedWord(start, end, "")


def _read_lines(match: re.Match[str]) -> Iterator[EncodedWord]:
    at, start = 0, match.start("word")
    for line in _LINE_BREAK.split(match["word"]):
        at = match["word"].index(line, at)
        if decoded := _read_base64(line):
            yield EncodedWord(start + at, start + at + len(line), decoded)
        at += len(line)


def _read_word(word: str) -> str:
    return _read_hex(word) or _read_base64(word)


def _read_hex(word: str) -> str:
    match = _HEX.fullmatch(word)
    if not match or len(match[1]) % 2:
        return ""
    return _as_text(bytes.fromhex(match[1]))


def _read_base64(word: str) -> str:
    """What a word spells in either alphabet; a word that was cut is read as far as it goes."""
    bare = _LINE_BREAK.sub("", word).rstrip("=").translate(_URL_SAFE)
    bare = bare[: len(bare) - (len(bare) % 4 == 1)]
    return _as_text(a2b_base64(bare + "=" * (-len(bare) % 4)))


def _as_text(raw: bytes) -> str:
    """The bytes as text when nearly all of them are printable ASCII, in UTF-8 or UTF-16; else nothing."""
    if raw.count(0) * 2 >= len(raw) - 1:
        raw = raw.replace(b"\0", b"")
    if len(raw) < _SHORTEST or len(raw.translate(None, _PRINTABLE)) * 20 > len(raw):
        return ""
    return raw.decode("utf-8", "replace")


def _looks_random(word: str) -> bool:
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(map(kind, word)) for kind in kinds) and ("+" in word or "/" in word) and "_" not in word


def _ends_line(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (not before or before.isspace() or before in "\"'n") and (not after or after in "\r\n\"'\\")
