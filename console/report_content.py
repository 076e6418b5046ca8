"""What a report says, section by section, from its document; text and Markdown lay the same sections out.

The document is plain JSON: verdict, answer, causes, propagation, ruled_out, not_available, warnings, recommendations,
fields, claims, effects, window, status, stop_reason, stop_detail, usage, run, question, and, where they are
known, impact, timeline, hypotheses, evidence and denied. Every field may be missing: a partial report is a report.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from opsleuth.console.event_lines import format_arguments
from opsleuth.console.report_headline import (
    describe_recommendation,
    describe_stop,
    describe_unmeasured,
    sort_recommendations,
)
from opsleuth.console.report_reasons import (
    explain_cause,
    explain_ruled_out,
    list_missing_grounds,
    shorten_times,
)
from opsleuth.console.seen_before import format_seen_before
from opsleuth.console.significant_digits import shorten_figures
from opsleuth.console.time_formats import TimeDisplay, format_elapsed
from opsleuth.state.conclusion_words import HELD, claim_label
from opsleuth.state.json_types import JSON

Document = Mapping[str, Any]

_UNSERVED = re.compile(r"(\w+): no source \(")
_STORED_TIMES = TimeDisplay()


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading and its items. `lines` is the least that the short form shows of it: None all, 0 nothing if there is no room."""

    title: str
    items: tuple[str, ...]
    lines: int | None
    form: Literal["list", "lines", "prose", "running"] = "list"
    """A list hangs its items, lines are one each, prose has paragraphs, running items share their lines."""


def list_brief_sections(document: Document, times: TimeDisplay) -> list[ReportSection]:
    """What the short form says between its headlines. What was done, denied or is to be done next is never cut."""
    every = (
        *_list_action_sections(document),
        *_list_explaining_sections(document, times),
        ReportSection("NEXT", tuple(_format_recommendations(document, without_first=True)), None),
        ReportSection("NOT CHECKED", tuple(list_unavailable_data(document)), 1),
        *_list_warning_sections(document),
    )
    return _finish_sections(every)


def list_report_sections(document: Document, times: TimeDisplay) -> list[ReportSection]:
    """The sections of the whole report that have something to say, in the order in which a reader wants them."""
    explained = bool(explain_cause(document, times))  # else the answer stands above in its own words
    every = (
        ReportSection("QUESTION", (report_title(document),), 1, "prose"),
        *_list_action_sections(document),
        *_list_explaining_sections(document, times),
        ReportSection("NEXT", tuple(_format_recommendations(document)), None),
        ReportSection("CONCLUSION", tuple(_format_conclusion(document)) if explained else (), 5, "prose"),
        ReportSection("TIMELINE", tuple(_format_timeline(document, times)), 2),
        ReportSection("CAUSES", tuple(_format_causes(document)), 4),
        ReportSection("NOT CHECKED", tuple(list_unavailable_data(document)), 2),
        *_list_warning_sections(document),
        ReportSection("EVIDENCE", tuple(_format_evidence(document)), 3, "lines"),
    )
    return _finish_sections(every)


def _list_action_sections(document: Document) -> Iterable[ReportSection]:
    """What stopped the run, what it changed and what it was not allowed to change."""
    yield ReportSection("STOPPED", tuple(_format_stop_notice(document)), None)
    yield ReportSection("DONE", tuple(map(_format_effect, _rows_of_field(document, "effects"))), None)
    yield ReportSection("DENIED", tuple(map(_format_denied_call, _rows_of_field(document, "denied"))), None)


def _list_explaining_sections(document: Document, times: TimeDisplay) -> Iterable[ReportSection]:
    why = explain_cause(document, times)
    if why:
        yield ReportSection("WHY", tuple(why), 9, "prose")
    else:
        title = "WHY" if document.get("verdict") == "cause_found" else "ANSWER"
        yield ReportSection(title, tuple(_format_answer(document, times)), 3, "prose")
    yield ReportSection(
        "FIELDS",
        tuple(f"{k} = {format_field_value(v)}" for k, v in _mapping_of_field(document, "fields").items()),
        3,
    )
    yield ReportSection("IMPACT", tuple(_format_impact(document, times)), 1)
    yield ReportSection("RULED OUT", tuple(_format_ruled_out(document)), 1)


def _list_warning_sections(document: Document) -> Iterable[ReportSection]:
    yield ReportSection("OPEN", tuple(_format_open_points(document)), 1)
    yield ReportSection("PLANNER", tuple(_format_planner_change(document)), 1)
    yield ReportSection("DATA", tuple(map(str, _rows_of_field(document, "warnings"))), 1)
    orders = tuple(str(row.get("why")) for row in _rows_of_field(document, "orders_in_data"))
    yield ReportSection("UNTRUSTED", orders, 1)
    yield ReportSection(
        "SEEN BEFORE", tuple(map(format_seen_before, _rows_of_field(document, "seen_before"))), 3
    )
    yield ReportSection("RUNBOOKS", tuple(map(_format_runbook, _rows_of_field(document, "runbooks"))), 0)


