"""The answer to a question on an ended run, as `ask` and `show` print it: the answer, then what it rests on."""

from collections.abc import Iterable, Mapping
from typing import Any

from opsleuth.console import terminal_text as texts
from opsleuth.console.report_content import list_unavailable_data
from opsleuth.console.screen import Line, LinePart, Screen
from opsleuth.console.shown_report import prepare_for_reading
from opsleuth.console.significant_digits import shorten_figures

Document = Mapping[str, Any]


def render_follow_up(document: Document, screen: Screen) -> Iterable[Line]:
    """The answer with the evidence for each of its lines, and how to look closer."""
    document = prepare_for_reading(document)
    first, *rest = str(document.get("answer") or "").splitlines() or [""]
    claims = [claim for claim in document.get("claims") or [] if claim.get("status") != "unsupported"]
    said = len(rest) if document.get("verdict") == "answered" and len(claims) >= len(rest) else 0
    by_itself = document.get("planner") == "offline"
    unsaid = claims[said:] if by_itself else []
    yield from _wrap_line(
        f"{first}{format_citations([e for claim in unsaid for e in list_citations(claim)])}", screen, ""
    )
    for number, line in enumerate(rest):
        cited = list_citations(claims[number]) if number < said else []
        yield from _wrap_line(f"{shorten_figures(line)}{format_citations(cited)}", screen, "- ")
    for claim in () if by_itself else claims[said:]:
        yield from _wrap_line(
            f"{shorten_figures(str(claim['text']))}{format_citations(list_citations(claim))}", screen, "- "
        )
    if document.get("verdict") != "answered" and (missing := list_unavailable_data(document)):
        yield from _wrap_line(f"Not checked: {'; '.join(missing)}", screen, "- ")
    run, used = document.get("run"), document.get("usage") or {}
    yield [LinePart(f"more: opsleuth report {run} --full   turns {used.get('turns') or 0}", "dim")]


def list_citations(claim: Mapping[str, Any]) -> list[str]:
    """The ids of the evidence of a claim."""
    return [str(name) for name in claim.get("evidence") or []]


def format_citations(evidence: Iterable[str]) -> str:
    """` [E1 E2]`; empty without evidence."""
    names = sorted(dict.fromkeys(evidence), key=lambda name: int(name[1:]))
    return f" [{' '.join(names)}]" if names else ""


def _wrap_line(text: str, screen: Screen, mark: str) -> Iterable[Line]:
    shown = screen.clean(text)
    width = (screen.width or 0) - len(mark)
    pieces = texts.wrap_to_width(shown, width) if width > 0 else [shown]
    for number, piece in enumerate(pieces):
        yield [(mark if number == 0 else " " * len(mark)) + piece]
