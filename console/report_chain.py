"""The chain behind a conclusion: each step with its time and evidence, the rivals, and what would overturn it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from opsleuth.console.report_content import ReportSection, list_unavailable_data
from opsleuth.console.report_headline import compose_headline, describe_cause, name_change
from opsleuth.console.report_reasons import (
    explain_ruled_out,
    list_missing_grounds,
    list_shown_grounds,
    shorten_times,
    tidy_claim_text,
)
from opsleuth.console.shown_report import prepare_for_reading
from opsleuth.console.significant_digits import shorten_figures
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.conclusion_words import HELD, claim_label

Document = Mapping[str, Any]
_MOST_QUOTED = 70
"""Characters of a quotation where the whole of it is a flag away."""


def list_cause_names(document: Document) -> list[str]:
    """The services that the report blames, best first."""
    return [str(cause.get("service")) for cause in document.get("causes") or []]


def explain_document(
    document: Document, place: int, times: TimeDisplay, *, whole: bool = True
) -> list[ReportSection]:
    """Sections of `opsleuth why` about the cause at `place`; about the answer itself where nothing is blamed.

    Without `whole` long quotations are cut, and each section says how few of its lines one screen must show.
    """
    document = prepare_for_reading(document)
    causes = document.get("causes") or []
    cause = causes[place] if place < len(causes) else {}
    head = describe_cause(cause) if cause else ", ".join(compose_headline(document, times).facts)
    overturning = tuple(_list_overturning_facts(document, cause))
    every = (
        ReportSection("CAUSE" if cause else "ANSWER", (head,), 2, "prose"),
        ReportSection("SURE", tuple(_describe_certainty(document, cause, times)), 2),
        ReportSection("SET OFF BY", tuple(_describe_change(cause, times)), 2),
        ReportSection("FACTS", tuple(_list_claims(document, cause, times, whole=whole)), 5),
        ReportSection(
            "IN ORDER", tuple(_list_moments(document, times, whole=whole)), 5, "list" if whole else "lines"
        ),
        ReportSection("PASSES ON", tuple(_list_chains(document)), 1),
        ReportSection("RIVALS", tuple(_list_rivals(document, place)), 1),
        ReportSection("OVERTURNED", overturning if whole else overturning[:1], 2),
        ReportSection("NOT CHECKED", tuple(list_unavailable_data(document)), 1),
        ReportSection("MORE", tuple(_list_commands(document, place, whole=whole)), None),
    )
    return [replace(s, items=tuple(map(shorten_figures, s.items))) for s in every if s.items]


def _list_commands(document: Document, place: int, *, whole: bool) -> Iterable[str]:
    run = document.get("run", "-")
    cited = next((e for claim in document.get("claims") or [] for e in claim.get("evidence") or []), "")
    if not whole:
        yield f"opsleuth why {run} {place + 1 if place else ''} --all".replace("  ", " ")
    yield f"opsleuth evidence {run} {cited}".rstrip()
    if whole:
        yield f"opsleuth report {run} --full"


def _list_chains(document: Document) -> Iterable[str]:
    """`a → b → c`: pairs that follow one another in one line."""
    chains: list[list[str]] = []
    for a, b in document.get("propagation") or []:
        if chains and chains[-1][-1] == a:
            chains[-1].append(b)
        else:
            chains.append([a, b])
    yield from (" → ".join(map(str, chain)) for chain in chains)


def _describe_certainty(document: Document, cause: Mapping[str, Any], times: TimeDisplay) -> Iterable[str]:
    if not cause:
        return
    shown = list_shown_grounds(document, cause, times)
    missing = list_missing_grounds(document, cause)
    grounds = f"; shown: {', '.join(shown)}" if shown else ""
    lacking = f"; still missing: {', '.join(missing)}" if missing else ""
    yield f"{cause.get('confidence')}{grounds}{lacking}"


def _describe_change(cause: Mapping[str, Any], times: TimeDisplay) -> Iterable[str]:
    change = cause.get("change")
    if isinstance(change, Mapping):
        who = f" by {change['author']}" if change.get("author") else ""
        proof = (
            "" if change.get("grade") == "cause" else " It fits in place and time only, which proves nothing."
        )
        yield f"{times.clock(change.get('at'))} {name_change(change)}{who}: {change.get('why')}.{proof}"


def _list_claims(
    document: Document, cause: Mapping[str, Any], times: TimeDisplay, *, whole: bool
) -> Iterable[str]:
    held = [claim for claim in document.get("claims") or [] if claim.get("status") in HELD]
    named = cause.get("claims") or []
    for claim in [claim for claim in held if claim.get("id") in named] or held:
        label, text = f"{claim_label(claim)}: ", shorten_times(str(claim.get("text") or ""), times)
        cited = " ".join(map(str, claim.get("facts") or claim.get("evidence") or []))
        if not whole:
            label = "" if label == "measured: " else label
            text = tidy_claim_text(claim, times, _MOST_QUOTED).rstrip(".")
            cited = " ".join(map(str, claim.get("evidence") or []))
        yield f"{label}{text}{f' [{cited}]' if cited else ''}"


def _list_moments(document: Document, times: TimeDisplay, *, whole: bool) -> Iterable[str]:
    for row in document.get("timeline") or []:
        cited = f" [{row['evidence']}]" if whole and row.get("evidence") else ""
        yield f"{times.clock(row.get('time'))} {row.get('text', '')}{cited}"


def _list_rivals(document: Document, place: int) -> Iterable[str]:
    claims = {str(claim.get("id")): claim for claim in document.get("claims") or []}
    for i, other in enumerate(document.get("causes") or []):
        if i != place:
            yield f"{describe_cause(other)}: {other.get('confidence')}, blamed too (opsleuth why {document.get('run', '-')} {i + 1})"
    yield from (explain_ruled_out(row, claims) for row in document.get("ruled_out") or [])
    for hypothesis in document.get("hypotheses") or []:
        if hypothesis.get("status") == "open":
            yield f"{hypothesis.get('text')}: still open"


def _list_overturning_facts(document: Document, cause: Mapping[str, Any]) -> Iterable[str]:
    """What would change the mind: a ground that is shown to fail, or a look at what was not there."""
    if not cause:
        return
    service = cause.get("service")
    change = cause.get("change")
    if isinstance(change, Mapping):
        yield f"if the symptom began before {name_change(change)}, or stays when that is undone"
    for ground in list_missing_grounds(document, cause):
        yield f"if a look for this fails, which is still missing: {ground}"
    yield f"if {service} is as usual in the same minutes on another source, or healthy while the symptom lasts"
    yield from (f"if this objection holds: {text}" for text in document.get("objections") or [])
