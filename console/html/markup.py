"""HTML that cannot be broken out of: text becomes markup in one place only.

`el` builds an element. A child is `Html`, made here, or any other value, which is text: made harmless, escaped.
"""

import html
from collections.abc import Iterable
from typing import Final

from opsleuth.console import terminal_text as texts

VOID: Final = frozenset({"meta", "br", "hr", "link", "rect", "line", "circle", "path", "polyline", "polygon"})


class Html(str):
    """Markup that was built here; everything else is text."""

    __slots__ = ()


Child = Html | str | int | float | None | Iterable["Child"]


def make_element(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element. `_` in an attribute's name is `-`, a trailing one goes (`class_`); None and False leave it out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}{'' if value is True else _quote_attribute(value)}"
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inner = join_children(children)
    if name in VOID and not inner:
        return Html(f"<{name}{given}{'/' if name not in _PLAIN_VOID else ''}>")
    return Html(f"<{name}{given}>{inner}</{name}>")


_PLAIN_VOID = frozenset({"meta", "br", "hr", "link"})


def join_children(children: Child) -> Html:
    """Children one by one; text is escaped."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int | float):
        return Html(html.escape(harmless_line(children), quote=False))
    return Html("".join(join_children(child) for child in children))


def harmless_line(value: object) -> str:
    """Any value as harmless text on one line; a space at either end stays."""
    text = str(value)
    clean = texts.clean_line(text)
    return f"{' ' * text[:1].isspace()}{clean.strip()}{' ' * text[-1:].isspace()}" if clean.strip() else clean


def mark_code(text: str) -> Html:
    """A sentence whose commands, between backticks, are code that breaks anywhere rather than run off a phone."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return join_children(text)
    return join_children([make_element("code", part) if i % 2 else part for i, part in enumerate(parts)])


def escape_text_block(value: str) -> Html:
    """Text of many lines, each harmless, as it stands."""
    return Html(html.escape("\n".join(texts.clean_lines(value)), quote=False))


def _quote_attribute(value: object) -> str:
    return f'="{html.escape(harmless_line(value))}"'
