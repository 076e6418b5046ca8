"""The parts of the page, each from the report's document; one without anything to say is None."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.console import report_content
from opsleuth.console.event_lines import format_arguments
from opsleuth.console.html.charts import TimeMark, draw_timeline_strip, seconds_from_timestamp
from opsleuth.console.html.markup import Child, Html, escape_text_block, make_element, mark_code
from opsleuth.console.record_lines import render_record_lines
from opsleuth.console.report_headline import (
    describe_recommendation,
    describe_unmeasured,
    sort_recommendations,
)
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.conclusion_words import claim_label
from opsleuth.state.plurals import format_count

Document = Mapping[str, Any]
Record = Mapping[str, Any]

MOST_TEXT = 12_000
"""Characters of a stored body that the page holds; the whole is opened by its command."""
_RECORD_WIDTH = 100
"""Characters of a line of a record, of those that are laid out as a table."""
_TONE = {
    "confirmed": "good", "supported": "good", "measured": "good", "computed": "good", "cause_found": "good", "healthy": "good",
    "answered": "good", "done": "good", "likely": "warn", "possible": "warn", "inconclusive": "warn",
    "open": "soft", "refuted": "soft", "unsupported": "bad", "denied": "bad", "unknown": "bad", "failed_clean": "bad",
}  # fmt: skip


def wrap_section(name: str, title: str, *children: Child) -> Html | None:
    """A landmark with a heading, None if it is empty."""
    kept = [child for child in children if child]
    if not kept:
        return None
    return make_element(
        "section",
        make_element("h2", title, id=f"{name}-title"),
        kept,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def render_status_pill(text: object) -> Html:
    """A status as a pill; the colour only repeats what the word says."""
    return make_element("span", str(text).replace("_", " "), class_=f"word {_TONE.get(str(text), 'soft')}")


def link_evidence(ids: Iterable[str] | str | None) -> Html | None:
    """Links to pieces of evidence on this page."""
    names = [ids] if isinstance(ids, str) else list(ids or ())
    if not names:
        return None
    return make_element("span", [make_element("a", name, href=f"#{name}") for name in names], class_="cite")


def render_conclusion(document: Document) -> Html | None:
    """The answer, how sure it is, and the causes."""
    lines = [line for line in str(document.get("answer") or "").splitlines() if line.strip()]
    body = [make_element("p", line) for line in lines or ["No conclusion was reached."]]
    stop = document.get("stop_reason")
    partial = None
    if stop and stop != "concluded":
        detail = f": {document['stop_detail']}" if document.get("stop_detail") else ""
        partial = make_element(
            "p",
            make_element("strong", "This report is partial. "),
            f"{_underscores_to_spaces(stop)}{detail}",
            class_="warn",
        )
    return wrap_section(
        "conclusion",
        "Conclusion",
        make_element(
            "div",
            partial,
            make_element("p", render_status_pill(document.get("verdict") or "no verdict")),
            body,
            class_="answer",
        ),
        _render_impact(document),
        _render_causes(document),
    )


def _render_impact(document: Document) -> Html | None:
    impact = document.get("impact")
    unmeasured = describe_unmeasured(document)
    if not isinstance(impact, Mapping):
        return make_element("p", make_element("strong", "Impact: "), unmeasured) if unmeasured else None
    return make_element(
        "p",
        make_element("strong", "Impact: "),
        f"{impact.get('text')} ",
        link_evidence(impact.get("evidence")),
        f" ({unmeasured})" if unmeasured else None,
    )


def _render_causes(document: Document) -> Html | None:
    rows = document.get("causes") or []
    if not rows:
        return None
    return make_element(
        "ol",
        [
            make_element(
                "li",
                make_element("strong", f"{row.get('service')}: {_underscores_to_spaces(row.get('kind'))} "),
                f"{row['metric']} " if row.get("metric") else None,
                render_status_pill(row.get("confidence")),
                " rests on " if row.get("claims") else None,
                link_evidence(row.get("claims")),
            )
            for row in rows
        ],
        class_="causes",
    )


def render_timeline(document: Document, times: TimeDisplay) -> Html | None:
    """What happened when."""
    rows = document.get("timeline") or []
    window = parse_incident_window(document)
    days = list(dict.fromkeys(times.day(str(row.get("time"))) for row in rows))
    items = [
        make_element(
            "li",
            make_element("span", str(number), class_="soft"),
            make_element(
                "time",
                (times.clock if len(days) == 1 else times.full)(str(row.get("time"))),
                datetime=row.get("time"),
            ),
            make_element("span", f"{row.get('text', '')} ", link_evidence(row.get("evidence"))),
        )
        for number, row in enumerate(rows, start=1)
    ]
    return wrap_section(
        "timeline",
        f"Timeline ({times.name}{', ' + days[0] if len(days) == 1 else ''})",
        draw_timeline_strip(marks_from_timeline(document), window, times) if window else None,
        make_element("ol", items, class_="timeline") if items else None,
    )


def marks_from_timeline(document: Document) -> list[TimeMark]:
    """The timeline's moments."""
    rows = document.get("timeline") or []
    return [
        TimeMark(at, str(row.get("text")))
        for row in rows
        if (at := seconds_from_timestamp(row.get("time"))) is not None
    ]


