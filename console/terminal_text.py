"""Text on its way to a screen: made harmless, spelt with what the console can print, measured in cells.

A cell is one column of a terminal. CJK and emoji take two, combining marks none; the figures are rich's.
Nothing here reads markup: `[/db]` and `[prod]` stay what they are.
"""

from itertools import pairwise

from rich.cells import cell_len, split_graphemes

from opsleuth.redaction.control_characters import escape_control_characters

ELLIPSIS = "…"

# How our own glyphs and common typography are spelt where the console's encoding lacks them: one cell each.
_SPELLING = str.maketrans(
    "…\u2013—\u2212·•└│─→\u00d7≥≤≠“”\u2018\u2019▁▂▃▄▅▆▇█",
    "~----*`|->x><!\"\"''__.-=+*#",
)
_BLOCKS = "▁▂▃▄▅▆▇█"


def spell_in_encoding(text: str, encoding: str) -> str:
    """`text` with every character that `encoding` lacks replaced by one that it has, `?` at worst."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_SPELLING).encode(encoding, "replace").decode(encoding)
    return text


def clean_line(text: str, encoding: str = "utf-8") -> str:
    """One line that is safe to show: control and bidi characters neutralised, runs of white space folded."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    return spell_in_encoding(" ".join(escape_control_characters(text).split()), encoding)


def clean_lines(text: str, encoding: str = "utf-8") -> list[str]:
    """The lines of `text`, each safe to show, its indentation kept (tabs become four spaces)."""
    if text.isascii() and text.isprintable():
        return [text]
    return [
        spell_in_encoding(line, encoding)
        for line in escape_control_characters(text.expandtabs(4)).splitlines()
    ]


def measure_width(text: str) -> int:
    """The cells that `text` takes."""
    if text.isascii():
        return len(text)
    joined = "\u200d" in text or "\ufe0f" in text
    return split_graphemes(text)[1] if joined else cell_len(text)


def cut_to_width(text: str, cells: int, mark: str = ELLIPSIS) -> str:
    """`text` in at most `cells` cells; what is cut off is marked, and no character is split."""
    if measure_width(text) <= cells:
        return text
    room = cells - measure_width(mark)
    if room < 0:
        return "." * max(cells, 0)
    spans, _ = split_graphemes(text)
    end = used = 0
    for _, stop, size in spans:
        if used + size > room:
            break
        used, end = used + size, stop
    return text[:end] + mark


def shorten_in_middle(text: str, cells: int, mark: str = ELLIPSIS) -> str:
    """`text` in at most `cells` cells, its beginning and its end kept: names differ at both."""
    if measure_width(text) <= cells:
        return text
    room = cells - measure_width(mark)
    head = cut_to_width(text, (room + 1) // 2, "")
    tail = cut_to_width(text[::-1], room // 2, "")[::-1]
    return head + mark + tail


def pad_to_width(text: str, cells: int, *, right: bool = False) -> str:
    """`text` filled with spaces to `cells` cells; `right` puts the text at the right edge."""
    space = " " * (cells - measure_width(text))
    return space + text if right else text + space


def wrap_to_width(text: str, cells: int) -> list[str]:
    """`text` in lines of at most `cells` cells, broken at spaces, or anywhere in words that are longer."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if measure_width(joined) <= cells:
            line = joined
            continue
        if line:
            lines.append(line)
        *whole, line = _split_long_word(word, cells)
        lines.extend(whole)
    return [*lines, line] if line or not lines else lines


def _split_long_word(word: str, cells: int) -> list[str]:
    if measure_width(word) <= cells:
        return [word]
    pieces: list[str] = []
    start = used = 0
    spans, _ = split_graphemes(word)
    for begin, _, size in spans:
        if used + size > cells and begin > start:
            pieces.append(word[start:begin])
            start, used = begin, 0
        used += size
    return [*pieces, word[start:]]


def draw_sparkline(values: list[float], cells: int = 16) -> str:
    """`values` as a line of blocks, at most `cells` long; each block is the highest value of its stretch."""
    if len(values) < 2:
        return ""
    count = min(cells, len(values))
    edges = [len(values) * i // count for i in range(count + 1)]
    peaks = [max(values[a:b]) for a, b in pairwise(edges)]
    low, high = min(peaks), max(peaks)
    span = (high - low) or 1.0
    return "".join(_BLOCKS[round((peak - low) / span * (len(_BLOCKS) - 1))] for peak in peaks)
