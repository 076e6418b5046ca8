"""The text that a reader sees behind escapes: escapes decoded, invisible characters left out, each character with its place in the original.

A secret is looked for in a view as in the text itself; what is found there is taken out of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

# Escape sequences of a terminal, raw and as programs spell them, and what harmless text makes of invisible characters.
_UNSEEN = (
    r"\x1b\[[0-9;:?]{0,40}[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|\x9b[0-9;:?]{0,40}[@-~]"
    r"|\\{1,4}(?:x1b|u001b|033|e)\[[0-9;:?]{0,40}[@-~]"
    r"|[\x00\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
    r"|\\{1,4}u(?:200[b-fB-F]|206[0-9a-fA-F]|202[a-eA-E]|[fF][eE][fF][fF]|00[aA][dD])"
)
_ESCAPED = r"[\uff01-\uff5e]|%[0-7][0-9a-fA-F]|&(?:quot|amp|lt|gt|apos|#[0-9]{2,3}|#[xX][0-9a-fA-F]{2});|\\{1,4}(?:x[2-7][0-9a-fA-F]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[nrt])"
_UNIT = re.compile(f"(?P<unseen>{_UNSEEN})|(?P<escaped>{_ESCAPED})")
_MARKS = ("%", "&", "\\")
_PLAIN = re.compile("[\t\n\r -~]*")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_WIDE = 0xFEE0
"""Maps each ASCII letter to its full-width form."""
_LEVELS = 3
"""How often an escape may be escaped again."""


class TextView(NamedTuple):
    """A text as it reads, and for each of its pieces where it starts here and which span of the original it stands for."""

    text: str
    starts: list[int]
    origins: list[tuple[int, int]]

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that reads as `text[start:end]`."""
        return self._origin(start)[0], self._origin(end - 1)[1]

    def _origin(self, at: int) -> tuple[int, int]:
        piece = bisect_right(self.starts, at) - 1
        start, end = self.origins[piece]
        after = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)
        if after - self.starts[piece] == 1:
            return start, end
        offset = at - self.starts[piece]
        return start + offset, start + offset + 1


def views_of(text: str) -> Iterator[TextView]:
    """The views of a text in which something reads differently: none of most texts."""
    view = _read_escapes(text)
    for _ in range(_LEVELS):
        if view is None:
            return
        yield view
        deeper = _read_escapes(view.text)
        if deeper is None:
            return
        view = TextView(
            deeper.text, deeper.starts, [view.locate(start, end) for start, end in deeper.origins]
        )


def _read_escapes(text: str) -> TextView | None:
    """One level of escapes read; None where there is none."""
    if _PLAIN.fullmatch(text) and not any(map(text.__contains__, _MARKS)):
        return None
    parts, starts, origins = list[str](), list[int](), list[tuple[int, int]]()
    length, done = 0, 0
    for unit in _UNIT.finditer(text):
        if unit.start() > done:
            parts.append(text[done : unit.start()])
            starts.append(length)
            origins.append((done, unit.start()))
            length += unit.start() - done
        done = unit.end()
        if unit["escaped"]:
            parts.append(_decode_escape(unit["escaped"]))
            starts.append(length)
            origins.append(unit.span())
            length += 1
    if not done:
        return None
    if done < len(text):
        parts.append(text[done:])
        starts.append(length)
        origins.append((done, len(text)))
    return TextView("".join(parts), starts, origins) if parts else None


def _decode_escape(escape: str) -> str:
    if len(escape) == 1:
        return chr(ord(escape) - _WIDE)
    if escape.startswith("&"):
        return unescape(escape)[:1]
    if escape[-1] in _CONTROLS:
        return _CONTROLS[escape[-1]]
    if escape[0] == "%" or escape[-3] == "x":
        return chr(int(escape[-2:], 16))
    return chr(int(escape[-4:], 16))