def render_hypotheses(document: Document) -> Html | None:
    """Each with what speaks for it and against it."""
    rows = document.get("hypotheses") or []
    items = [
        make_element(
            "li",
            make_element("strong", f"{row.get('id')} "),
            f"{row.get('text')} ",
            render_status_pill(row.get("status")),
            _render_labelled_fact("for", link_evidence(row.get("supporting"))),
            _render_labelled_fact("against", link_evidence(row.get("contradicting"))),
            _render_labelled_fact("why", make_element("span", row["reason"]) if row.get("reason") else None),
        )
        for row in rows
    ]
    return wrap_section(
        "hypotheses",
        "Hypotheses",
        make_element("ul", items, class_="cards") if items else None,
        _render_ruled_out(document),
    )


def _render_ruled_out(document: Document) -> Html | None:
    rows = document.get("ruled_out") or []
    if not rows:
        return None
    items = [
        make_element("li", f"{row.get('hypothesis')} ", link_evidence(row.get("claims"))) for row in rows
    ]
    return make_element("div", make_element("h3", "Ruled out"), make_element("ul", items))


def render_claims(document: Document) -> Html | None:
    """Every claim with its evidence, and why one does not hold."""
    items = [
        make_element(
            "li",
            make_element("strong", f"{row.get('id')} "),
            f"{row.get('text')} ",
            render_status_pill(claim_label(row)),
            " ",
            link_evidence(row.get("evidence")),
            [make_element("div", problem, class_="bad") for problem in row.get("problems") or []],
            id=row.get("id"),
        )
        for row in document.get("claims") or []
    ]
    return wrap_section("claims", "Claims", make_element("ul", items, class_="cards") if items else None)


def render_deviating_metrics(records: Iterable[tuple[str, Record]], times: TimeDisplay) -> Html | None:
    """What metrics left their usual level, from the findings in evidence."""
    rows: dict[tuple[str, str], Html] = {}
    for evidence, record in records:
        for found in record.get("findings") or []:
            figures = found.get("figures") or {}
            key = (str(found.get("service")), str(found.get("metric")))
            if found.get("signal") != "metrics" or key in rows or "usual" not in figures:
                continue
            unit = figures.get("unit") or ""
            rows[key] = make_element(
                "tr",
                make_element("th", key[0], scope="row"),
                make_element("td", key[1]),
                make_element("td", f"{_format_figure(figures['usual'])} {unit}", class_="number"),
                make_element("td", f"{_format_figure(figures.get('incident'))} {unit}", class_="number"),
                make_element("td", times.clock(found.get("onset"))),
                make_element("td", link_evidence(evidence)),
            )
    if not rows:
        return None
    titles = ("service", "metric", "#usual", "#in the incident", f"since ({times.name})", "evidence")
    return _render_table("Metrics outside their usual range", titles, list(islice(rows.values(), 12)))


def render_actions(document: Document, approvals: Sequence[Approval]) -> Html | None:
    """What was changed in the world, who said yes, and what was refused."""
    given = {approval.id: approval for approval in approvals}
    rows = [
        _render_effect_row(row, given.get(str(row.get("approval")))) for row in document.get("effects") or []
    ]
    denied = [
        make_element(
            "li", f"{row.get('tool')} {format_arguments(row.get('arguments') or {})}: {row.get('reason', '')}"
        )
        for row in document.get("denied") or []
    ]
    waiting = [a for a in approvals if a.status == "pending"]
    titles = ("change", "approved by", "started", "outcome", "checked")
    return wrap_section(
        "actions",
        "Changes and approvals",
        _render_table("Changes that were made or tried", titles, rows) if rows else None,
        make_element("div", make_element("h3", "Refused"), make_element("ul", denied)) if denied else None,
        make_element(
            "div",
            make_element("h3", "Waits for an answer"),
            make_element("ul", [make_element("li", _format_pending_call(a)) for a in waiting]),
        )
        if waiting
        else None,
    )


def _render_effect_row(row: Mapping[str, Any], given: Approval | None) -> Html:
    target = f" on {row['target']}" if row.get("target") else ""
    who = (
        f"{given.answered_by} ({given.via}, {given.answered})"
        if given
        else str(row.get("approval") or "policy")
    )
    checked = {None: "not checked", True: "holds", False: "DOES NOT HOLD"}[row.get("verified")]
    return make_element(
        "tr",
        make_element(
            "th", f"{row.get('tool')} {format_arguments(row.get('arguments') or {})}{target}", scope="row"
        ),
        make_element("td", who),
        make_element("td", row.get("started") or "-"),
        make_element("td", render_status_pill(row.get("outcome") or row.get("status"))),
        make_element("td", checked, f": {row['checked']}" if row.get("checked") else None),
    )


