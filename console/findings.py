"""What a report says, section by section, from its document; text and Markdown lay the same sections out.

The document is plain JSON: verdict, answer, causes, propagation, ruled_out, not_available, warnings, recommendations,
fields, claims, effects, window, status, stop_reason, stop_detail, usage, run, question, and, where they are
known, impact, timeline, hypotheses, evidence and denied. Every field may be missing: a partial report is a report.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from opsleuth.console.events import arguments
from opsleuth.console.times import Display, took

Document = Mapping[str, Any]

_UNSERVED = re.compile(r"(\w+): no source \(")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its items. `lines` is what the short form gives it on a screen of 25 lines."""

    title: str
    items: tuple[str, ...]
    lines: int
    form: Literal["list", "lines", "prose", "running"] = "list"
    """A list hangs its items, lines are one each, prose has paragraphs, running items share their lines."""


def sections(document: Document, times: Display) -> list[Section]:
    """The sections that have something to say, in the order in which a reader wants them."""
    every = (
        Section("QUESTION", (title(document),), 1, "prose"),
        Section("CONCLUSION", tuple(_conclusion(document)), 5, "prose"),
        Section("STOPPED", tuple(_stopped(document)), 2),
        Section("FIELDS", tuple(f"{k} = {_value(v)}" for k, v in _mapping(document, "fields").items()), 3),
        Section("IMPACT", tuple(_impact(document)), 1),
        Section("TIMELINE", tuple(_timeline(document, times)), 2, "running"),
        Section("CAUSES", tuple(_causes(document)), 4),
        Section("RULED OUT", tuple(_ruled_out(document)), 3),
        Section("NOT KNOWN", tuple(not_known(document)), 2),
        Section("DATA", tuple(map(str, _rows(document, "warnings"))), 1),
        Section("DENIED", tuple(map(_denied, _rows(document, "denied"))), 2),
        Section("UNTRUSTED", tuple(str(row.get("why")) for row in _rows(document, "orders_in_data")), 1),
        Section("DONE", tuple(map(_effect, _rows(document, "effects"))), 2),
        Section("RUNBOOKS", tuple(map(_runbook, _rows(document, "runbooks"))), 1),
        Section("NEXT", tuple(_next(document)), 4),
        Section("EVIDENCE", tuple(_evidence(document)), 3, "lines"),
    )
    return [section for section in every if section.items]


def appendix(document: Document) -> list[Section]:
    """What `--full` adds: every claim, the hypotheses, and where each piece of evidence comes from."""
    every = (
        Section("CLAIMS", tuple(map(_claim, _rows(document, "claims"))), 0),
        Section("HYPOTHESES", tuple(map(_hypothesis, _rows(document, "hypotheses"))), 0),
        Section("SOURCES", tuple(map(_origin, _rows(document, "evidence"))), 0),
    )
    return [section for section in every if section.items]


def footer(document: Document) -> list[str]:
    """Facts for the last line: what was removed, what it took, which run."""
    usage = _mapping(document, "usage")
    removed = [claim for claim in _rows(document, "claims") if claim.get("status") == "unsupported"]
    tokens = int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0)
    facts = (
        f"unsupported claims removed: {len(removed)}" if removed else "",
        f"turns {usage['turns']}" if usage.get("turns") is not None else "",
        f"calls {usage['tool_calls']}" if usage.get("tool_calls") else "",
        took(float(usage["seconds"]) * 1000) if usage.get("seconds") is not None else "",
        f"tokens {tokens}" if tokens else "",
        f"cost ${usage['cost']}" if str(usage.get("cost") or "0") not in ("0", "0.0", "0.00") else "",
        f"run {document.get('run', '?')}",
    )
    return [fact for fact in facts if fact]


def title(document: Document) -> str:
    """The question, or the alert's text where there is none."""
    alert = document.get("alert")
    text = alert.get("text") if isinstance(alert, Mapping) else alert
    return str(document.get("question") or text or f"Run {document.get('run', '?')}")


