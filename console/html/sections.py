"""The parts of the page, each from the report's document; one without anything to say is None."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.console import findings
from opsleuth.console.events import arguments
from opsleuth.console.html.charts import Mark, strip, when
from opsleuth.console.html.markup import Html, block, el
from opsleuth.console.times import Display
from opsleuth.state.words import counted

Document = Mapping[str, Any]
Record = Mapping[str, Any]

MOST_TEXT = 12_000
"""Characters of a stored body that the page holds; the whole is opened by its command."""
_TONE = {
    "confirmed": "good", "supported": "good", "verified": "good", "cause_found": "good", "healthy": "good",
    "answered": "good", "done": "good", "likely": "warn", "possible": "warn", "inconclusive": "warn",
    "open": "soft", "refuted": "soft", "unsupported": "bad", "denied": "bad", "unknown": "bad", "failed_clean": "bad",
}  # fmt: skip


def section(name: str, title: str, *children: Any) -> Html | None:  # noqa: ANN401 - anything that is a child
    """A landmark with a heading, None if it is empty."""
    kept = [child for child in children if child]
    if not kept:
        return None
    return el("section", el("h2", title, id=f"{name}-title"), kept, id=name, aria_labelledby=f"{name}-title")


def word(text: object) -> Html:
    """A status as a pill; the colour only repeats what the word says."""
    return el("span", str(text).replace("_", " "), class_=f"word {_TONE.get(str(text), 'soft')}")


def cite(ids: Iterable[str] | str | None) -> Html | None:
    """Links to pieces of evidence on this page."""
    names = [ids] if isinstance(ids, str) else list(ids or ())
    if not names:
        return None
    return el("span", [el("a", name, href=f"#{name}") for name in names], class_="cite")


def conclusion(document: Document) -> Html | None:
    """The answer, how sure it is, and the causes."""
    lines = [line for line in str(document.get("answer") or "").splitlines() if line.strip()]
    body = [el("p", line) for line in lines or ["No conclusion was reached."]]
    stop = document.get("stop_reason")
    partial = None
    if stop and stop != "concluded":
        detail = f": {document['stop_detail']}" if document.get("stop_detail") else ""
        partial = el("p", el("strong", "This report is partial. "), f"{_words(stop)}{detail}", class_="warn")
    return section(
        "conclusion",
        "Conclusion",
        el("div", partial, el("p", word(document.get("verdict") or "no verdict")), body, class_="answer"),
        _impact(document),
        _causes(document),
    )


def _impact(document: Document) -> Html | None:
    impact = document.get("impact")
    if not isinstance(impact, Mapping):
        return None
    return el("p", el("strong", "Impact: "), f"{impact.get('text')} ", cite(impact.get("evidence")))


def _causes(document: Document) -> Html | None:
    rows = document.get("causes") or []
    if not rows:
        return None
    return el(
        "ol",
        [
            el(
                "li",
                el("strong", f"{row.get('service')}: {_words(row.get('kind'))} "),
                f"{row['metric']} " if row.get("metric") else None,
                word(row.get("confidence")),
                " rests on " if row.get("claims") else None,
                cite(row.get("claims")),
            )
            for row in rows
        ],
        class_="causes",
    )


def timeline(document: Document, times: Display) -> Html | None:
    """What happened when."""
    rows = document.get("timeline") or []
    window = window_of(document)
    days = list(dict.fromkeys(times.day(str(row.get("time"))) for row in rows))
    items = [
        el(
            "li",
            el("span", str(number), class_="soft"),
            el(
                "time",
                (times.clock if len(days) == 1 else times.full)(str(row.get("time"))),
                datetime=row.get("time"),
            ),
            el("span", f"{row.get('text', '')} ", cite(row.get("evidence"))),
        )
        for number, row in enumerate(rows, start=1)
    ]
    return section(
        "timeline",
        f"Timeline ({times.name}{', ' + days[0] if len(days) == 1 else ''})",
        strip(marks_of(document), window, times) if window else None,
        el("ol", items, class_="timeline") if items else None,
    )


def marks_of(document: Document) -> list[Mark]:
    """The timeline's moments."""
    rows = document.get("timeline") or []
    return [Mark(at, str(row.get("text"))) for row in rows if (at := when(row.get("time"))) is not None]


