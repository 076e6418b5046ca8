"""The report as text of one screen (25 lines), or in full, and as Markdown."""

import re
from collections.abc import Iterable

from opsleuth.console import findings
from opsleuth.console import text as texts
from opsleuth.console.findings import Document, Section
from opsleuth.console.screen import Line, Part, Screen, Style
from opsleuth.console.times import Display
from opsleuth.state.words import counted

SHORT = 25
"""Lines of the short form, the last one included."""

_WIDTH = 100
"""Cells of a line where there is no terminal to ask."""

_STYLES: dict[str, Style] = {
    "CONCLUSION": "title",
    "STOPPED": "warn",
    "DENIED": "warn",
    "UNTRUSTED": "warn",
    "NOT KNOWN": "warn",
    "DATA": "warn",
    "EVIDENCE": "dim",
    "SOURCES": "dim",
}
_LABEL = 12
"""Cells of the column that holds the sections' titles."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!$&])")
_AT_START = re.compile(r"^(\d*)(?:(?<=\d)(?=[.)])|(?<!\d)(?=[-+=]))")
"""Where a line would start a list: before the mark, after the number."""


def text(document: Document, screen: Screen, *, full: bool = False) -> list[Line]:
    """The report for a screen. The short form cuts each section to its share, and says how much was cut."""
    parts = findings.sections(document, screen.times)
    if full:
        parts += findings.appendix(document)
    cells = max(20, (screen.width or _WIDTH) - _LABEL)
    wrapped = [(part, _wrapped(part, screen, cells)) for part in parts]
    if not full:
        wrapped = _shortened(wrapped)
    lines = [line for part, body in wrapped for line in _laid_out(part, body, screen)]
    return [*lines, _footer(document, screen)]


def _wrapped(section: Section, screen: Screen, cells: int) -> list[str]:
    items = [screen.clean(item) for item in section.items]
    if screen.plain:
        return items
    if section.form == "running":
        return texts.wrap(f" {screen.clean('·')} ".join(items), cells)
    if section.form == "lines":
        return [texts.cut(item, cells, screen.clean(texts.ELLIPSIS)) for item in items]
    hang = 2 if section.form == "list" else 0
    return [line for item in items for line in _hanging(item, cells, hang)]


def _hanging(item: str, cells: int, hang: int) -> list[str]:
    first, *rest = texts.wrap(item, cells)
    again = texts.wrap(" ".join(rest), cells - hang) if rest else []
    return [first, *(" " * hang + line for line in again)]


def _shortened(wrapped: list[tuple[Section, list[str]]]) -> list[tuple[Section, list[str]]]:
    """Each section gets its share; lines that others leave free go to those that need them, first come."""
    spare = SHORT - 1 - sum(min(len(body), part.lines) for part, body in wrapped)
    short = []
    for part, body in wrapped:
        room = part.lines + min(max(spare, 0), max(len(body) - part.lines, 0))
        spare -= max(room - part.lines, 0)
        if len(body) > room:
            hidden = len(body) - room + 1
            more = (
                [*body[: room - 1], f"+{counted(hidden, 'line')}: --full"]
                if room > 1
                else [_continued(body[0])]
            )
            short.append((part, more))
        else:
            short.append((part, body))
    return short


def _continued(line: str) -> str:
    return f"{line[:-4]} ... " if len(line) > 60 else f"{line} ..."


def _laid_out(section: Section, body: list[str], screen: Screen) -> Iterable[Line]:
    if screen.plain:
        yield from ([f"{section.title.lower()}: {item}"] for item in body)
        return
    style = _STYLES.get(section.title, "")
    yield [Part(texts.pad(section.title, _LABEL), "title"), Part(body[0], style)]
    for line in body[1:]:
        yield [" " * _LABEL, Part(line, style)]


def _footer(document: Document, screen: Screen) -> Line:
    facts = findings.footer(document)
    return [Part((", " if screen.plain else "   ").join(facts), "dim")]


def markdown(document: Document, times: Display) -> str:
    """The whole report as Markdown. Data can't make markup of its own: every special character is escaped."""
    lines = [f"# {_escaped(findings.title(document))}", "", _escaped("   ".join(findings.footer(document)))]
    for part in [*findings.sections(document, times), *findings.appendix(document)]:
        if part.title == "QUESTION":  # the heading says it already
            continue
        lines += ["", f"## {part.title.capitalize()}", ""]
        if part.form == "prose":
            lines += "\n\n".join(map(_escaped, part.items)).splitlines()
        else:
            lines += [_listed(item) for item in part.items]
    return "\n".join(lines) + "\n"


def _listed(item: str) -> str:
    """A list item; one that is numbered already keeps its number."""
    number, _, rest = item.partition("  ")
    return f"{number}. {_escaped(rest)}" if rest and number.isdecimal() else f"- {_escaped(item)}"


def _escaped(item: str) -> str:
    return _AT_START.sub(r"\1\\", _SPECIAL.sub(r"\\\1", texts.clean(item)))