def not_known(document: Document) -> list[str]:
    """What could not be looked at, in one line for all kinds of data that have no source."""
    rows = [str(row) for row in _rows(document, "not_available")]
    unserved = [found[1] for row in rows if (found := _UNSERVED.match(row))]
    told = [f"no source for {', '.join(unserved)}"] if unserved else []
    return [*told, *(row for row in rows if not _UNSERVED.match(row))]


def _conclusion(document: Document) -> Iterable[str]:
    paragraphs = [line for line in str(document.get("answer") or "").splitlines() if line.strip()]
    if not paragraphs:
        yield "No conclusion was reached."
        return
    cited = _unique(e for claim in _cited_claims(document) for e in claim.get("evidence") or [])
    if not any(re.search(rf"\b{e}\b", line) for e in cited for line in paragraphs):
        paragraphs[-1] = _cite(paragraphs[-1], cited)
    word = _confidence(document)
    yield f"({word}) {paragraphs[0]}" if word else paragraphs[0]
    yield from paragraphs[1:]


def _confidence(document: Document) -> str:
    causes = _rows(document, "causes")
    verdict = document.get("verdict")
    word = causes[0].get("confidence") if verdict == "cause_found" and causes else verdict
    return str(word or "")


def _cited_claims(document: Document) -> Iterable[Mapping[str, Any]]:
    first = {c for cause in _rows(document, "causes")[:1] for c in cause.get("claims") or []}
    verified = [c for c in _rows(document, "claims") if c.get("status") == "verified"]
    return [c for c in verified if c.get("id") in first] or verified


def _stopped(document: Document) -> Iterable[str]:
    reason = document.get("stop_reason")
    if reason and reason != "concluded":
        detail = document.get("stop_detail")
        again = "" if reason == "terminated" else f" Go on with: opsleuth resume {document.get('run', '-')}"
        yield f"{_words(reason)}{f': {detail}' if detail else ''}; this report is partial.{again}"


def _impact(document: Document) -> Iterable[str]:
    impact = document.get("impact")
    if isinstance(impact, Mapping):
        yield _cite(str(impact.get("text", "")), impact.get("evidence"))
    elif impact:
        yield str(impact)


def _timeline(document: Document, times: Display) -> Iterable[str]:
    day = ""
    for row in _rows(document, "timeline"):
        at = str(row.get("time") or "")
        today = times.day(at)
        moment = times.clock(at) if today == day else times.full(at)
        yield _cite(f"{moment} {row.get('text', '')}", row.get("evidence"))
        day = today


def _causes(document: Document) -> Iterable[str]:
    claims = {claim.get("id"): claim for claim in _rows(document, "claims")}
    rows = _rows(document, "causes")
    for number, cause in enumerate(rows, start=1):
        rank = f"{number}  " if len(rows) > 1 else ""
        metric = f", {cause['metric']}" if cause.get("metric") else ""
        cited = _unique(e for c in cause.get("claims") or [] for e in claims.get(c, {}).get("evidence") or [])
        what = (
            f"{rank}{cause.get('service')}: {_words(cause.get('kind'))}{metric} ({cause.get('confidence')})"
        )
        yield _cite(what, cited)
    if chain := [f"{a} → {b}" for a, b in _rows(document, "propagation")]:
        yield f"spread: {', '.join(chain)}"


def _ruled_out(document: Document) -> Iterable[str]:
    claims = {claim.get("id"): claim for claim in _rows(document, "claims")}
    for row in _rows(document, "ruled_out"):
        because = [claims[c] for c in row.get("claims") or [] if c in claims]
        label = f"{row['id']} " if row.get("id") else ""
        why = "; ".join(str(claim.get("text")) for claim in because)
        cited = _unique(e for claim in because for e in claim.get("evidence") or [])
        yield _cite(f"{label}{row.get('hypothesis', '')}{f': {why}' if why else ''}", cited)


def _denied(row: Mapping[str, Any]) -> str:
    return f"{row.get('tool')} {arguments(row.get('arguments') or {})}: {row.get('reason', '')}"