def hypotheses(document: Document) -> Html | None:
    """Each with what speaks for it and against it."""
    rows = document.get("hypotheses") or []
    items = [
        el(
            "li",
            el("strong", f"{row.get('id')} "),
            f"{row.get('text')} ",
            word(row.get("status")),
            _fact("for", cite(row.get("supporting"))),
            _fact("against", cite(row.get("contradicting"))),
            _fact("why", el("span", row["reason"]) if row.get("reason") else None),
        )
        for row in rows
    ]
    return section(
        "hypotheses", "Hypotheses", el("ul", items, class_="cards") if items else None, _ruled(document)
    )


def _ruled(document: Document) -> Html | None:
    rows = document.get("ruled_out") or []
    if not rows:
        return None
    items = [el("li", f"{row.get('hypothesis')} ", cite(row.get("claims"))) for row in rows]
    return el("div", el("h3", "Ruled out"), el("ul", items))


def claims(document: Document) -> Html | None:
    """Every claim with its evidence, and why one does not hold."""
    items = [
        el(
            "li",
            el("strong", f"{row.get('id')} "),
            f"{row.get('text')} ",
            word(row.get("status")),
            " ",
            cite(row.get("evidence")),
            [el("div", problem, class_="bad") for problem in row.get("problems") or []],
            id=row.get("id"),
        )
        for row in document.get("claims") or []
    ]
    return section("claims", "Claims", el("ul", items, class_="cards") if items else None)


def moved(records: Iterable[tuple[str, Record]], times: Display) -> Html | None:
    """What metrics left their usual level, from the findings in evidence."""
    rows: dict[tuple[str, str], Html] = {}
    for evidence, record in records:
        for found in record.get("findings") or []:
            figures = found.get("figures") or {}
            key = (str(found.get("service")), str(found.get("metric")))
            if found.get("signal") != "metrics" or key in rows or "usual" not in figures:
                continue
            unit = figures.get("unit") or ""
            rows[key] = el(
                "tr",
                el("th", key[0], scope="row"),
                el("td", key[1]),
                el("td", f"{_figure(figures['usual'])} {unit}", class_="number"),
                el("td", f"{_figure(figures.get('incident'))} {unit}", class_="number"),
                el("td", times.clock(found.get("onset"))),
                el("td", cite(evidence)),
            )
    if not rows:
        return None
    titles = ("service", "metric", "#usual", "#in the incident", f"since ({times.name})", "evidence")
    return _table("What left its usual level", titles, list(islice(rows.values(), 12)))


def actions(document: Document, approvals: Sequence[Approval]) -> Html | None:
    """What was changed in the world, who said yes, and what was refused."""
    given = {approval.id: approval for approval in approvals}
    rows = [_effect(row, given.get(str(row.get("approval")))) for row in document.get("effects") or []]
    denied = [
        el("li", f"{row.get('tool')} {arguments(row.get('arguments') or {})}: {row.get('reason', '')}")
        for row in document.get("denied") or []
    ]
    waiting = [a for a in approvals if a.status == "pending"]
    titles = ("change", "approved by", "started", "outcome", "checked")
    return section(
        "actions",
        "Changes and approvals",
        _table("Changes that were made or tried", titles, rows) if rows else None,
        el("div", el("h3", "Refused"), el("ul", denied)) if denied else None,
        el("div", el("h3", "Waits for an answer"), el("ul", [el("li", _asked(a)) for a in waiting]))
        if waiting
        else None,
    )


def _effect(row: Mapping[str, Any], given: Approval | None) -> Html:
    target = f" on {row['target']}" if row.get("target") else ""
    who = (
        f"{given.answered_by} ({given.via}, {given.answered})"
        if given
        else str(row.get("approval") or "policy")
    )
    checked = {None: "not checked", True: "holds", False: "DOES NOT HOLD"}[row.get("verified")]
    return el(
        "tr",
        el("th", f"{row.get('tool')} {arguments(row.get('arguments') or {})}{target}", scope="row"),
        el("td", who),
        el("td", row.get("started") or "-"),
        el("td", word(row.get("outcome") or row.get("status"))),
        el("td", checked, f": {row['checked']}" if row.get("checked") else None),
    )


