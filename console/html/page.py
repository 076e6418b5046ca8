"""The whole page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.store import Store
from opsleuth.console import report_content
from opsleuth.console.html import page_sections
from opsleuth.console.html.charts import draw_series_chart, series_from_record
from opsleuth.console.html.dependency_graph import build_service_graph, draw_service_graph
from opsleuth.console.html.markup import Html, make_element, mark_code
from opsleuth.console.html.style import STYLE
from opsleuth.console.report_headline import compose_headline
from opsleuth.console.shown_report import prepare_for_reading
from opsleuth.console.time_formats import TimeDisplay

MOST_CHARTS = 8
LEGEND = (
    "Shaded: the incident window. Band: the usual level. Broken line: where the series turns. "
    "Triangles on the axis: the moments of the timeline."
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the page may do in a browser: nothing but be shown."""
_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


class ReportMaterial(NamedTuple):
    """What the page is made of; `records` holds the stored bodies by evidence id."""

    document: Mapping[str, Any]
    evidence: Sequence[EvidenceRow] = ()
    records: Mapping[str, Mapping[str, Any]] = {}
    approvals: Sequence[Approval] = ()


def load_report_material(store: Store, run: str, document: Mapping[str, Any]) -> ReportMaterial:
    """What the page of a run is made of, with the stored bodies behind it."""
    rows = store.evidence.list(run)
    records = {row.id: store.evidence.record(run, row.id) for row in rows}
    return ReportMaterial(document, rows, records, store.approvals.list(run))


def render_report_page(material: ReportMaterial, times: TimeDisplay) -> str:
    """The report as one HTML document."""
    material = material._replace(document=prepare_for_reading(material.document))
    document = material.document
    title = report_content.report_title(document)
    parts = render_page_sections(material, times)
    body = make_element(
        "body",
        make_element("a", "To the conclusion", href="#conclusion", class_="skip"),
        make_element(
            "header",
            make_element("h1", title),
            _render_headline(document, times),
            _render_run_facts(document, times),
            _render_contents(parts),
        ),
        make_element("main", parts),
        make_element("footer", make_element("p", page_sections.format_footer(document))),
    )
    head = make_element(
        "head",
        make_element("meta", charset="utf-8"),
        make_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        make_element("meta", name="referrer", content="no-referrer"),
        make_element("title", f"{title} · {document.get('run', '')}"),
        make_element("style", Html(STYLE)),
    )
    language = "zh" if _CJK.search(str(document.get("answer") or "")) else "en"
    return f"<!DOCTYPE html>\n{make_element('html', head, body, lang=language)}\n"


def render_page_sections(material: ReportMaterial, times: TimeDisplay) -> list[Html]:
    """The sections that have something to say; of a run that goes on, without a conclusion."""
    return [part for part in _iterate_page_sections(material, times) if part]


def _iterate_page_sections(material: ReportMaterial, times: TimeDisplay) -> Iterable[Html | None]:
    document, records = material.document, material.records
    yield page_sections.render_conclusion(document) if "verdict" in document else None
    yield page_sections.render_next_steps(document)
    yield page_sections.render_actions(document, material.approvals)
    yield page_sections.render_timeline(document, times)
    yield page_sections.wrap_section(
        "metrics",
        "Metrics",
        _render_charts(material, times),
        page_sections.render_deviating_metrics(list(records.items()), times),
    )
    tools = {row.id: row.tool for row in material.evidence}
    found = build_service_graph(
        document, [records[e] for e, tool in tools.items() if tool == "topology" and e in records]
    )
    yield page_sections.wrap_section("dependencies", "Cause and victims", draw_service_graph(found))
    yield page_sections.render_hypotheses(document)
    yield page_sections.render_claims(document)
    yield page_sections.render_evidence(material.evidence, records, document, times)


def _render_charts(material: ReportMaterial, times: TimeDisplay) -> list[Html]:
    window = page_sections.parse_incident_window(material.document)
    if window is None:
        return []
    marks = page_sections.marks_from_timeline(material.document)
    courses = [
        series_from_record(row.id, material.records[row.id])
        for row in material.evidence
        if row.id in material.records
    ]
    drawn = [draw_series_chart(one, window, marks, times) for one in courses if one][:MOST_CHARTS]
    return [make_element("p", LEGEND, class_="soft"), *drawn] if drawn else []


def _render_headline(document: Mapping[str, Any], times: TimeDisplay) -> Html | None:
    """What happened and what to do, as the report at the terminal begins; None for a run that goes on."""
    if "verdict" not in document:
        return None
    headline = compose_headline(document, times)
    return make_element(
        "div",
        make_element("p", make_element("strong", " · ".join(headline.facts))),
        make_element("p", make_element("strong", "DO: "), mark_code(headline.action)),
        class_="answer",
    )


def _render_run_facts(document: Mapping[str, Any], times: TimeDisplay) -> Html:
    window = document.get("window") or {}
    start, end = window.get("start"), window.get("end")
    alert = document.get("alert")
    alerted = alert.get("text") if isinstance(alert, Mapping) else alert
    facts = (
        f"Window {times.day(start)} {times.span(start, end)}" if start else "",
        f"Run {document.get('run', '?')}",
        f"Planner {document['planner']}" if document.get("planner") else "",
        "Read-only" if document.get("read_only") else "",
        "REPLAY of a recording: nothing was executed" if document.get("replay") else "",
    )
    return make_element(
        "div",
        make_element("p", f"Alert: {alerted}")
        if alerted and alerted != report_content.report_title(document)
        else None,
        make_element("ul", [make_element("li", fact) for fact in facts if fact], class_="facts"),
    )


def _render_contents(parts: Sequence[Html]) -> Html:
    found = [re.match(r'<section id="([a-z]+)".*?<h2[^>]*>(.*?)</h2>', part) for part in parts]
    links = [make_element("li", make_element("a", Html(m[2]), href=f"#{m[1]}")) for m in found if m]
    return make_element("nav", make_element("ul", links), aria_label="Contents")
