"""The report as text of one screen, its headline first and last, or in full, and as Markdown."""

import re
from collections.abc import Iterable
from dataclasses import replace

from opsleuth.console import report_content
from opsleuth.console import terminal_text as texts
from opsleuth.console.report_content import Document, ReportSection
from opsleuth.console.report_headline import Headline, compose_headline
from opsleuth.console.screen import Line, LinePart, Screen, Style
from opsleuth.console.shown_report import prepare_for_reading
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.plurals import format_count

SHORT = 23
"""Lines of the short form: a screen of 24 with the shell's prompt under it, unless what may not be cut needs more."""

_WIDTH = 100
"""Line width in cells without a terminal."""
_SHORTEST_NAME = 16
_HEADLINE_LINES = 2
_CLOSING_LINES = 3
"""Headline lines repeated at the end of the report, unless the recommendations need more."""

_STYLES: dict[str, Style] = {
    "STOPPED": "warn",
    "OPEN": "warn",
    "DENIED": "warn",
    "UNTRUSTED": "warn",
    "PLANNER": "warn",
    "NOT CHECKED": "warn",
    "DATA": "warn",
    "EVIDENCE": "dim",
    "SOURCES": "dim",
}
_LABEL = 12
"""Cells of the column that holds the sections' titles."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!$&])")
_AT_START = re.compile(r"^(\d*)(?:(?<=\d)(?=[.)])|(?<!\d)(?=[-+=]))")
"""Where a line would start a list: before the mark, after the number."""


def format_report_lines(document: Document, screen: Screen, *, full: bool = False) -> list[Line]:
    """The report for a screen. The short form cuts what may be cut to its share, and says how much was cut."""
    document = prepare_for_reading(document)
    composed = compose_headline(document, screen.times)
    headline = _lay_out_headline(composed, screen)
    closing = headline
    if len(headline) > _CLOSING_LINES and not screen.plain:
        closing = _lay_out_headline(replace(composed, facts=composed.closing), screen)
    cells = max(20, (screen.width or _WIDTH) - _LABEL)
    listed = report_content.list_report_sections if full else report_content.list_brief_sections
    parts = listed(document, screen.times)
    if full:
        parts += report_content.list_appendix_sections(document)
    wrapped = [(part, _wrap_section(part, screen, cells)) for part in parts]
    footer = _format_footer(document, screen, full=full)
    if not full:
        wrapped = _shorten_sections(wrapped, SHORT - len(headline) - len(closing) - len(footer), cells)
    lines = [line for part, body in wrapped for line in _lay_out_section(part, body, screen)]
    return [*headline, *lines, *footer, *closing]


def format_section_lines(
    sections: Iterable[ReportSection], screen: Screen, most: int | None = None
) -> list[Line]:
    """Sections one under the other, in full or in `most` lines, where each has at least those that it must have."""
    cells = max(20, (screen.width or _WIDTH) - _LABEL)
    wrapped = [(section, _wrap_section(section, screen, cells)) for section in sections]
    if most is not None:
        wrapped = _shorten_sections(wrapped, most, cells, "--all")
    return [line for section, body in wrapped for line in _lay_out_section(section, body, screen)]


def _lay_out_headline(headline: Headline, screen: Screen) -> list[Line]:
    """The facts in two lines, names shortened in the middle where they need more; then what to do, never cut."""
    facts = [screen.clean(fact) for fact in headline.facts]
    action = screen.clean(headline.action)
    if screen.plain:
        return [[f"headline: {', '.join(facts)}"], [f"do: {action}"]]
    width = screen.width or _WIDTH
    lines = _join_facts(facts, width, screen)
    for name in headline.names:
        if len(lines) <= _HEADLINE_LINES:
            break
        short = texts.shorten_in_middle(screen.clean(name), _SHORTEST_NAME, screen.clean(texts.ELLIPSIS))
        facts = [fact.replace(screen.clean(name), short) for fact in facts]
        lines = _join_facts(facts, width, screen)
    if len(lines) > _HEADLINE_LINES:
        lines = _join_facts([fact for fact in facts if fact != screen.clean(headline.harm)], width, screen)
    first, *rest = texts.wrap_to_width(f"DO: {action}", width)
    again = texts.wrap_to_width(" ".join(rest), width - 4) if rest else []
    return [
        *([LinePart(line, "title")] for line in lines),
        [LinePart(first, "title")],
        *([LinePart(f"    {line}", "title")] for line in again),
    ]


def _join_facts(facts: list[str], width: int, screen: Screen) -> list[str]:
    """Facts behind one another, broken between two of them where that fits."""
    mark = f" {screen.clean('·')} "
    lines: list[str] = []
    for fact in facts:
        if lines and texts.measure_width(lines[-1] + mark + fact) <= width:
            lines[-1] += mark + fact
        else:
            lines += texts.wrap_to_width(fact, width)
    return lines


def _wrap_section(section: ReportSection, screen: Screen, cells: int) -> list[str]:
    items = [screen.clean(item) for item in section.items]
    if screen.plain:
        return items
    if section.form == "running":
        return texts.wrap_to_width(f" {screen.clean('·')} ".join(items), cells)
    if section.form == "lines":
        return [texts.cut_to_width(item, cells, screen.clean(texts.ELLIPSIS)) for item in items]
    hang = 2 if section.form == "list" else 0
    return [line for item in items for line in _wrap_hanging_item(item, cells, hang)]


def _wrap_hanging_item(item: str, cells: int, hang: int) -> list[str]:
    first, *rest = texts.wrap_to_width(item, cells)
    again = texts.wrap_to_width(" ".join(rest), cells - hang) if rest else []
    return [first, *(" " * hang + line for line in again)]


def _shorten_sections(
    wrapped: list[tuple[ReportSection, list[str]]], room: int, cells: int, flag: str = "--full"
) -> list[tuple[ReportSection, list[str]]]:
    """Each section gets its share of `room` lines, those that may not be cut all they need.

    Lines that others leave free go to those that need them, first come. `flag` shows what is cut.
    """
    least = [len(body) if part.lines is None else min(len(body), part.lines) for part, body in wrapped]
    spare = max(room - sum(least), 0)
    short = []
    for (part, body), lines in zip(wrapped, least, strict=True):
        more = min(spare, len(body) - lines)
        spare -= more
        if lines + more:
            short.append((part, _cut_section(body, lines + more, cells, flag)))
    return short


def _cut_section(body: list[str], room: int, cells: int, flag: str) -> list[str]:
    if len(body) <= room:
        return body
    if room > 1:
        hidden = len(body) - room + 1
        return [*body[: room - 1], f"+{format_count(hidden, 'line')}: {flag}"]
    return [f"{texts.cut_to_width(body[0], cells - 4, '')} ..."]


def _lay_out_section(section: ReportSection, body: list[str], screen: Screen) -> Iterable[Line]:
    if screen.plain:
        yield from ([f"{section.title.lower()}: {item}"] for item in body)
        return
    style = _STYLES.get(section.title, "")
    yield [LinePart(texts.pad_to_width(section.title, _LABEL), "title"), LinePart(body[0], style)]
    for line in body[1:]:
        yield [" " * _LABEL, LinePart(line, style)]


def _format_footer(document: Document, screen: Screen, *, full: bool) -> list[Line]:
    """Where the rest stands, and what the run took."""
    facts = report_content.list_footer_facts(document)
    if not full:
        facts = [f"more: opsleuth why {document.get('run', '-')}", *facts[:-1]]
    if screen.plain:
        return [[LinePart(", ".join(facts), "dim")]]
    return [[LinePart(line, "dim")] for line in _wrap_facts(facts, screen.width or _WIDTH, screen)]


def _wrap_facts(facts: list[str], width: int, screen: Screen) -> list[str]:
    lines: list[str] = []
    for fact in (screen.clean(fact) for fact in facts):
        if lines and texts.measure_width(f"{lines[-1]}   {fact}") <= width:
            lines[-1] += f"   {fact}"
        else:
            lines.append(fact)
    return lines


def format_report_markdown(document: Document, times: TimeDisplay) -> str:
    """The whole report as Markdown. Data can't make markup of its own: every special character is escaped."""
    document = prepare_for_reading(document)
    headline = compose_headline(document, times)
    lines = [
        f"# {_escape_markdown(report_content.report_title(document))}",
        "",
        f"**{_escape_markdown(' · '.join(headline.facts))}**",
        "",
        f"**DO:** {_escape_markdown(headline.action)}",
        "",
        _escape_markdown("   ".join(report_content.list_footer_facts(document))),
    ]
    for part in [
        *report_content.list_report_sections(document, times),
        *report_content.list_appendix_sections(document),
    ]:
        if part.title == "QUESTION":  # the heading says it already
            continue
        lines += ["", f"## {part.title.capitalize()}", ""]
        if part.form == "prose":
            lines += "\n\n".join(map(_escape_markdown, part.items)).splitlines()
        else:
            lines += [_format_list_item(item) for item in part.items]
    return "\n".join(lines) + "\n"


def _format_list_item(item: str) -> str:
    """A list item; one that is numbered already keeps its number."""
    number, _, rest = item.partition("  ")
    return (
        f"{number}. {_escape_markdown(rest)}"
        if rest and number.isdecimal()
        else f"- {_escape_markdown(item)}"
    )


def _escape_markdown(item: str) -> str:
    return _AT_START.sub(r"\1\\", _SPECIAL.sub(r"\\\1", texts.clean_line(item)))