def _finish_sections(sections: Iterable[ReportSection]) -> list[ReportSection]:
    """The non-empty sections, with figures rounded for people."""
    return [replace(s, items=tuple(map(shorten_figures, s.items))) for s in sections if s.items]


def list_appendix_sections(document: Document) -> list[ReportSection]:
    """What `--full` adds, with all digits: every claim, the hypotheses, and where each piece of evidence comes from."""
    every = (
        ReportSection("CLAIMS", tuple(map(_format_claim, _rows_of_field(document, "claims"))), 0),
        ReportSection(
            "HYPOTHESES", tuple(map(_format_hypothesis, _rows_of_field(document, "hypotheses"))), 0
        ),
        ReportSection(
            "SOURCES", tuple(map(_format_evidence_origin, _rows_of_field(document, "evidence"))), 0
        ),
    )
    return [section for section in every if section.items]


def list_footer_facts(document: Document) -> list[str]:
    """Facts for the last line: what was removed, what it took, which run."""
    usage = _mapping_of_field(document, "usage")
    removed = [claim for claim in _rows_of_field(document, "claims") if claim.get("status") == "unsupported"]
    tokens = int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0)
    facts = (
        f"unsupported claims removed: {len(removed)}" if removed else "",
        f"turns {usage['turns']}" if usage.get("turns") is not None else "",
        f"calls {usage['tool_calls']}" if usage.get("tool_calls") else "",
        format_elapsed(float(usage["seconds"]) * 1000) if usage.get("seconds") is not None else "",
        f"tokens {tokens}" if tokens else "",
        f"cost ${usage['cost']}" if str(usage.get("cost") or "0") not in ("0", "0.0", "0.00") else "",
        f"run {document.get('run', '?')}",
    )
    return [fact for fact in facts if fact]


def report_title(document: Document) -> str:
    """The question, or the alert's text where there is none."""
    alert = document.get("alert")
    text = alert.get("text") if isinstance(alert, Mapping) else alert
    return str(document.get("question") or text or f"Run {document.get('run', '?')}")


def list_unavailable_data(document: Document) -> list[str]:
    """What could not be looked at, in one line for all kinds of data that have no source."""
    rows = [str(row) for row in _rows_of_field(document, "not_available")]
    unserved = [found[1] for row in rows if (found := _UNSERVED.match(row))]
    from_logs = "metrics" in unserved and _is_measured_from_logs(document)
    missing = [name for name in unserved if not (from_logs and name == "metrics")]
    told = [f"{', '.join(missing)} (none configured)"] if missing else []
    told += ["metrics (from logs only)"] if from_logs else []
    other = {row.casefold().rstrip(". "): row for row in rows if not _UNSERVED.match(row)}
    return [*told, *(row for name, row in other.items() if not _is_said_elsewhere(name, (*told, *other)))]


def _is_said_elsewhere(name: str, rows: Iterable[str]) -> bool:
    """Whether a longer row is about the kind of data that a row of one or two words names."""
    about = re.compile(rf"\b{re.escape(name)}(?:\b|_)")
    longer = (row.casefold() for row in rows if len(row) > len(name) + 1)
    return len(name.split()) <= 2 and any(about.search(row) for row in longer)


def _is_measured_from_logs(document: Document) -> bool:
    """Whether series that were computed from log lines were looked at."""
    return any(
        str(row.get("tool")).startswith("metrics_")
        and row.get("status") in ("ok", "none_matched")
        and bool(row.get("scanned"))
        for row in document.get("evidence") or ()
        if isinstance(row, Mapping)
    )


def _format_answer(document: Document, times: TimeDisplay) -> Iterable[str]:
    """The answer as its planner wrote it, with the evidence of its claims behind it where it names none."""
    paragraphs = [line for line in str(document.get("answer") or "").splitlines() if line.strip()]
    if not paragraphs:
        yield "No conclusion was reached."
        return
    paragraphs = [shorten_times(paragraph, times) for paragraph in paragraphs]
    cited = _sort_unique_ids(
        e for claim in _select_cited_claims(document) for e in claim.get("evidence") or []
    )
    if not any(re.search(rf"\b{e}\b", line) for e in cited for line in paragraphs):
        paragraphs[-1] = _append_citations(paragraphs[-1], cited)
    yield from paragraphs


def _format_conclusion(document: Document) -> Iterable[str]:
    """The answer in full behind the word that says how sure it is."""
    first, *rest = _format_answer(document, _STORED_TIMES)
    word = _confidence_label(document)
    yield f"({word}) {first}" if word and document.get("answer") else first
    yield from rest