def _effect(row: Mapping[str, Any]) -> str:
    facts = (
        row.get("approval"),
        row.get("tool"),
        arguments(row.get("arguments") or row.get("args") or {}),
        row.get("target"),
        _outcome(row),
    )
    return _cite(" ".join(str(fact) for fact in facts if fact), row.get("evidence"))


def _outcome(row: Mapping[str, Any]) -> str:
    """What became of an effect; only what was seen afterwards counts as success."""
    status, seen = row.get("status"), row.get("checked") or row.get("check") or row.get("text") or ""
    if status in ("started", "unknown"):
        return "OUTCOME UNKNOWN: it may have happened"
    if status == "failed_clean" or row.get("outcome") == "absent":
        return "did not happen"
    verdict = {True: "check passed", False: "CHECK FAILED", None: "not checked"}[row.get("verified")]
    return f"{status}, {verdict}{f': {seen}' if seen else ''}"


def _runbook(row: Mapping[str, Any]) -> str:
    """People's advice for such a case: named, so that they read it; nothing of it was carried out by itself."""
    return _cite(f"{row.get('title')} ({row.get('name')}), by {row.get('fits_by')}", row.get("evidence"))


def _next(document: Document) -> Iterable[str]:
    for number, row in enumerate(_rows(document, "recommendations"), start=1):
        action = row.get("action") or {}
        call = (
            f" ({action['tool']} {arguments(action.get('arguments') or {})}".rstrip() + ")" if action else ""
        )
        risk = f" [risk {row['risk']}]" if row.get("risk") in ("high", "irreversible") else ""
        yield f"{number}  {row.get('text', '')}{call}{risk}"


def _evidence(document: Document) -> Iterable[str]:
    rows = _rows(document, "evidence")
    cited = {e for claim in _rows(document, "claims") for e in claim.get("evidence") or []}
    shown = [row for row in rows if row.get("id") in cited] or rows
    if shown:
        recorded = f"{len(rows)} recorded, {len(cited)} cited"
        yield f"{recorded}; open one with: opsleuth evidence {document.get('run', '-')} {shown[0].get('id')}"
    several = len({row.get("source") for row in rows}) > 1
    for row in shown:
        source = f" from {row['source']}" if several and row.get("source") else ""
        yield f"{row.get('id')} {row.get('tool', '')}{source}: {row.get('headline') or row.get('query') or ''}"


def _claim(row: Mapping[str, Any]) -> str:
    problems = "; ".join(map(str, row.get("problems") or []))
    text = _cite(f"{row.get('id')} {row.get('status')}: {row.get('text', '')}", row.get("evidence"))
    return f"{text} ({problems})" if problems else text


def _hypothesis(row: Mapping[str, Any]) -> str:
    cited = [f"+{e}" for e in row.get("supporting") or []] + [f"-{e}" for e in row.get("contradicting") or []]
    text = _cite(f"{row.get('id')} {_words(row.get('status'))}: {row.get('text', '')}", cited)
    return f"{text} ({row['reason']})" if row.get("reason") else text


def _origin(row: Mapping[str, Any]) -> str:
    source = f"from {row['source']}" if row.get("source") else ""
    purpose = f"to find out: {row['purpose']}" if row.get("purpose") else ""
    call = f"{row.get('tool')} {arguments(row.get('arguments') or {})}".rstrip()
    facts = (f"{row.get('id')} {call}", source, str(row.get("status") or ""), purpose)
    return ", ".join(fact for fact in facts if fact)


def _cite(text: str, evidence: Iterable[str] | str | None) -> str:
    cited = evidence if isinstance(evidence, str) else " ".join(map(str, evidence or ()))
    return f"{text} [{cited}]" if cited else text


def _unique(ids: Iterable[str]) -> list[str]:
    return sorted(set(ids), key=lambda e: (len(e), e))


def _words(kind: object) -> str:
    return str(kind).replace("_", " ")


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _rows(document: Document, name: str) -> list[Any]:
    return list(document.get(name) or [])


def _mapping(document: Document, name: str) -> Mapping[str, Any]:
    return document.get(name) or {}
