"""The whole page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.store import Store
from opsleuth.console import findings
from opsleuth.console.html import sections
from opsleuth.console.html.charts import chart, course
from opsleuth.console.html.dependencies import drawing, web
from opsleuth.console.html.markup import Html, el
from opsleuth.console.html.style import STYLE
from opsleuth.console.times import Display

MOST_CHARTS = 8
LEGEND = (
    "Shaded: the incident window. Band: the usual level. Broken line: where the series turns. "
    "Triangles on the axis: the moments of the timeline."
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the page may do in a browser: nothing but be shown."""
_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


class Material(NamedTuple):
    """What the page is made of; `records` holds the stored bodies by evidence id."""

    document: Mapping[str, Any]
    evidence: Sequence[EvidenceRow] = ()
    records: Mapping[str, Mapping[str, Any]] = {}
    approvals: Sequence[Approval] = ()


def stored(store: Store, run: str, document: Mapping[str, Any]) -> Material:
    """What the page of a run is made of, with the stored bodies behind it."""
    rows = store.evidence.list(run)
    records = {row.id: store.evidence.record(run, row.id) for row in rows}
    return Material(document, rows, records, store.approvals.list(run))


def page(material: Material, times: Display) -> str:
    """The report as one HTML document."""
    document = material.document
    title = findings.title(document)
    parts = sections_of(material, times)
    body = el(
        "body",
        el("a", "To the conclusion", href="#conclusion", class_="skip"),
        el("header", el("h1", title), _facts(document, times), _contents(parts)),
        el("main", parts),
        el("footer", el("p", sections.footer(document))),
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        el("meta", name="referrer", content="no-referrer"),
        el("title", f"{title} · {document.get('run', '')}"),
        el("style", Html(STYLE)),
    )
    language = "zh" if _CJK.search(str(document.get("answer") or "")) else "en"
    return f"<!DOCTYPE html>\n{el('html', head, body, lang=language)}\n"


def sections_of(material: Material, times: Display) -> list[Html]:
    """The sections that have something to say; of a run that goes on, without a conclusion."""
    return [part for part in _parts(material, times) if part]


def _parts(material: Material, times: Display) -> Iterable[Html | None]:
    document, records = material.document, material.records
    yield sections.conclusion(document) if "verdict" in document else None
    yield sections.timeline(document, times)
    yield sections.section(
        "metrics", "Metrics", _charts(material, times), sections.moved(list(records.items()), times)
    )
    tools = {row.id: row.tool for row in material.evidence}
    found = web(document, [records[e] for e, tool in tools.items() if tool == "topology" and e in records])
    yield sections.section("dependencies", "Cause and victims", drawing(found))
    yield sections.next_steps(document)
    yield sections.actions(document, material.approvals)
    yield sections.hypotheses(document)
    yield sections.claims(document)
    yield sections.evidence(material.evidence, records, document, times)


def _charts(material: Material, times: Display) -> list[Html]:
    window = sections.window_of(material.document)
    if window is None:
        return []
    marks = sections.marks_of(material.document)
    courses = [
        course(row.id, material.records[row.id]) for row in material.evidence if row.id in material.records
    ]
    drawn = [chart(one, window, marks, times) for one in courses if one][:MOST_CHARTS]
    return [el("p", LEGEND, class_="soft"), *drawn] if drawn else []


def _facts(document: Mapping[str, Any], times: Display) -> Html:
    window = document.get("window") or {}
    start, end = window.get("start"), window.get("end")
    alert = document.get("alert")
    alerted = alert.get("text") if isinstance(alert, Mapping) else alert
    facts = (
        f"Window {times.day(start)} {times.span(start, end)}" if start else "",
        f"Run {document.get('run', '?')}",
        f"Planner {document['planner']}" if document.get("planner") else "",
        "Read-only" if document.get("read_only") else "",
    )
    return el(
        "div",
        el("p", f"Alert: {alerted}") if alerted and alerted != findings.title(document) else None,
        el("ul", [el("li", fact) for fact in facts if fact], class_="facts"),
    )


def _contents(parts: Sequence[Html]) -> Html:
    found = [re.match(r'<section id="([a-z]+)".*?<h2[^>]*>(.*?)</h2>', part) for part in parts]
    links = [el("li", el("a", Html(m[2]), href=f"#{m[1]}")) for m in found if m]
    return el("nav", el("ul", links), aria_label="Contents")