def _confidence_label(document: Document) -> str:
    causes = _rows_of_field(document, "causes")
    verdict = document.get("verdict")
    word = causes[0].get("confidence") if verdict == "cause_found" and causes else verdict
    return str(word or "")


def _select_cited_claims(document: Document) -> Iterable[Mapping[str, Any]]:
    first = {c for cause in _rows_of_field(document, "causes")[:1] for c in cause.get("claims") or []}
    held = [c for c in _rows_of_field(document, "claims") if c.get("status") in HELD]
    return [c for c in held if c.get("id") in first] or held


def _format_stop_notice(document: Document) -> Iterable[str]:
    if reason := describe_stop(document):
        detail = document.get("stop_detail")
        yield f"{reason}{f': {detail}' if detail else ''}; this report is partial."


def _format_planner_change(document: Document) -> Iterable[str]:
    """Since which turn the offline rules decided in place of the model, and why."""
    for row in _rows_of_field(document, "degraded"):
        yield f"since turn {row.get('turn')}: {row.get('why')}"


def _format_open_points(document: Document) -> Iterable[str]:
    """What the question demands and the answer lacks, and what a second look did not settle."""
    yield from (f"not met: {text}" for text in _rows_of_field(document, "unmet_demands"))
    yield from (f"objection that stands: {text}" for text in _rows_of_field(document, "objections"))
    if (word := document.get("review")) in ("failed", "skipped"):
        yield f"the review by a second model {'failed' if word == 'failed' else 'was skipped'}: only the program checked this"


def _format_impact(document: Document, times: TimeDisplay) -> Iterable[str]:
    """The harm and since when it is counted, as another figure may be of another stretch; and what nothing measured."""
    impact, unmeasured = document.get("impact"), describe_unmeasured(document)
    if isinstance(impact, Mapping):
        since = f" (since {times.clock(impact['since'])})" if impact.get("since") else ""
        text = str(impact.get("text", "")).rstrip(".")
        yield _append_citations(
            f"{text}{since or (unmeasured and f'; {unmeasured}')}", impact.get("evidence")
        )
    elif impact or unmeasured:
        yield str(impact or unmeasured)


def _format_timeline(document: Document, times: TimeDisplay) -> Iterable[str]:
    day = ""
    for row in _rows_of_field(document, "timeline"):
        at = str(row.get("time") or "")
        today = times.day(at)
        moment = times.clock(at) if today == day else times.full(at)
        yield _append_citations(f"{moment} {row.get('text', '')}", row.get("evidence"))
        day = today


def _format_causes(document: Document) -> Iterable[str]:
    claims = {claim.get("id"): claim for claim in _rows_of_field(document, "claims")}
    rows = _rows_of_field(document, "causes")
    for number, cause in enumerate(rows, start=1):
        rank = f"{number}  " if len(rows) > 1 else ""
        metric = f", {cause['metric']}" if cause.get("metric") else ""
        cited = _sort_unique_ids(
            e for c in cause.get("claims") or [] for e in claims.get(c, {}).get("evidence") or []
        )
        what = (
            f"{rank}{cause.get('service')}: {_underscores_to_spaces(cause.get('kind'))}{metric} ({_describe_confidence(document, cause)})"
            f"{_format_entity(cause.get('entity'))}"
        )
        yield _append_citations(what, cited)
        if isinstance(change := cause.get("change"), Mapping):
            yield f"{_CHANGE_WORDS.get(str(change.get('grade')), 'change')}: {_format_change(change)}"
    if chain := [f"{a} → {b}" for a, b in _rows_of_field(document, "propagation")]:
        yield f"spread: {', '.join(chain)}"


def _format_entity(entity: Mapping[str, Any] | None) -> str:
    """The object behind a cause: `, Service shop/cart`; empty where none is known."""
    if not entity:
        return ""
    where = f"{entity['namespace']}/" if entity.get("namespace") else ""
    return f", {entity.get('kind')} {where}{entity.get('name') or '(name not recorded)'}"


_CHANGE_WORDS = {"cause": "set off by", "coincides": "coincides with"}


def _format_change(change: Mapping[str, Any]) -> str:
    who = f" by {change['author']}" if change.get("author") else ""
    where = f", {change['place']}" if change.get("place") else ""
    return (
        f"{change.get('kind')} {change.get('id')} of {change.get('service')}{who}{where}: {change.get('why')}"
    )


def _describe_confidence(document: Document, cause: Mapping[str, Any]) -> str:
    """The grade, and what is missing where it is short of confirmed."""
    word, missing = str(cause.get("confidence")), list_missing_grounds(document, cause)
    return f"{word}; still missing: {', '.join(missing)}" if missing else word