def _asked(approval: Approval) -> str:
    document = approval.document
    return f"{approval.id} {document.get('tool', '')} {arguments(document.get('arguments') or {})}"


def next_steps(document: Document) -> Html | None:
    """What a person should do, and what nobody could look at."""
    steps = []
    for row in document.get("recommendations") or []:
        action = row.get("action") or {}
        call = f" ({action['tool']} {arguments(action.get('arguments') or {})})" if action else ""
        risk = word(f"risk {row['risk']}") if row.get("risk") in ("high", "irreversible") else None
        steps.append(el("li", f"{row.get('text', '')}{call} ", risk, " ", cite(row.get("claims"))))
    missing = [el("li", text) for text in findings.not_known(document)]
    told = [row.get("why") for row in document.get("orders_in_data") or []]
    odd = [el("li", str(text)) for text in (*(document.get("warnings") or []), *told)]
    fields = [
        (k, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False))
        for k, v in (document.get("fields") or {}).items()
    ]
    return section(
        "next",
        "What to do next",
        el("ol", steps) if steps else None,
        el("div", el("h3", "Not known"), el("ul", missing)) if missing else None,
        el("div", el("h3", "About the data"), el("ul", odd)) if odd else None,
        el("div", el("h3", "Fields that were asked for"), _facts(fields)) if fields else None,
    )


def evidence(
    rows: Sequence[EvidenceRow], records: Mapping[str, Record], document: Document, times: Display
) -> Html | None:
    """Every piece: where it comes from, and its stored body as it was given."""
    cited = {e for claim in document.get("claims") or [] for e in claim.get("evidence") or []}
    note = el(
        "p",
        f"{len(rows)} recorded, {len(cited)} cited. The bodies are as the sources gave them, and not to be trusted.",
        class_="soft",
    )
    return section(
        "evidence",
        "Evidence",
        note if rows else None,
        [_piece(row, records, document, times) for row in rows],
    )


def _piece(row: EvidenceRow, records: Mapping[str, Record], document: Document, times: Display) -> Html:
    text = json.dumps(records.get(row.id, {}), ensure_ascii=False, indent=1)
    cut = len(text) > MOST_TEXT
    facts = (
        ("call", f"{row.tool} {arguments(row.arguments)}"),
        ("source", row.source),
        ("query", row.query),
        ("target", row.target or ""),
        ("status", row.status),
        ("searched", f"{row.matched} of {counted(row.scanned, 'row')}" if row.scanned is not None else ""),
        ("fetched", times.full(row.fetched)),
        ("sha256", row.sha256),
        ("open it", f"opsleuth evidence {document.get('run', '-')} {row.id}"),
    )
    return el(
        "details",
        el("summary", el("strong", f"{row.id} "), f"{row.tool}: {row.headline}"),
        _facts(facts),
        el(
            "pre",
            block(text[:MOST_TEXT]),
            "\n… the rest is opened by the command above" if cut else None,
            tabindex=0,
        ),
        id=row.id,
    )


def _facts(facts: Iterable[tuple[str, object]]) -> Html:
    return el("dl", [[el("dt", name), el("dd", str(value))] for name, value in facts if value])


def _table(caption: str, titles: Sequence[str], rows: Sequence[Html]) -> Html:
    """A title that begins with # stands over numbers."""
    head = el(
        "tr", [el("th", t.lstrip("#"), scope="col", class_="number" if t[0] == "#" else None) for t in titles]
    )
    table = el("table", el("caption", caption), el("thead", head), el("tbody", rows))
    return el("div", table, class_="scroll")


def _fact(name: str, value: Html | None) -> Html | None:
    return el("div", f"{name}: ", value) if value else None


def _figure(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else str(value)


def _words(kind: object) -> str:
    return str(kind).replace("_", " ")


def footer(document: Document) -> str:
    """The last line of the report, as on the screen."""
    return " · ".join(findings.footer(document))


def window_of(document: Document) -> tuple[float, float] | None:
    """The incident window in seconds."""
    window = document.get("window") or {}
    start, end = when(window.get("start")), when(window.get("end"))
    return (start, end) if start is not None and end is not None and start < end else None
