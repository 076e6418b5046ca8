"""A screen: the one way in which opsleuth writes lines for people.

A line is made of parts, each a text with a style. Every part is made harmless here, whatever it came from, so
no renderer can forget it. Styles are ours; data can't bring its own.
"""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TextIO

import click

from opsleuth.console import terminal_text as texts
from opsleuth.console.options import Color
from opsleuth.console.time_formats import IN_UTC, TimeDisplay

Style = Literal["", "title", "dim", "good", "bad", "warn", "id"]

_INK: Mapping[Style, Mapping[str, str | bool]] = {
    "title": {"bold": True},
    "dim": {"dim": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "warn": {"fg": "yellow"},
    "id": {"fg": "cyan"},
}


ERASE_LINE = "\r\x1b[K"
"""Moves the cursor to the start of its line and removes the line."""

_DIGITS = 4
"""Of the width in the environment: no screen is wider."""


class LinePart(NamedTuple):
    """A piece of a line and how it looks."""

    text: str
    style: Style = ""


Line = Sequence[LinePart | str]


class TableColumn(NamedTuple):
    """A column of a table. On a narrow screen the columns with the highest `drop` go first (0: never)."""

    title: str
    right: bool = False
    drop: int = 0


@dataclass(frozen=True, slots=True)
class Screen:
    """Where lines go, and what can be shown there. `width` in cells; None: lines are not cut."""

    stream: TextIO
    width: int | None = None
    color: bool = False
    live: bool = False
    plain: bool = False
    encoding: str = "utf-8"
    times: TimeDisplay = IN_UTC

    def clean(self, value: object) -> str:
        """`value` as one harmless line in the screen's encoding."""
        return texts.clean_line(str(value), self.encoding)

    def line(self, *parts: LinePart | str) -> None:
        """Write one line, cut at the screen's width."""
        self.stream.write(self.render(parts).rstrip(" ") + "\n")

    def lines(self, lines: Iterable[Line]) -> None:
        """Write lines, each cut at the screen's width."""
        for line in lines:
            self.line(*line)

    def whole(self, text: str, indent: str = "  ") -> None:
        """Write a text that nothing may be cut from, in as many lines as it takes; all but the first are indented."""
        cleaned = self.clean(text)
        first, *rest = texts.wrap_to_width(cleaned, self.width - len(indent)) if self.width else [cleaned]
        self.lines([[first], *([indent + line] for line in rest)])

    def wrap_line(self, parts: Line) -> list[str]:
        """The line in as many as the screen's width takes, all but the first indented further; nothing is cut."""
        text = self._keep_spaces("".join(p.text if isinstance(p, LinePart) else p for p in parts)).rstrip(" ")
        if self.width is None or texts.measure_width(text) <= self.width:
            return [text]
        lead = text[: len(text) - len(text.lstrip(" "))][: self.width // 2]
        first, *rest = texts.wrap_to_width(text, self.width - len(lead) - 4)
        return [lead + first, *(f"{lead}    {line}" for line in rest)]

    def erase_line(self) -> None:
        """Remove what stands on the line of the cursor, where lines can be drawn again."""
        if self.live:
            self.stream.write(ERASE_LINE)
            self.stream.flush()

    def render(self, parts: Line) -> str:
        """The line as it is written, without its end."""
        if not self.color:
            parts = ["".join(part.text if isinstance(part, LinePart) else part for part in parts)]
        shown = []
        room = self.width
        for part in parts:
            text, style = part if isinstance(part, LinePart) else LinePart(part)
            text = self._keep_spaces(text)
            if room is not None:
                text = texts.cut_to_width(text, room, self.clean(texts.ELLIPSIS))
                room -= texts.measure_width(text)
            shown.append(self._ink(text, style))
            if room == 0:
                break
        return "".join(shown)

    def _keep_spaces(self, text: str) -> str:
        """Harmless like `clean`, but layout spaces stay."""
        lines = texts.clean_lines(text, self.encoding)
        return lines[0] if len(lines) == 1 else " ".join(lines)

    def _ink(self, text: str, style: Style) -> str:
        if not (self.color and style and text):
            return text
        return click.style(text, **_INK[style])  # type: ignore[arg-type]


def open_screen(
    stream: TextIO, *, color: Color = "auto", plain: bool = False, times: TimeDisplay | None = None
) -> Screen:
    """The screen behind `stream`, as its terminal, the environment and the options allow."""
    terminal = stream.isatty()
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    colored = terminal and not dumb and not os.environ.get("NO_COLOR")
    return Screen(
        stream=stream,
        width=_detect_width(terminal=terminal and not plain),
        color=not plain and (color == "always" or (color == "auto" and colored)),
        live=terminal and not dumb and not plain,
        plain=plain,
        encoding=stream.encoding or "ascii",
        times=times or IN_UTC,
    )


def _detect_width(*, terminal: bool) -> int | None:
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns[:_DIGITS]) > 0:
        return max(20, int(columns[:_DIGITS]))
    return max(20, shutil.get_terminal_size().columns) if terminal else None


def lay_out_table(
    screen: Screen, columns: Sequence[TableColumn], rows: Sequence[Sequence[LinePart | str]]
) -> list[Line]:
    """Rows under titles, aligned in cells. The last column takes the rest of the width and is never padded."""
    parts = [[_clean_cell(screen, cell) for cell in row] for row in rows]
    if screen.plain:
        return [_format_spoken_row(columns, row) for row in parts]
    titles = [LinePart(column.title, "dim") for column in columns]
    sizes = [max(texts.measure_width(row[i].text) for row in (titles, *parts)) for i in range(len(columns))]
    kept = _select_columns(columns, sizes, screen.width)
    last = kept[-1]
    return [
        [
            LinePart(
                row[i].text
                if i == last
                else texts.pad_to_width(row[i].text, sizes[i], right=columns[i].right) + "  ",
                row[i].style,
            )
            for i in kept
        ]
        for row in (titles, *parts)
    ]


def _clean_cell(screen: Screen, cell: LinePart | str) -> LinePart:
    text, style = cell if isinstance(cell, LinePart) else LinePart(cell)
    indent = len(text) - len(text.lstrip(" "))
    return LinePart(" " * indent + screen.clean(text), style)


def _select_columns(columns: Sequence[TableColumn], sizes: Sequence[int], limit: int | None) -> list[int]:
    kept = list(range(len(columns)))
    if limit is None:
        return kept
    for i in sorted(kept, key=lambda i: -columns[i].drop):
        rest = limit - sum(sizes[k] + 2 for k in kept[:-1])
        if rest >= min(sizes[kept[-1]], 16) or not columns[i].drop:
            break
        kept.remove(i)
    return kept


def _format_spoken_row(columns: Sequence[TableColumn], row: Sequence[LinePart]) -> Line:
    return [
        ", ".join(
            f"{c.title.lower()} {p.text.strip()}"
            for c, p in zip(columns, row, strict=True)
            if p.text.strip() not in ("", "-")
        )
    ]
