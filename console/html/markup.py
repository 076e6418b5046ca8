"""HTML that cannot be broken out of: text becomes markup in one place only.

`el` builds an element. A child is `Html`, made here, or any other value, which is text: made harmless, escaped.
"""

import html
from collections.abc import Iterable
from typing import Final

from opsleuth.console import text as texts

VOID: Final = frozenset({"meta", "br", "hr", "link", "rect", "line", "circle", "path", "polyline", "polygon"})


class Html(str):
    """Markup that was built here; everything else is text."""

    __slots__ = ()


Child = Html | str | int | float | None | Iterable["Child"]


def el(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element. `_` in an attribute's name is `-`, a trailing one goes (`class_`); None and False leave it out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}{'' if value is True else _quoted(value)}"
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inner = join(children)
    if name in VOID and not inner:
        return Html(f"<{name}{given}{'/' if name not in _PLAIN_VOID else ''}>")
    return Html(f"<{name}{given}>{inner}</{name}>")


_PLAIN_VOID = frozenset({"meta", "br", "hr", "link"})


def join(children: Child) -> Html:
    """Children one after the other; text is escaped."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int | float):
        return Html(html.escape(shown(children), quote=False))
    return Html("".join(join(child) for child in children))


def shown(value: object) -> str:
    """Any value as harmless text on one line; a space at either end stays."""
    text = str(value)
    clean = texts.clean(text)
    return f"{' ' * text[:1].isspace()}{clean.strip()}{' ' * text[-1:].isspace()}" if clean.strip() else clean


def block(value: str) -> Html:
    """Text of many lines, each harmless, as it stands."""
    return Html(html.escape("\n".join(texts.clean_lines(value)), quote=False))


def _quoted(value: object) -> str:
    return f'="{html.escape(shown(value))}"'