def _format_ruled_out(document: Document) -> Iterable[str]:
    claims = {str(claim.get("id")): claim for claim in _rows_of_field(document, "claims")}
    yield from (explain_ruled_out(row, claims) for row in _rows_of_field(document, "ruled_out"))


def _format_denied_call(row: Mapping[str, Any]) -> str:
    return f"{row.get('tool')} {format_arguments(row.get('arguments') or {})}: {row.get('reason', '')}"


def _format_effect(row: Mapping[str, Any]) -> str:
    facts = (
        row.get("approval"),
        row.get("tool"),
        format_arguments(row.get("arguments") or row.get("args") or {}),
        f"on {row['target']}:" if row.get("target") else "",
        _describe_effect_outcome(row),
    )
    return _append_citations(" ".join(str(fact) for fact in facts if fact), row.get("evidence"))


def _describe_effect_outcome(row: Mapping[str, Any]) -> str:
    """The outcome of an effect; only what was seen afterwards counts as success."""
    status, seen = row.get("status"), row.get("checked") or row.get("check") or row.get("text") or ""
    if status in ("started", "unknown"):
        return "OUTCOME UNKNOWN: it may have happened"
    if row.get("replayed"):
        return "REPLAYED from a recording: nothing was executed"
    if status == "failed_clean" or row.get("outcome") == "absent":
        return "did not happen"
    verdict = {True: "check passed", False: "CHECK FAILED", None: "not checked"}[row.get("verified")]
    return f"{status}, {verdict}{f': {seen}' if seen else ''}"


def _format_runbook(row: Mapping[str, Any]) -> str:
    """People's advice for such a case: named, so that they read it; nothing of it was carried out by itself."""
    return _append_citations(
        f"{row.get('title')} ({row.get('name')}), by {row.get('fits_by')}", row.get("evidence")
    )


def _format_recommendations(document: Document, *, without_first: bool = False) -> Iterable[str]:
    """What to do, numbered from 1; `without_first` where the headline says the first already."""
    rows = sort_recommendations(document)
    for number, row in enumerate(rows[1:] if without_first else rows, start=1):
        yield f"{number}  {describe_recommendation(row, document)}"


def _format_evidence(document: Document) -> Iterable[str]:
    rows = _rows_of_field(document, "evidence")
    cited = {e for claim in _rows_of_field(document, "claims") for e in claim.get("evidence") or []}
    shown = [row for row in rows if row.get("id") in cited] or rows
    if shown:
        recorded = f"{len(rows)} recorded, {len(cited)} cited"
        yield f"{recorded}; open one with: opsleuth evidence {document.get('run', '-')} {shown[0].get('id')}"
    several = len({row.get("source") for row in rows}) > 1
    for row in shown:
        source = f" from {row['source']}" if several and row.get("source") else ""
        yield f"{row.get('id')} {row.get('tool', '')}{source}: {row.get('headline') or row.get('query') or ''}"


def _format_claim(row: Mapping[str, Any]) -> str:
    problems = "; ".join(map(str, row.get("problems") or []))
    text = _append_citations(
        f"{row.get('id')} {claim_label(row)}: {row.get('text', '')}", row.get("facts") or row.get("evidence")
    )
    return f"{text} ({problems})" if problems else text


def _format_hypothesis(row: Mapping[str, Any]) -> str:
    cited = [f"+{e}" for e in row.get("supporting") or []] + [f"-{e}" for e in row.get("contradicting") or []]
    text = _append_citations(
        f"{row.get('id')} {_underscores_to_spaces(row.get('status'))}: {row.get('text', '')}", cited
    )
    return f"{text} ({row['reason']})" if row.get("reason") else text


def _format_evidence_origin(row: Mapping[str, Any]) -> str:
    source = f"from {row['source']}" if row.get("source") else ""
    purpose = f"to find out: {row['purpose']}" if row.get("purpose") else ""
    call = f"{row.get('tool')} {format_arguments(row.get('arguments') or {})}".rstrip()
    facts = (f"{row.get('id')} {call}", source, str(row.get("status") or ""), purpose)
    return ", ".join(fact for fact in facts if fact)


def _append_citations(text: str, evidence: Iterable[str] | str | None) -> str:
    cited = evidence if isinstance(evidence, str) else " ".join(map(str, evidence or ()))
    return f"{text} [{cited}]" if cited else text


def _sort_unique_ids(ids: Iterable[str]) -> list[str]:
    return sorted(set(ids), key=lambda e: (len(e), e))


def _underscores_to_spaces(kind: object) -> str:
    return str(kind).replace("_", " ")


def format_field_value(value: JSON) -> str:
    """The value of a field that the question asked for, as people read it."""
    if value is None:
        return "not known"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _rows_of_field(document: Document, name: str) -> list[Any]:
    return list(document.get(name) or [])


def _mapping_of_field(document: Document, name: str) -> Mapping[str, Any]:
    return document.get(name) or {}