def _format_pending_call(approval: Approval) -> str:
    document = approval.document
    return f"{approval.id} {document.get('tool', '')} {format_arguments(document.get('arguments') or {})}"


def render_next_steps(document: Document) -> Html | None:
    """What a person should do, and what nobody could look at."""
    steps = []
    for row in sort_recommendations(document):
        text = mark_code(f"{describe_recommendation(row, document)} ")
        steps.append(make_element("li", text, link_evidence(row.get("claims"))))
    missing = [make_element("li", text) for text in report_content.list_unavailable_data(document)]
    told = [row.get("why") for row in document.get("orders_in_data") or []]
    odd = [make_element("li", str(text)) for text in (*(document.get("warnings") or []), *told)]
    fields = [(k, report_content.format_field_value(v)) for k, v in (document.get("fields") or {}).items()]
    return wrap_section(
        "next",
        "What to do next",
        make_element("ol", steps) if steps else None,
        make_element("div", make_element("h3", "Not checked"), make_element("ul", missing))
        if missing
        else None,
        make_element("div", make_element("h3", "About the data"), make_element("ul", odd)) if odd else None,
        make_element("div", make_element("h3", "Requested fields"), _render_definition_list(fields))
        if fields
        else None,
    )


def render_evidence(
    rows: Sequence[EvidenceRow], records: Mapping[str, Record], document: Document, times: TimeDisplay
) -> Html | None:
    """Every piece: where it comes from, and its stored body as it was given."""
    cited = {e for claim in document.get("claims") or [] for e in claim.get("evidence") or []}
    note = make_element(
        "p",
        f"{len(rows)} recorded, {len(cited)} cited. The bodies are as the sources gave them, and not to be trusted.",
        class_="soft",
    )
    return wrap_section(
        "evidence",
        "Evidence",
        note if rows else None,
        [_render_evidence_piece(row, records, document, times) for row in rows],
    )


def _render_evidence_piece(
    row: EvidenceRow, records: Mapping[str, Record], document: Document, times: TimeDisplay
) -> Html:
    text = "\n".join(render_record_lines(records.get(row.id, {}), _RECORD_WIDTH, "utf-8"))
    cut = len(text) > MOST_TEXT
    facts = (
        ("call", f"{row.tool} {format_arguments(row.arguments)}"),
        ("source", row.source),
        ("query", row.query),
        ("target", row.target or ""),
        ("status", row.status),
        (
            "searched",
            f"{row.matched} of {format_count(row.scanned, 'row')}" if row.scanned is not None else "",
        ),
        ("fetched", times.full(row.fetched)),
        ("sha256", row.sha256),
        ("open it", f"opsleuth evidence {document.get('run', '-')} {row.id}"),
    )
    return make_element(
        "details",
        make_element("summary", make_element("strong", f"{row.id} "), f"{row.tool}: {row.headline}"),
        _render_definition_list(facts),
        make_element(
            "pre",
            escape_text_block(text[:MOST_TEXT]),
            "\n… the rest is opened by the command above" if cut else None,
            tabindex=0,
        ),
        id=row.id,
    )


def _render_definition_list(facts: Iterable[tuple[str, object]]) -> Html:
    return make_element(
        "dl", [[make_element("dt", name), make_element("dd", str(value))] for name, value in facts if value]
    )


def _render_table(caption: str, titles: Sequence[str], rows: Sequence[Html]) -> Html:
    """A title that begins with # stands over numbers."""
    head = make_element(
        "tr",
        [
            make_element("th", t.lstrip("#"), scope="col", class_="number" if t[0] == "#" else None)
            for t in titles
        ],
    )
    table = make_element(
        "table", make_element("caption", caption), make_element("thead", head), make_element("tbody", rows)
    )
    return make_element("div", table, class_="scroll")


def _render_labelled_fact(name: str, value: Html | None) -> Html | None:
    return make_element("div", f"{name}: ", value) if value else None


def _format_figure(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else str(value)


def _underscores_to_spaces(kind: object) -> str:
    return str(kind).replace("_", " ")


def format_footer(document: Document) -> str:
    """The last line of the report, as on the screen."""
    return " · ".join(report_content.list_footer_facts(document))


def parse_incident_window(document: Document) -> tuple[float, float] | None:
    """The incident window in seconds."""
    window = document.get("window") or {}
    start, end = seconds_from_timestamp(window.get("start")), seconds_from_timestamp(window.get("end"))
    return (start, end) if start is not None and end is not None and start < end else None
