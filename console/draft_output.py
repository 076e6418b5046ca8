"""A draft for people to continue with, as Markdown or as one HTML page."""

import re

from opsleuth.console import terminal_text as texts
from opsleuth.console.handover_content import DraftDocument
from opsleuth.console.html.markup import Html, make_element, mark_code
from opsleuth.console.html.style import STYLE

_SPECIAL = re.compile(r"([\\*\[\]<>#|])")


def format_draft_markdown(draft: DraftDocument) -> str:
    """Headings and lists; commands between backticks stay code."""
    lines = [f"# {escape_markdown(draft.title)}"]
    for section in draft.sections:
        lines += ["", f"## {section.title.capitalize()}", ""]
        lines += [f"- {escape_markdown(item)}" for item in section.items]
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Text on one line that Markdown shows as it is; what is between backticks is left alone."""
    parts = texts.clean_line(text).split("`")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\1", "'".join(parts))
    return "`".join(part if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def render_draft_page(draft: DraftDocument) -> str:
    """One page without script and network."""
    parts = [
        make_element(
            "section",
            make_element("h2", section.title.capitalize()),
            make_element("ul", [make_element("li", mark_code(item)) for item in section.items]),
        )
        for section in draft.sections
    ]
    head = make_element(
        "head",
        make_element("meta", charset="utf-8"),
        make_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        make_element("title", draft.title),
        make_element("style", Html(STYLE)),
    )
    body = make_element(
        "body", make_element("header", make_element("h1", draft.title)), make_element("main", parts)
    )
    return f"<!DOCTYPE html>\n{make_element('html', head, body, lang='en')}\n"
